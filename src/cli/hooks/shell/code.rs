//! Code in a line for an interpreter: `python -c`, `node -e`, a text for `python3 -`.
//!
//! The code is neither run nor understood. This module finds calls that are known to write, such as `open(path, "w")`,
//! `write_text` and `writeFileSync`, with texts as their arguments, or names that were given such a text; and lines for a shell.

use std::collections::BTreeMap;

use super::programs::{is_option, name, text};
use super::words::Word;
use provost_base::limits::{
    CODE_PLACES_MAX, CODE_SPAN_MAX, CODE_TEXT_BYTES_MAX, CODE_TEXTS_MAX, CODE_WORK_MAX,
};

/// The way in which a language writes comments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Language {
    /// After `#`: Python, Ruby, Perl.
    Hash,
    /// After `//`: JavaScript, PHP.
    Slashes,
}

/// The effects of code.
#[derive(Default, Debug)]
pub(super) struct Done {
    /// The files that it writes, or patterns for them.
    pub(super) paths: Vec<String>,
    /// The lines that it runs in a shell.
    pub(super) lines: Vec<String>,
    /// Whether it writes at all.
    writes: bool,
    /// Whether it writes the files that its command is given.
    pub(super) writes_given: bool,
    /// Whether finding the effects would cost more than the bounds.
    pub(super) gave_up: bool,
}

/// The cost of reading code, for each byte of it, beside the cost of a line.
pub(super) const COST: usize = 4;

/// The text that stands for too many texts.
const TOO_MANY: &str = "\0";

/// Interpreters with their language, and with their options of one letter, and of a word, that precede code.
const INTERPRETERS: &[(&str, Language, &str, &[&str])] = &[
    ("python", Language::Hash, "c", &[]),
    ("pypy", Language::Hash, "c", &[]),
    ("ruby", Language::Hash, "e", &[]),
    ("perl", Language::Hash, "eE", &[]),
    ("node", Language::Slashes, "ep", &["--eval", "--print"]),
    ("bun", Language::Slashes, "ep", &["--eval", "--print"]),
    ("tsx", Language::Slashes, "ep", &["--eval", "--print"]),
    ("ts-node", Language::Slashes, "ep", &["--eval", "--print"]),
    ("deno", Language::Slashes, "", &["eval"]),
    ("php", Language::Slashes, "r", &[]),
];

fn interpreter(
    words: &[Word],
) -> Option<&'static (&'static str, Language, &'static str, &'static [&'static str])> {
    let name = name(words)?;
    let versions = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|it| name.strip_prefix(it.0).is_some_and(versions))
}

/// Returns the code that an interpreter gets as an argument.
pub(super) fn told(words: &[Word]) -> Option<(Language, String)> {
    let (_, language, letters, long) = interpreter(words)?;
    let rest = &words[1..];
    let is_code = |it: &str| {
        let short = it.strip_prefix('-').filter(|it| !it.starts_with('-'));
        long.contains(&it) || short.is_some_and(|it| it.ends_with(|c| letters.contains(c)))
    };
    let places = rest.iter().enumerate().filter(|(_, it)| text(it).is_some_and(is_code));
    let codes: Vec<&str> = places.filter_map(|(at, _)| text(rest.get(at + 1)?)).collect();
    (!codes.is_empty()).then(|| (*language, codes.join("\n")))
}

/// Returns the language of the code that a program reads from its input.
pub(super) fn is_taken_by(words: &[Word]) -> Option<Language> {
    let (_, language, _, _) = interpreter(words)?;
    let is_free = told(words).is_some() || words.iter().any(|it| text(it) == Some("-m"));
    let reads = words[1..].iter().all(|it| is_option(it) || text(it) == Some("-"));
    // The words after `-` are arguments of the code.
    let reads = reads || words.get(1).and_then(text) == Some("-");
    (reads && !is_free).then_some(*language)
}

/// Checks whether code writes any file.
pub(super) fn writes(language: Language, code: &str) -> bool {
    let done = done_by(language, code);
    done.writes || done.gave_up
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Text(String),
    Name(String),
    Sign(char),
    End,
}

fn tokens(language: Language, code: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let is_comment = match language {
            Language::Hash => c == '#',
            Language::Slashes => rest.starts_with("//"),
        };
        if is_comment {
            rest = rest.find('\n').map_or("", |at| &rest[at..]);
        } else if matches!(c, '\'' | '"' | '`') {
            let three = [c; 3].iter().collect::<String>();
            let mark = if c != '`' && rest.starts_with(&three) { three } else { c.to_string() };
            let (text, behind) = quoted(&rest[mark.len()..], &mark);
            match language == Language::Hash && c == '`' {
                // Ruby and Perl run this text in a shell.
                true => all.extend([
                    Token::Name("system".into()),
                    Token::Sign('('),
                    Token::Text(text),
                    Token::Sign(')'),
                ]),
                false => all.push(Token::Text(text)),
            }
            rest = behind;
        } else if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            all.push(Token::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            match c {
                '\n' | ';' => all.push(Token::End),
                c if c.is_whitespace() => {}
                c => all.push(Token::Sign(c)),
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    all
}

/// Returns a text up to the mark that ends it, and the rest after the mark.
fn quoted<'a>(rest: &'a str, mark: &str) -> (String, &'a str) {
    let mut text = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        if rest[at..].starts_with(mark) {
            return (text, &rest[at + mark.len()..]);
        }
        match c {
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            c => text.push(c),
        }
    }
    (text, "")
}

/// The arguments of a call that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Writes {
    First,
    Second,
    Both,
    /// The object that it is called on.
    Receiver,
    /// The object that it is called on, and the argument.
    Moves,
    /// A line that a shell runs.
    Line,
}

/// Functions that write: each with the names that may stand before its dot, and with the arguments that it writes.
const FUNCTIONS: &[(&str, &[&str], Writes)] = &[
    ("writeFileSync", &[], Writes::First),
    ("writeFile", &[], Writes::First),
    ("appendFileSync", &[], Writes::First),
    ("appendFile", &[], Writes::First),
    ("outputFileSync", &[], Writes::First),
    ("outputFile", &[], Writes::First),
    ("writeJsonSync", &[], Writes::First),
    ("writeJson", &[], Writes::First),
    ("writeTextFileSync", &[], Writes::First),
    ("writeTextFile", &[], Writes::First),
    ("createWriteStream", &[], Writes::First),
    ("truncateSync", &[], Writes::First),
    ("unlinkSync", &[], Writes::First),
    ("rmSync", &[], Writes::First),
    ("rmtree", &[], Writes::First),
    ("file_put_contents", &[], Writes::First),
    ("write_file", &[], Writes::First),
    ("removedirs", &["os"], Writes::First),
    ("truncate", &["os", "fs", "File"], Writes::First),
    ("remove", &["os", "fs", "Deno"], Writes::First),
    ("removeSync", &["fs", "Deno"], Writes::First),
    ("unlink", &["os", "fs", "File", "fsp", "promises"], Writes::First),
    ("rm", &["fs", "fsp", "promises", "FileUtils"], Writes::First),
    ("rm_f", &["FileUtils"], Writes::First),
    ("rm_rf", &["FileUtils"], Writes::First),
    ("delete", &["File"], Writes::First),
    ("write", &["File", "IO", "Bun"], Writes::First),
    ("binwrite", &["File", "IO"], Writes::First),
    ("renameSync", &[], Writes::Both),
    ("rename", &["os", "fs", "fsp", "promises", "File", "Deno"], Writes::Both),
    ("renames", &["os"], Writes::Both),
    ("replace", &["os"], Writes::Both),
    ("move", &["shutil"], Writes::Both),
    ("mv", &["FileUtils"], Writes::Both),
    ("copyFileSync", &[], Writes::Second),
    ("copyFile", &["fs", "fsp", "promises", "Deno"], Writes::Second),
    ("cpSync", &[], Writes::Second),
    ("copy", &["shutil"], Writes::Second),
    ("copy2", &["shutil"], Writes::Second),
    ("copyfile", &["shutil"], Writes::Second),
    ("copytree", &["shutil"], Writes::Second),
    ("cp", &["FileUtils", "fs"], Writes::Second),
    ("symlink", &["os"], Writes::Second),
    ("write_text", &[], Writes::Receiver),
    ("write_bytes", &[], Writes::Receiver),
    ("system", &[], Writes::Line),
    ("popen", &["os"], Writes::Line),
    ("execSync", &[], Writes::Line),
    ("execFileSync", &[], Writes::Line),
    ("spawnSync", &[], Writes::Line),
    ("run", &["subprocess"], Writes::Line),
    ("call", &["subprocess"], Writes::Line),
    ("check_call", &["subprocess"], Writes::Line),
    ("check_output", &["subprocess"], Writes::Line),
];

/// Finds the effects of code, as far as its calls and the texts in it tell them.
pub(super) fn done_by(language: Language, code: &str) -> Done {
    let tokens = tokens(language, code);
    let mut done = Done::default();
    let Some(known) = given(&tokens) else {
        done.gave_up = true;
        return done;
    };
    let mut calls = 0;
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(function) = token else { continue };
        if !is_known(function) {
            continue;
        }
        let Some((arguments, is_whole)) = arguments(&tokens[at + 1..]) else { continue };
        calls += 1;
        if calls > CODE_PLACES_MAX || !is_whole {
            done.gave_up = true;
            return done;
        }
        let call = Call { before: &tokens[..at], arguments };
        match function.as_str() {
            "open" | "openSync" | "fopen" => call.opens(&known, &mut done),
            "input" if call.says_inplace() => call.writes(Writes::First, &known, &mut done),
            // The method of a path; that of a text has two arguments.
            "unlink" if call.arguments.iter().all(|it| it.is_empty()) => {
                call.writes(Writes::Receiver, &known, &mut done);
            }
            // Functions of Perl and PHP.
            "copy" if !call.is_of_object() => call.writes(Writes::Second, &known, &mut done),
            "unlink" | "rename" | "move" if !call.is_of_object() => {
                call.writes(Writes::Both, &known, &mut done)
            }
            "rename" | "replace" if call.arguments.len() == 1 => {
                call.writes(Writes::Moves, &known, &mut done)
            }
            function => {
                let is =
                    |it: &&(&str, &[&str], Writes)| it.0 == function && (it.1.is_empty() || call.is_of(it.1));
                if let Some((_, _, what)) = FUNCTIONS.iter().find(is) {
                    call.writes(*what, &known, &mut done);
                }
            }
        }
    }
    done
}

/// Checks whether a function may be one that writes.
fn is_known(function: &str) -> bool {
    matches!(function, "open" | "openSync" | "fopen" | "input") || FUNCTIONS.iter().any(|it| it.0 == function)
}

/// A call of a function.
struct Call<'a> {
    before: &'a [Token],
    arguments: Vec<&'a [Token]>,
}

type VariableValues = BTreeMap<String, Vec<String>>;

impl Call<'_> {
    fn is_of_object(&self) -> bool {
        self.before.last() == Some(&Token::Sign('.'))
    }

    fn is_of(&self, names: &[&str]) -> bool {
        match self.before {
            [.., Token::Name(name), Token::Sign('.')] => names.contains(&name.as_str()),
            _ => false,
        }
    }

    fn says_inplace(&self) -> bool {
        let inplace = |it: &Token| matches!(it, Token::Name(name) if name == "inplace");
        self.arguments.iter().any(|it| it.iter().any(inplace))
    }

    /// Returns the tokens before the dot.
    fn receiver(&self) -> &[Token] {
        let [before @ .., Token::Sign('.')] = self.before else { return &[] };
        let before = &before[before.len().saturating_sub(CODE_SPAN_MAX)..];
        let mut depth = 0_usize;
        for (at, token) in before.iter().enumerate().rev() {
            match token {
                Token::Sign(')' | ']') => depth += 1,
                Token::Sign('(' | '[') if depth > 0 => depth -= 1,
                Token::Sign('.') | Token::Name(_) => {}
                _ if depth > 0 => {}
                _ => return &before[at + 1..],
            }
        }
        before
    }

    fn writes(&self, what: Writes, known: &VariableValues, done: &mut Done) {
        let argument = |at: usize| self.arguments.get(at).copied().unwrap_or_default();
        let written: Vec<&[Token]> = match what {
            Writes::First => vec![argument(0)],
            Writes::Second => vec![argument(1)],
            Writes::Both => vec![argument(0), argument(1)],
            Writes::Receiver => vec![self.receiver()],
            Writes::Moves => vec![self.receiver(), argument(0)],
            Writes::Line => return done.lines.extend(line(&self.arguments)),
        };
        done.writes = true;
        let is_given = |it: &Token| matches!(it, Token::Name(it) if it == "argv" || it == "ARGV");
        for expression in written {
            done.writes_given |= expression.iter().any(is_given);
            match texts(expression, known) {
                Some(texts) => done.paths.extend(texts),
                None => done.gave_up = true,
            }
        }
    }

    /// Adds a file that is opened for writing, by its mode.
    fn opens(&self, known: &VariableValues, done: &mut Done) {
        let text = |at: usize| self.arguments.get(at).and_then(|it| it.iter().find_map(of_text));
        let is_mode = |it: &str| it.len() <= 4 && it.starts_with(['r', 'w', 'a', 'x']);
        let writes = |it: &str| is_mode(it) && it.contains(['w', 'a', 'x', '+']);
        // In Perl the mode stands before the path, or at its beginning.
        let perl = |it: &str| it.starts_with('>') || it.starts_with("+<");
        let named =
            self.arguments.iter().find(|it| matches!(it.first(), Some(Token::Name(it)) if it == "mode"));
        let named = named.and_then(|it| it.iter().find_map(of_text));
        let flags = self.arguments.get(1).copied().unwrap_or_default();
        let flag = |it: &Token| matches!(it, Token::Name(it) if it.starts_with("O_") && it != "O_RDONLY" && it != "O_CLOEXEC");
        if flags.iter().any(flag) {
            self.writes(Writes::First, known, done);
        } else if text(1).is_some_and(perl) {
            done.writes = true;
            let given = |it: &Token| matches!(it, Token::Name(it) if it == "ARGV");
            done.writes_given |= self.arguments.get(2).is_some_and(|it| it.iter().any(given));
            let path = self.arguments.get(2).map_or_else(
                || {
                    text(1)
                        .map(|it| it.trim_start_matches(['>', '+', '<', ' ']).to_owned())
                        .into_iter()
                        .collect()
                },
                |it| texts(it, known).unwrap_or_default(),
            );
            done.paths.extend(path);
        } else if named.or(text(1)).is_some_and(writes) {
            self.writes(Writes::First, known, done);
        } else if self.is_of_object() && text(0).is_some_and(writes) {
            self.writes(Writes::Receiver, known, done);
        }
    }
}

fn of_text(token: &Token) -> Option<&str> {
    match token {
        Token::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the arguments after a function's name: between parentheses, or, as in Perl and Ruby, up to the end; and
/// whether their end was found.
fn arguments(rest: &[Token]) -> Option<(Vec<&[Token]>, bool)> {
    let is_whole = rest.len() <= CODE_SPAN_MAX;
    let rest = &rest[..rest.len().min(CODE_SPAN_MAX)];
    let in_parentheses = match rest.first()? {
        Token::Sign('(') => true,
        Token::Text(_) | Token::Name(_) | Token::Sign('$') => false,
        _ => return None,
    };
    let rest = if in_parentheses { &rest[1..] } else { rest };
    let (mut all, mut depth, mut from) = (Vec::new(), 0_usize, 0);
    for (at, token) in rest.iter().enumerate() {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')') if depth == 0 && in_parentheses => {
                all.push(&rest[from..at]);
                return Some((all, true));
            }
            Token::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Sign(',') if depth == 0 => {
                all.push(&rest[from..at]);
                from = at + 1;
            }
            Token::End if !in_parentheses => {
                all.push(&rest[from..at]);
                return Some((all, true));
            }
            _ => {}
        }
    }
    all.push(&rest[from..]);
    Some((all, is_whole))
}

/// Returns the texts that an expression may be: its own texts, put together as a path, and those that its names were
/// given; `None` if these are too many.
fn texts(expression: &[Token], known: &VariableValues) -> Option<Vec<String>> {
    let own: Vec<&str> = expression.iter().filter_map(of_text).collect();
    let names = expression.iter().filter_map(|it| match it {
        Token::Name(name) => known.get(name),
        _ => None,
    });
    let named: Vec<String> = names.flatten().take(CODE_TEXTS_MAX + 1).cloned().collect();
    if own.len() * (named.len() + 1) + named.len() > CODE_TEXTS_MAX || named.iter().any(|it| it == TOO_MANY) {
        return None;
    }
    let mut all: Vec<String> = own.iter().map(|it| (*it).to_owned()).collect();
    if own.len() > 1 {
        all.push(own.join("/"));
    }
    // A name followed by a text, as in `folder / "file"` and `path.join(folder, file)`.
    all.extend(named.iter().flat_map(|it| own.iter().map(move |own| format!("{it}/{own}"))));
    all.extend(named);
    // A text such as `f"src/{name}.ts"` may be any file with such a name.
    all.iter_mut().for_each(|it| *it = with_any(it));
    all.retain(|it| !it.is_empty() && it.len() <= CODE_TEXT_BYTES_MAX && !it.contains('\n'));
    Some(all)
}

/// Returns a text with stars in place of the values that are inserted later.
fn with_any(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '%']) {
        let (before, behind) = rest.split_at(at);
        let end = match behind.strip_prefix('{') {
            Some(inner) => inner.find('}').map(|end| end + 2),
            None => behind.starts_with("%s").then_some(2),
        };
        made.push_str(if behind.starts_with('{') { before.trim_end_matches('$') } else { before });
        match end {
            Some(_) => made.push('*'),
            None => made.push_str(&behind[..1]),
        }
        rest = &behind[end.unwrap_or(1)..];
    }
    made.push_str(rest);
    if made == "*" { "**/*".to_owned() } else { made }
}

/// Returns the texts that names are given: `path = "src/a.ts"`, `for path in [..]`; `None` if these are too many.
fn given(tokens: &[Token]) -> Option<VariableValues> {
    let mut known = VariableValues::new();
    let mut work = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let names: Vec<&String> = match token {
            Token::Sign('=') if !matches!(tokens.get(at + 1), Some(Token::Sign('=' | '>'))) => {
                tokens[..at].last().and_then(of_name).into_iter().collect()
            }
            Token::Name(word) if matches!(word.as_str(), "in" | "of") => {
                let is_of_list = |it: &&Token| matches!(it, Token::Name(_) | Token::Sign(','));
                tokens[..at]
                    .iter()
                    .rev()
                    .take(CODE_SPAN_MAX)
                    .take_while(is_of_list)
                    .filter_map(of_name)
                    .collect()
            }
            _ => continue,
        };
        let mut depth = 0_usize;
        let is_part = |it: &&Token| {
            match it {
                Token::Sign('(' | '[' | '{') => depth += 1,
                Token::Sign(')' | ']' | '}') if depth == 0 => return false,
                Token::Sign(')' | ']' | '}') => depth -= 1,
                Token::End | Token::Sign(':') if depth == 0 => return false,
                _ => {}
            }
            true
        };
        let length = tokens[at + 1..].iter().take_while(is_part).count();
        work += length + names.len();
        if work > CODE_WORK_MAX {
            return None;
        }
        // A list as long as this one is data, and is not read for names of files.
        let Some(values) = texts(&tokens[at + 1..at + 1 + length], &known) else {
            for name in names {
                known.insert(name.clone(), vec![TOO_MANY.to_owned()]);
            }
            continue;
        };
        for name in names {
            let all = known.entry(name.clone()).or_default();
            let new: Vec<String> = values.iter().filter(|it| !all.contains(it)).cloned().collect();
            all.extend(new);
            if all.len() > CODE_TEXTS_MAX {
                *all = vec![TOO_MANY.to_owned()];
            }
        }
    }
    Some(known)
}

fn of_name(token: &Token) -> Option<&String> {
    match token {
        Token::Name(name) => Some(name),
        _ => None,
    }
}

/// Returns the line that a shell runs: a text, or a list of words.
fn line(arguments: &[&[Token]]) -> Option<String> {
    let is_list = |it: &[Token]| it.first() == Some(&Token::Sign('['));
    let first = arguments.first()?;
    let words: Vec<&str> = match arguments.get(1) {
        // The program, and the list of its arguments.
        Some(more) if !is_list(first) && is_list(more) => {
            first.iter().chain(*more).filter_map(of_text).collect()
        }
        _ if is_list(first) => first.iter().filter_map(of_text).collect(),
        _ => return first.iter().find_map(of_text).map(str::to_owned),
    };
    let quoted = |it: &&str| format!("'{}'", it.replace('\'', "'\\''"));
    Some(words.iter().map(quoted).collect::<Vec<_>>().join(" "))
}
