//! Splits a line for a shell into commands and words, with quotations, open parts and redirections.

use super::spans::{escaped, pass_text, up_to, up_to_close};
use provost_base::limits::{SHELL_CHOICES_BYTES_MAX, SHELL_CHOICES_MAX};

/// A part of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// A command.
    Command(Vec<Word>),
    /// Begins a part that runs in a shell of its own.
    Open,
    /// Ends such a part.
    Close,
    /// A line that runs where it stands within a word.
    Inner(String),
    /// A text that the commands of the line before read.
    Text(String),
}

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// A literal text.
    Plain(String),
    /// A pattern for names of files.
    Pattern(String),
    /// A text that the shell puts together from these when the command runs.
    Made(Vec<Piece>),
    /// A text that is only known when the command runs.
    Unknown,
    /// The next word is written to.
    Into,
    /// The next word is read.
    From,
}

/// A part of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// Text, and whether it is a pattern for names of files.
    Text(String, bool),
    /// The value of a variable; without a name, a value about which nothing is known.
    Variable {
        /// Its name.
        name: String,
        /// Whether it stands in quotation marks, so that it stays one word.
        quoted: bool,
        /// The text in place of an empty variable, as in `${f:-src/a.ts}`.
        or: Option<String>,
    },
    /// The output of a line, and whether it stands in quotation marks.
    Output(String, bool),
}

/// Returns words with the braces of each spelled out: `src/{a,b}.ts`; `None` if these are too many.
pub(super) fn spelled_out(words: Vec<Word>) -> Option<Vec<Word>> {
    let mut done = Vec::with_capacity(words.len());
    for word in words {
        let (mut open, mut left) = match word {
            Word::Pattern(text) => (vec![text], SHELL_CHOICES_MAX),
            word => {
                done.push(word);
                continue;
            }
        };
        while let Some(text) = open.pop() {
            left = left.checked_sub(1)?;
            match choices(&text) {
                Some(_) if text.len() > SHELL_CHOICES_BYTES_MAX => return None,
                Some(all) => open.extend(all.into_iter().rev()),
                None if text.contains(['*', '?', '[', '{']) => done.push(Word::Pattern(text)),
                None if text.is_empty() => {}
                None => done.push(Word::Plain(text)),
            }
        }
    }
    Some(done)
}

/// Returns a text once for each part of its first innermost braces.
fn choices(text: &str) -> Option<Vec<String>> {
    let mut from = 0;
    while let Some(close) = text[from..].find('}').map(|at| from + at) {
        if let Some(begin) = text[from..close].rfind('{').map(|at| from + at)
            && text[begin..close].contains(',')
        {
            let (before, behind) = (&text[..begin], &text[close + 1..]);
            let parts = text[begin + 1..close].split(',');
            return Some(
                parts.take(SHELL_CHOICES_MAX + 1).map(|it| format!("{before}{it}{behind}")).collect(),
            );
        }
        from = close + 1;
    }
    None
}

/// Returns the cost of putting a word together, in bytes: its pieces, and the results.
pub(super) fn length(word: &Word, settled: &[Word]) -> usize {
    let made = match word {
        Word::Made(pieces) => pieces.iter().map(Piece::len).sum(),
        _ => 0,
    };
    made + settled.iter().map(|it| it.len() + size_of::<Word>() / 2).sum::<usize>()
}

/// Returns a word as it stands in a line, after a blank.
pub(super) fn quoted(word: &Word) -> Option<String> {
    match word {
        Word::Plain(text) => Some(format!(" '{}'", text.replace('\'', "'\\''"))),
        Word::Pattern(text) => Some(format!(" {text}")),
        Word::Made(_) | Word::Unknown | Word::Into | Word::From => None,
    }
}

impl Word {
    fn len(&self) -> usize {
        match self {
            Self::Plain(text) | Self::Pattern(text) => text.len(),
            Self::Made(_) | Self::Unknown | Self::Into | Self::From => 0,
        }
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Text(text, _) | Self::Output(text, _) => text.len(),
            Self::Variable { name, .. } => name.len(),
        }
    }
}

/// The signs that end a word, beside blanks.
pub(super) const SEPARATORS: &str = ";|&()<>";

pub(super) type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Splits a line into commands, word by word.
pub(super) fn parts(line: &str) -> Vec<Part> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let mut rest = line.chars().peekable();
    // The ends of texts in the following lines, and whether commands in these run.
    let mut texts: Vec<(String, bool)> = Vec::new();
    while let Some(&c) = rest.peek() {
        match c {
            ';' | '|' | '&' | '\n' | '(' | ')' => {
                rest.next();
                // `&>` redirects both outputs.
                let is_both = c == '&' && rest.peek() == Some(&'>');
                if !is_both && !words.is_empty() {
                    all.push(Part::Command(std::mem::take(&mut words)));
                }
                match c {
                    '\n' => {
                        for (end, runs) in texts.drain(..) {
                            let text = pass_text(&mut rest, &end);
                            let inner = if runs { inner(&text) } else { Vec::new() };
                            all.extend(inner.into_iter().map(Part::Inner));
                            all.push(Part::Text(text));
                        }
                    }
                    '(' => all.push(Part::Open),
                    ')' => all.push(Part::Close),
                    _ => {}
                }
            }
            '>' => {
                rest.next();
                while rest.next_if(|it| matches!(it, '>' | '|')).is_some() {}
                // `>&2` and `>&-` write to no file, but `>& FILE` does.
                if !(rest.next_if_eq(&'&').is_some() && pass_descriptor(&mut rest)) {
                    words.push(Word::Into);
                }
            }
            '<' => {
                let mut inner = Vec::new();
                match read_from(&mut rest, &mut inner) {
                    Some(Read::Here(text)) => {
                        all.extend([Part::Command(std::mem::take(&mut words)), Part::Text(text)]);
                    }
                    Some(Read::UpTo(end, runs)) => texts.push((end, runs)),
                    Some(Read::File(file)) => words.extend([Word::From, Word::Plain(file)]),
                    None => {}
                }
                all.extend(inner.into_iter().map(Part::Inner));
            }
            '#' => while rest.next_if(|it| *it != '\n').is_some() {},
            c if c.is_whitespace() => {
                rest.next();
            }
            // Of `2>` only the word after it counts.
            _ if pass_number(&mut rest) => {}
            _ => {
                let mut inner = Vec::new();
                let next = word(&mut rest, &mut inner);
                match list(&next, &mut rest, &mut inner) {
                    Some(list) => all.push(Part::Command(list)),
                    None => words.push(next),
                }
                all.extend(inner.into_iter().map(Part::Inner));
            }
        }
    }
    all.push(Part::Command(words));
    all
}

/// Skips the number or the `{name}` directly before a redirection, which is no word of the command.
fn pass_number(rest: &mut Chars<'_>) -> bool {
    let mut ahead = rest.clone();
    if ahead.next_if_eq(&'{').is_some() {
        let mut letters = 0;
        while ahead.next_if(|it| it.is_ascii_alphanumeric() || *it == '_').is_some() {
            letters += 1;
        }
        if letters == 0 || ahead.next_if_eq(&'}').is_none() {
            return false;
        }
    } else {
        while ahead.next_if(char::is_ascii_digit).is_some() {}
    }
    let is_one = matches!(ahead.peek(), Some('<' | '>'));
    if is_one {
        *rest = ahead;
    }
    is_one
}

/// Skips the text after `>&` or `<&` if it is a descriptor or `-`, and not the name of a file.
fn pass_descriptor(rest: &mut Chars<'_>) -> bool {
    let mut ahead = rest.clone();
    while ahead.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
    let mut is_one = false;
    while ahead.next_if(|it| it.is_ascii_digit() || *it == '-').is_some() {
        is_one = true;
    }
    is_one &= ahead.peek().is_none_or(|it| it.is_whitespace() || SEPARATORS.contains(*it));
    if is_one {
        *rest = ahead;
    }
    is_one
}

/// Turns `name=(…)` into a command that gives the name each of the words, as a loop does.
fn list(word_before: &Word, rest: &mut Chars<'_>, inner: &mut Vec<String>) -> Option<Vec<Word>> {
    let Word::Plain(text) = word_before else { return None };
    let name = text.strip_suffix('=').filter(|_| rest.peek() == Some(&'('))?;
    rest.next();
    let plain = |it: &str| Word::Plain(it.to_owned());
    let mut words = vec![plain("for"), plain(name.trim_end_matches('+')), plain("in")];
    loop {
        while rest.next_if(|it| it.is_whitespace()).is_some() {}
        match rest.peek() {
            None => break,
            Some(')') => {
                rest.next();
                break;
            }
            Some(c) if ";|&(<>".contains(*c) => drop(rest.next()),
            Some(_) => words.push(word(rest, inner)),
        }
    }
    Some(words)
}

/// The input of a command.
enum Read {
    File(String),
    /// A text in this line.
    Here(String),
    /// A text in the following lines, up to its end, and whether commands in it run.
    UpTo(String, bool),
}

fn read_from(rest: &mut Chars<'_>, inner: &mut Vec<String>) -> Option<Read> {
    let mut signs = 0;
    while rest.next_if_eq(&'<').is_some() {
        signs += 1;
    }
    if signs == 2 {
        rest.next_if_eq(&'-');
    }
    if signs == 1 && rest.next_if_eq(&'&').is_some() {
        if !pass_descriptor(rest) {
            word(rest, inner);
        }
        return None;
    }
    while rest.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
    let runs = !rest.peek().is_some_and(|it| matches!(it, '\'' | '"' | '\\'));
    match (signs, word(rest, inner)) {
        (1..=3, Word::Plain(text)) if text.is_empty() => None,
        (1, Word::Plain(file)) => Some(Read::File(file)),
        (2, Word::Plain(end)) => Some(Read::UpTo(end, runs)),
        (3, Word::Plain(text)) => Some(Read::Here(text)),
        _ => None,
    }
}

/// Returns the lines that run within a text, at any place in it.
fn inner(text: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), text.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '`' => all.push(up_to(&mut rest, '`')),
            '$' if rest.next_if_eq(&'(').is_some() => all.push(up_to_close(&mut rest)),
            _ => {}
        }
    }
    all
}

/// Returns the piece of a word after `$` or a backtick.
fn opened(rest: &mut Chars<'_>, begin: char, quoted: bool) -> Piece {
    if begin == '`' {
        return Piece::Output(up_to(rest, '`'), quoted);
    }
    if rest.next_if_eq(&'(').is_some() {
        return Piece::Output(up_to_close(rest), quoted);
    }
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let name: String = match rest.next_if_eq(&'{') {
        Some(_) => up_to(rest, '}'),
        // The arguments of a script or a function.
        None if rest.peek().is_some_and(|it| "@*#?!0123456789".contains(*it)) => {
            rest.next().into_iter().collect()
        }
        None => {
            let mut name = String::new();
            while let Some(c) = rest.next_if(is_name) {
                name.push(c);
            }
            name
        }
    };
    // For a list, any of its values may be meant.
    let name = name.split_once('[').filter(|_| name.ends_with(']')).map_or(&*name, |it| it.0);
    let is_special = matches!(name, "@" | "*");
    // A command in a default value runs.
    let lines = inner(name);
    if !lines.is_empty() {
        return Piece::Output(lines.join("\n"), quoted);
    }
    let end = if is_special { 1 } else { name.find(|c| !is_name(&c)).unwrap_or(name.len()) };
    let (name, behind) = name.split_at(end);
    let or = [":-", ":=", "-", "="].iter().find_map(|it| behind.strip_prefix(it));
    // Nothing is known about `${f%.ts}` and the like, nor about a command within.
    let or = or.filter(|it| !it.contains(['$', '`'])).map(|it| it.trim_matches(['"', '\'']).to_owned());
    let name = if behind.is_empty() || or.is_some() { name } else { "" };
    Piece::Variable { name: name.to_owned(), quoted, or }
}

/// A word while it is read.
#[derive(Default)]
struct Building {
    pieces: Vec<Piece>,
    text: String,
    /// The part of the text outside of quotation marks.
    bare: String,
    pattern: bool,
    /// The lines that run within it.
    inner: Vec<String>,
}

impl Building {
    fn open(&mut self, piece: Piece) {
        if let Piece::Output(line, _) = &piece {
            self.inner.push(line.clone());
        }
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text), self.pattern));
        }
        self.pieces.push(piece);
    }

    /// Reads up to the next quotation mark; the first one is already skipped.
    fn in_quotes(&mut self, rest: &mut Chars<'_>) {
        while let Some(c) = rest.next().filter(|it| *it != '"') {
            match c {
                '$' | '`' => self.open(opened(rest, c, true)),
                '\\' => self.text.extend(rest.next().filter(|it| *it != '\n')),
                c => self.text.push(c),
            }
        }
    }

    fn word(mut self) -> Word {
        let pattern = self.pattern || has_choice(&self.bare);
        if self.pieces.is_empty() {
            return if pattern { Word::Pattern(self.text) } else { Word::Plain(self.text) };
        }
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(self.text, pattern));
        }
        Word::Made(self.pieces)
    }
}

/// Checks whether braces in a word stand for several texts: those of `HEAD@{1}` and `{}` are literal.
fn has_choice(text: &str) -> bool {
    // The text up to each closing brace.
    let mut before: Vec<&str> = text.split('}').collect();
    before.pop();
    let has = |it: &&str| it.split_once('{').is_some_and(|(_, it)| it.contains(',') || it.contains(".."));
    before.iter().any(has)
}

fn word(rest: &mut Chars<'_>, inner: &mut Vec<String>) -> Word {
    let mut building = Building::default();
    let mut is_first = true;
    while let Some(&c) = rest.peek() {
        let was_first = std::mem::take(&mut is_first);
        match c {
            '\'' => {
                rest.next();
                building.text.extend(rest.by_ref().take_while(|it| *it != '\''));
            }
            '"' => {
                rest.next();
                building.in_quotes(rest);
            }
            '\\' => {
                rest.next();
                // A backslash continues a line.
                building.text.extend(rest.next().filter(|it| *it != '\n'));
            }
            '$' | '`' => {
                rest.next();
                match rest.peek() {
                    Some('\'') if c == '$' => {
                        rest.next();
                        building.text.push_str(&escaped(rest));
                    }
                    // A text for translation.
                    Some('"') if c == '$' => {}
                    _ => building.open(opened(rest, c, false)),
                }
            }
            c if c.is_whitespace() || SEPARATORS.contains(c) => break,
            // Elsewhere in a word it is literal, as in `HEAD~1`.
            '~' if was_first => {
                rest.next();
                let is_own = rest.peek().is_none_or(|it| *it == '/' || it.is_whitespace());
                let name = if is_own { "HOME".to_owned() } else { String::new() };
                building.open(Piece::Variable { name, quoted: true, or: None });
            }
            c => {
                building.pattern |= "*?[".contains(c);
                building.text.push(c);
                building.bare.push(c);
                rest.next();
            }
        }
    }
    inner.append(&mut building.inner);
    building.word()
}
