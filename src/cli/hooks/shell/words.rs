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
    /// A line that is run where it stands within a word.
    Inner(String),
    /// Text that the commands of the line before read.
    Text(String),
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
                // `&>` is a redirection of both.
                if !(c == '&' && rest.peek() == Some(&'>')) {
                    all.push(Part::Command(std::mem::take(&mut words)));
                }
                match c {
                    '\n' => all.extend(texts.drain(..).map(|end| Part::Text(pass_text(&mut rest, &end)))),
                    '(' => all.push(Part::Open),
                    ')' => all.push(Part::Close),
                    _ => {}
                }
            }
            '>' => {
                rest.next();
                while rest.next_if(|it| matches!(it, '>' | '|')).is_some() {}
                // `>&2` and `>&-` go to no file, and `>& FILE` does.
                let is_copy = rest.next_if_eq(&'&').is_some();
                if !is_copy || !rest.peek().is_some_and(|it| it.is_ascii_digit() || *it == '-') {
                    words.push(Word::Into);
                }
            }
            '<' => match read_from(&mut rest) {
                Some((3, text)) => all.extend([Part::Command(std::mem::take(&mut words)), Part::Text(text)]),
                end => texts.extend(end.map(|(_, end)| end)),
            },
            '#' => while rest.next_if(|it| *it != '\n').is_some() {},
            c if c.is_whitespace() => {
                rest.next();
            }
            _ => {
                let mut inner = Vec::new();
                words.push(word(&mut rest, &mut inner));
                all.extend(inner.into_iter().map(Part::Inner));
            }
        }
    }
    all.push(Part::Command(words));
    all
}

/// What is read from matters to nobody, but for text in the lines to come, whose end is given back, and text that stands
/// here; with the number of signs that say so.
fn read_from(rest: &mut Chars<'_>) -> Option<(usize, String)> {
    let mut signs = 0;
    while rest.next_if_eq(&'<').is_some() {
        signs += 1;
    }
    if signs == 2 {
        rest.next_if_eq(&'-');
    }
    while rest.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
    match word(rest, &mut Vec::new()) {
        Word::Plain(text) if matches!(signs, 2 | 3) && !text.is_empty() => Some((signs, text)),
        _ => None,
    }
}

/// Goes over text up to the line that ends it, and gives it back.
fn pass_text(rest: &mut Chars<'_>, end: &str) -> String {
    let mut text = String::new();
    while rest.peek().is_some() {
        let line: String = rest.by_ref().take_while(|it| *it != '\n').collect();
        if line.trim_start_matches('\t') == end {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// A line within a word, behind `$` or a backtick.
fn inner_line(rest: &mut Chars<'_>, begin: char) -> Option<String> {
    if begin == '`' {
        return Some(rest.by_ref().take_while(|it| *it != '`').collect());
    }
    rest.next_if_eq(&'(')?;
    let (mut line, mut depth) = (String::new(), 1);
    for c in rest.by_ref() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            break;
        }
        line.push(c);
    }
    Some(line)
}

fn word(rest: &mut Chars<'_>, inner: &mut Vec<String>) -> Word {
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
                    if matches!(c, '$' | '`') {
                        open = true;
                        inner.extend(inner_line(rest, c));
                    }
                    text.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
                }
            }
            '\\' => {
                rest.next();
                // A line goes on behind its end.
                text.extend(rest.next().filter(|it| *it != '\n'));
            }
            '$' | '`' => {
                rest.next();
                open = true;
                inner.extend(inner_line(rest, c));
            }
            c if c.is_whitespace() || ";|&()<>".contains(c) => break,
            c => {
                open |= c == '~';
                pattern |= "*?[{".contains(c);
                text.push(c);
                rest.next();
            }
        }
    }
    // `2>` names no file, and its number is none either.
    let is_number = rest.peek() == Some(&'>') && text.chars().all(|it| it.is_ascii_digit());
    // `{}` stands for what a program is given, and `{` is a word of the shell.
    let pattern = pattern && text != "{" && (text.contains(['*', '?', '[']) || !text.ends_with("{}"));
    match (open || is_number, pattern) {
        (true, _) => Word::Unknown,
        (false, true) => Word::Pattern(text),
        (false, false) => Word::Plain(text),
    }
}
