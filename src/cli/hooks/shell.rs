//! Shell commands: the files that one plainly writes.
//!
//! What a command does cannot be told from its words, and nothing here tries to. Found are redirections and the
//! arguments of a few programs that everybody uses; a word with a variable, a pattern or a command in it is passed over.
//! That keeps honest agents off what others have; it holds nobody who does not want to be held.

/// Programs whose every argument is written or removed.
const WRITE_ALL: &[&str] = &["rm", "unlink", "tee", "truncate", "shred", "rmdir", "mv", "patch"];

/// Programs whose last argument is written.
const WRITE_LAST: &[&str] = &["cp", "install", "ln", "rsync"];

/// Programs that write their arguments where an option says so.
const WRITE_IN_PLACE: &[&str] = &["sed", "gsed", "perl", "ruby"];

/// The paths that a command writes, as far as its words say so.
pub(super) fn written(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    for words in commands(command) {
        of_one(&words, &mut found);
    }
    found
}

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Word {
    /// To the letter.
    Plain(String),
    /// What it means is only known when it is run.
    Open,
    /// What comes next is written to.
    Into,
}

fn of_one(words: &[Word], found: &mut Vec<String>) {
    let mut plain: Vec<&str> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word {
            Word::Plain(text) => plain.push(text),
            Word::Open => plain.push("$"),
            Word::Into => {
                if let Some(Word::Plain(path)) = words.next() {
                    found.push(path.clone());
                }
            }
        }
    }
    let is_setting =
        |it: &&str| it.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
    let mut plain = plain.into_iter().skip_while(is_setting).peekable();
    while plain
        .next_if(|it| matches!(*it, "sudo" | "env" | "command" | "exec" | "time" | "nice" | "nohup"))
        .is_some()
    {}
    let Some(program) = plain.next() else { return };
    let program = program.rsplit('/').next().unwrap_or(program);
    let rest: Vec<&str> = plain.collect();
    let mut paths = rest.iter().filter(|it| !it.starts_with('-') && **it != "$").map(|it| (*it).to_owned());
    match program {
        it if WRITE_ALL.contains(&it) => found.extend(paths),
        it if WRITE_LAST.contains(&it) => found.extend(paths.next_back()),
        it if WRITE_IN_PLACE.contains(&it) && rest.iter().any(|it| is_in_place(it)) => found.extend(paths),
        "dd" => found.extend(rest.iter().filter_map(|it| it.strip_prefix("of=")).map(str::to_owned)),
        "git" if matches!(rest.first(), Some(&("rm" | "mv" | "checkout" | "restore"))) => {
            found.extend(paths.skip(1));
        }
        _ => {}
    }
}

fn is_in_place(option: &str) -> bool {
    let short = option.starts_with('-') && !option.starts_with("--");
    option.starts_with("--in-place") || (short && option.contains('i'))
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The commands of a line, word by word.
fn commands(line: &str) -> Vec<Vec<Word>> {
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
                    all.push(std::mem::take(&mut words));
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
    all.push(words);
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
    let (mut text, mut open) = (String::new(), false);
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
                open |= "$`*?[{~".contains(c);
                text.push(c);
                rest.next();
            }
        }
    }
    // `2>` names no file, and its number is none either.
    let is_number = rest.peek() == Some(&'>') && text.chars().all(|it| it.is_ascii_digit());
    match open || is_number {
        true => Word::Open,
        false => Word::Plain(text),
    }
}
