//! The words of a line for a shell: commands, and what is quoted, open or redirected in them.

/// A part of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// A command.
    Command(Vec<Word>),
    /// What follows is run in a shell of its own,
    Open,
    /// up to here.
    Close,
}

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// To the letter.
    Plain(String),
    /// A pattern for names of files.
    Pattern(String),
    /// What it means is only known when it is run.
    Unknown,
    /// What comes next is written to.
    Into,
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The commands of a line, word by word.
pub(super) fn parts(line: &str) -> Vec<Part> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let mut rest = line.chars().peekable();
    // Ends of texts that stand in the lines to come.
    let mut texts: Vec<String> = Vec::new();
    while let Some(&c) = rest.peek() {
        match c {
            ';' | '|' | '&' | '\n' | '(' | ')' => {
                rest.next();
                if c == '\n' {
                    texts.drain(..).for_each(|end| pass_text(&mut rest, &end));
                }
                // `&>` is a redirection of both.
                if !(c == '&' && rest.peek() == Some(&'>')) {
                    all.push(Part::Command(std::mem::take(&mut words)));
                }
                match c {
                    '(' => all.push(Part::Open),
                    ')' => all.push(Part::Close),
                    _ => {}
                }
            }
            '>' => {
                rest.next();
                while rest.next_if(|it| matches!(it, '>' | '|')).is_some() {}
                // `>&2` goes to no file.
                if rest.next_if_eq(&'&').is_none() {
                    words.push(Word::Into);
                }
            }
            '<' => texts.extend(read_from(&mut rest)),
            '#' => while rest.next_if(|it| *it != '\n').is_some() {},
            c if c.is_whitespace() => {
                rest.next();
            }
            _ => words.push(word(&mut rest)),
        }
    }
    all.push(Part::Command(words));
    all
}

/// What is read from matters to nobody; where it is text in the lines to come, its end is given back.
fn read_from(rest: &mut Chars<'_>) -> Option<String> {
    let mut signs = 0;
    while rest.next_if_eq(&'<').is_some() {
        signs += 1;
    }
    if signs == 2 {
        rest.next_if_eq(&'-');
    }
    while rest.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
    match word(rest) {
        Word::Plain(end) if signs == 2 && !end.is_empty() => Some(end),
        _ => None,
    }
}

/// Goes over text up to the line that ends it.
fn pass_text(rest: &mut Chars<'_>, end: &str) {
    while rest.peek().is_some() {
        let line: String = rest.by_ref().take_while(|it| *it != '\n').collect();
        if line.trim_start_matches('\t') == end {
            return;
        }
    }
}

fn word(rest: &mut Chars<'_>) -> Word {
    let (mut text, mut open, mut pattern) = (String::new(), false, false);
    while let Some(&c) = rest.peek() {
        match c {
            '\'' => {
                rest.next();
                text.extend(rest.by_ref().take_while(|it| *it != '\''));
            }
            '"' => {
                rest.next();
                while let Some(c) = rest.next().filter(|it| *it != '"') {
                    open |= matches!(c, '$' | '`');
                    text.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
                }
            }
            '\\' => {
                rest.next();
                text.extend(rest.next());
            }
            c if c.is_whitespace() || ";|&()<>".contains(c) => break,
            c => {
                open |= "$`~".contains(c);
                pattern |= "*?[{".contains(c);
                text.push(c);
                rest.next();
            }
        }
    }
    // `2>` names no file, and its number is none either.
    let is_number = rest.peek() == Some(&'>') && text.chars().all(|it| it.is_ascii_digit());
    match (open || is_number, pattern) {
        (true, _) => Word::Unknown,
        (false, true) => Word::Pattern(text),
        (false, false) => Word::Plain(text),
    }
}
