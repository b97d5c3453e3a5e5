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
    /// Put together from these when the command is run.
    Made(Vec<Piece>),
    /// What it means is only known when it is run.
    Unknown,
    /// What comes next is written to.
    Into,
    /// What comes next is read.
    From,
}

/// A part of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// Text, and whether it is a pattern for names of files.
    Text(String, bool),
    /// What a variable has; without a name, what nothing is known of.
    Variable {
        /// Its name.
        name: String,
        /// Whether it stands in quotation marks, so that it stays one word.
        quoted: bool,
    },
    /// What a line prints.
    Output(String),
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
                Some((2, end)) => texts.push(end),
                Some((_, file)) => words.extend([Word::From, Word::Plain(file)]),
                None => {}
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

/// What is read: a file, the end of a text in the lines to come, or a text that stands here; with the number of signs
/// (one to three) that say so.
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
        Word::Plain(text) if matches!(signs, 1..=3) && !text.is_empty() => Some((signs, text)),
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

/// What stands in a word behind `$` or a backtick.
fn opened(rest: &mut Chars<'_>, begin: char, quoted: bool) -> Piece {
    if begin == '`' {
        return Piece::Output(rest.by_ref().take_while(|it| *it != '`').collect());
    }
    if rest.next_if_eq(&'(').is_some() {
        return Piece::Output(up_to_close(rest));
    }
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let name = match rest.next_if_eq(&'{') {
        Some(_) => rest.by_ref().take_while(|it| *it != '}').collect(),
        None => {
            let mut name = String::new();
            while let Some(c) = rest.next_if(is_name) {
                name.push(c);
            }
            name
        }
    };
    // Of `${f%.ts}` and the like nothing is known.
    let name = if name.chars().all(|c| is_name(&c)) { name } else { String::new() };
    Piece::Variable { name, quoted }
}

/// The text up to the parenthesis that closes one that was opened.
fn up_to_close(rest: &mut Chars<'_>) -> String {
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
    line
}

/// A word while it is read.
#[derive(Default)]
struct Building {
    pieces: Vec<Piece>,
    text: String,
    pattern: bool,
}

impl Building {
    fn open(&mut self, piece: Piece) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text), self.pattern));
        }
        self.pieces.push(piece);
    }

    fn word(mut self) -> Word {
        let pattern = self.pattern || has_choice(&self.text);
        if self.pieces.is_empty() {
            return if pattern { Word::Pattern(self.text) } else { Word::Plain(self.text) };
        }
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(self.text, pattern));
        }
        Word::Made(self.pieces)
    }
}

/// Whether braces in a word stand for several: those of `HEAD@{1}` and `{}` stand for themselves.
fn has_choice(text: &str) -> bool {
    let inner =
        |from: &str| from.split_once('}').is_some_and(|(it, _)| it.contains(',') || it.contains(".."));
    text.match_indices('{').any(|(at, _)| inner(&text[at + 1..]))
}

fn word(rest: &mut Chars<'_>, inner: &mut Vec<String>) -> Word {
    let mut building = Building::default();
    let mut is_first = true;
    let mut open = |building: &mut Building, piece: Piece| {
        if let Piece::Output(line) = &piece {
            inner.push(line.clone());
        }
        building.open(piece);
    };
    while let Some(&c) = rest.peek() {
        let was_first = std::mem::take(&mut is_first);
        match c {
            '\'' => {
                rest.next();
                building.text.extend(rest.by_ref().take_while(|it| *it != '\''));
            }
            '"' => {
                rest.next();
                while let Some(c) = rest.next().filter(|it| *it != '"') {
                    match c {
                        '$' | '`' => {
                            let piece = opened(rest, c, true);
                            open(&mut building, piece);
                        }
                        '\\' => building.text.push(rest.next().unwrap_or(c)),
                        c => building.text.push(c),
                    }
                }
            }
            '\\' => {
                rest.next();
                // A line goes on behind its end.
                building.text.extend(rest.next().filter(|it| *it != '\n'));
            }
            '$' | '`' => {
                rest.next();
                let piece = opened(rest, c, false);
                open(&mut building, piece);
            }
            c if c.is_whitespace() || ";|&()<>".contains(c) => break,
            // Elsewhere in a word it stands for itself, as in `HEAD~1`.
            '~' if was_first => {
                rest.next();
                let is_own = rest.peek().is_none_or(|it| *it == '/' || it.is_whitespace());
                let name = if is_own { "HOME".to_owned() } else { String::new() };
                open(&mut building, Piece::Variable { name, quoted: true });
            }
            c => {
                building.pattern |= "*?[".contains(c);
                building.text.push(c);
                rest.next();
            }
        }
    }
    // `2>` names no file, and its number is none either.
    let is_number = rest.peek() == Some(&'>')
        && building.pieces.is_empty()
        && !building.text.is_empty()
        && building.text.chars().all(|it| it.is_ascii_digit());
    if is_number { Word::Unknown } else { building.word() }
}
