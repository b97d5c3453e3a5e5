//! Command lines as a shell takes them apart: words, where a program's name stands, and what of a word is not known.
//!
//! Nothing is run. Where a shell would decide by what happens (a branch, a loop), all of it counts.

use std::collections::BTreeMap;

use super::budget::Budget;
use super::programs::{LOADED_FROM, OPTIONS_IN};
use provost_base::limits::{LINE_DEPTH_MAX, LINE_WORDS_MAX, VALUES_TIMES_MAX};

/// What stands in a word for what is not known.
const UNKNOWN: char = '\0';

/// Words of a shell after which another command begins.
const GO_ON: [&str; 16] = [
    "!", "builtin", "command", "do", "elif", "else", "env", "eval", "exec", "if", "nohup", "setsid", "then",
    "time", "until", "while",
];

/// One word of a command line, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ShellWord {
    /// What of it is known: all of it, or its end.
    pub(super) text: String,
    /// Whether something before that is not known.
    pub(super) is_end: bool,
}

/// A program with its words, the first of which is its name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Command {
    /// Variables that are set for it or before it.
    pub(super) variables: Vec<(String, String)>,
    /// Its name and its arguments.
    pub(super) words: Vec<ShellWord>,
}

/// The values of variables, as far as they are known.
pub(super) type Variables = BTreeMap<String, String>;

/// The commands of a text, those in it that are handed to another shell and those in substitutions among them.
pub(super) fn commands(text: &str, variables: &Variables, budget: &mut Budget) -> Vec<Command> {
    let mut reader = Reader { variables: variables.clone(), found: Vec::new(), words: 0, budget };
    reader.text(text, LINE_DEPTH_MAX);
    reader.found
}

struct Reader<'a> {
    variables: Variables,
    found: Vec<Command>,
    words: usize,
    budget: &'a mut Budget,
}

/// A word that is being read.
#[derive(Default)]
struct Draft {
    text: String,
    begun: bool,
    /// Quoted, with blanks or operators in it: a line for another shell, perhaps.
    lines: bool,
}

impl Reader<'_> {
    fn text(&mut self, text: &str, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return self.budget.is_not_enough() };
        if !self.budget.read(text.len()) {
            return;
        }
        let (mut command, mut word) = (Vec::new(), Draft::default());
        let mut rest = text.chars().peekable();
        while let Some(next) = rest.next() {
            match next {
                '\\' if !cfg!(windows) => {
                    word.begun = true;
                    match rest.next() {
                        None | Some('\n') => {}
                        Some(escaped) => word.text.push(escaped),
                    }
                }
                '\'' => {
                    word.begun = true;
                    let quoted: String = rest.by_ref().take_while(|it| *it != '\'').collect();
                    word.lines |= is_line(&quoted);
                    word.text.push_str(&quoted);
                }
                '"' => self.quoted(&mut rest, &mut word, depth),
                '$' | '`' => self.variable(next, &mut rest, &mut word, depth),
                '#' if !word.begun => while rest.next_if(|it| *it != '\n').is_some() {},
                ' ' | '\t' | '\r' | '<' | '>' => self.end_word(&mut word, &mut command, depth),
                '\n' | ';' | '&' | '|' | '(' | ')' => {
                    self.end_word(&mut word, &mut command, depth);
                    self.end_command(&mut command);
                }
                '{' | '}' if !word.begun => {}
                other => {
                    word.begun = true;
                    word.text.push(other);
                }
            }
        }
        self.end_word(&mut word, &mut command, depth);
        self.end_command(&mut command);
    }

    fn quoted(&mut self, rest: &mut Rest<'_>, word: &mut Draft, depth: usize) {
        word.begun = true;
        let from = word.text.len();
        while let Some(next) = rest.next() {
            match next {
                '"' => break,
                '\\' => match rest.next() {
                    Some(it @ ('"' | '\\' | '$' | '`')) => word.text.push(it),
                    Some(other) => word.text.extend(['\\', other]),
                    None => {}
                },
                '$' | '`' => self.variable(next, rest, word, depth),
                other => word.text.push(other),
            }
        }
        word.lines |= is_line(&word.text[from..]);
    }

    /// A variable's value, or the mark for what is not known; commands that are substituted are commands, too.
    fn variable(&mut self, sign: char, rest: &mut Rest<'_>, word: &mut Draft, depth: usize) {
        word.begun = true;
        let name: String = match (sign, rest.peek()) {
            ('`', _) => {
                let inner: String = rest.by_ref().take_while(|it| *it != '`').collect();
                self.text(&inner, depth);
                word.text.push(UNKNOWN);
                return;
            }
            (_, Some('(')) => {
                let inner = balanced(rest);
                self.text(&inner, depth);
                match inner.trim() {
                    "pwd" | "git rev-parse --show-toplevel" => word.text.push('.'),
                    _ => word.text.push(UNKNOWN),
                }
                return;
            }
            (_, Some('{')) => {
                rest.next();
                rest.by_ref().take_while(|it| *it != '}').collect()
            }
            (_, Some(it)) if it.is_ascii_alphabetic() || *it == '_' => {
                let mut name = String::new();
                while let Some(it) = rest.next_if(|it| it.is_ascii_alphanumeric() || *it == '_') {
                    name.push(it);
                }
                name
            }
            (_, Some(it)) if it.is_ascii_digit() || "@*#?-$!".contains(*it) => {
                rest.next();
                String::new()
            }
            _ => return word.text.push('$'),
        };
        match self.variables.get(&name) {
            // One that is made of itself grows twofold each time.
            Some(value) if self.budget.read(value.len()) => word.text.push_str(value),
            _ => word.text.push(UNKNOWN),
        }
    }

    fn end_word(&mut self, word: &mut Draft, command: &mut Vec<String>, depth: usize) {
        let Draft { text, begun, lines } = std::mem::take(word);
        if !begun {
            return;
        }
        if self.words >= LINE_WORDS_MAX {
            return self.budget.is_not_enough();
        }
        self.words += 1;
        if lines {
            self.text(&text, depth);
        }
        command.push(text);
    }

    fn end_command(&mut self, words: &mut Vec<String>) {
        let mut words = std::mem::take(words).into_iter().peekable();
        let mut command = Command::default();
        loop {
            while words.next_if(|it| GO_ON.contains(&it.as_str())).is_some() {}
            let is_export = |it: &String| matches!(it.as_str(), "export" | "local" | "readonly" | "declare");
            if words.next_if(is_export).is_some() {
                continue;
            }
            let Some(set) = words.next_if(|it| assigned(it).is_some()) else { break };
            if let Some((name, value)) = assigned(&set) {
                command.variables.push((name.to_owned(), value.to_owned()));
                self.variables.insert(name.to_owned(), value.to_owned());
            }
        }
        command.words = words.map(|text| known_of(&text)).collect();
        if !command.words.is_empty() || !command.variables.is_empty() {
            self.found.push(command);
        }
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// What stands between a bracket and the one that closes it.
fn balanced(rest: &mut Rest<'_>) -> String {
    let (mut inner, mut open) = (String::new(), 0_usize);
    for next in rest.by_ref() {
        match next {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        inner.push(next);
    }
    inner.split_off(inner.len().min(1))
}

fn is_line(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || ";&|$`".contains(c))
}

fn assigned(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

fn known_of(text: &str) -> ShellWord {
    match text.rsplit_once(UNKNOWN) {
        Some((_, end)) => ShellWord { text: end.to_owned(), is_end: true },
        None => ShellWord { text: text.to_owned(), is_end: false },
    }
}

/// Values of a settings file that are command lines or words of one, by the names of their keys; in JSON, TOML and YAML
/// alike, without a parser for each: a value that is missed is one that such a name does not stand before.
pub(super) fn values(text: &str, budget: &mut Budget) -> Vec<String> {
    let mut found = Vec::new();
    // A program and its arguments, which stand beside each other in either order.
    let (mut program, mut arguments) = ("args".to_owned(), String::new());
    // Each value is a part of the text, and may be so to many keys.
    let mut left = VALUES_TIMES_MAX * (text.len() + VALUES_TIMES_MAX);
    for (at, _) in text.match_indices([':', '=']) {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let before = before.strip_suffix(['"', '\'']).unwrap_or(before);
        let key =
            before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
        let is_of_mise = |name: &str| before.strip_suffix(name).is_some_and(|it| it.ends_with("_."));
        let adds_to = LOADED_FROM.contains(&key) || OPTIONS_IN.iter().any(|it| it.0 == key);
        if !(is_key(key) || adds_to || is_of_mise("path") || is_of_mise("source")) {
            continue;
        }
        let (value, seen) = value_at(text, at);
        let words = if value.starts_with('"') { value.clone() } else { quoted(&value) };
        let lines = match key {
            _ if adds_to => vec![format!("{key}={words}")],
            "path" => vec![format!("PATH_add {}", words.replace("{{config_root}}", "."))],
            "source" => vec![format!(". {}", words.replace("{{config_root}}", "."))],
            "args" => {
                arguments = value;
                vec![format!("{program} {arguments}")]
            }
            "command" => {
                program = value;
                // A name with blanks in it, or a line.
                let whole = Some(quoted(&program)).filter(|_| program.contains(' '));
                [program.clone(), format!("{program} {arguments}")].into_iter().chain(whole).collect()
            }
            _ => vec![value],
        };
        let cost = seen + lines.iter().map(String::len).sum::<usize>();
        let Some(rest) = left.checked_sub(cost).filter(|_| budget.read(cost)) else {
            budget.is_not_enough();
            break;
        };
        left = rest;
        found.extend(lines);
    }
    found
}

/// The value behind a key whose sign stands here, and how much was looked at for it.
fn value_at(text: &str, at: usize) -> (String, usize) {
    let value = text[at + 1..].trim_start_matches([' ', '\t']);
    if let Some(list) = value.strip_prefix('[') {
        let (words, seen) = strings(list, ']', usize::MAX);
        return (words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "), seen);
    }
    if value.starts_with(['"', '\'']) {
        let (words, seen) = strings(value, '\n', 1);
        return (words.into_iter().next().unwrap_or_default(), seen);
    }
    if !value.starts_with(['|', '>', '\n', '\r']) {
        let line = value.lines().next().unwrap_or_default();
        return (line.trim_end_matches([',', ' ', '\r']).to_owned(), line.len());
    }
    // How far the line's first letter is in, for what follows it further in.
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let line_of_key = text[..at].rfind('\n').map_or(0, |it| it + 1);
    let (is_list, far) = (value.starts_with(['\n', '\r']), indent(&text[line_of_key..at]));
    let is_in =
        |it: &&str| it.trim().is_empty() || indent(it) > far || is_list && it.trim_start().starts_with('-');
    let (mut inner, mut seen) = (Vec::new(), at - line_of_key);
    for line in value.lines().skip(1).take_while(is_in) {
        seen += line.len() + 1;
        inner.push(line.trim().trim_start_matches("- "));
    }
    (inner.join(if is_list { " " } else { "\n" }), seen)
}

fn is_key(key: &str) -> bool {
    const KEYS: [&str; 14] = [
        "args",
        "bash",
        "cmd",
        "command",
        "commands",
        "entry",
        "exec",
        "executable",
        "linux",
        "notify",
        "osx",
        "run",
        "script",
        "windows",
    ];
    KEYS.contains(&key)
        || ["Command", "Helper", "Script", "_command", "_script", "Refresh"]
            .iter()
            .any(|it| key.ends_with(it))
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The strings of a list, up to where it ends, or so many; and how much was looked at.
fn strings(text: &str, end: char, most: usize) -> (Vec<String>, usize) {
    let (mut found, mut rest) = (Vec::new(), text.chars());
    while found.len() < most
        && let Some(next) = rest.next()
        && next != end
    {
        if next == '"' || next == '\'' {
            let mut string = String::new();
            while let Some(it) = rest.next() {
                match it {
                    it if it == next => break,
                    '\\' if next == '"' => {
                        string.extend(rest.next().map(|it| if it == 'n' { '\n' } else { it }))
                    }
                    it => string.push(it),
                }
            }
            found.push(string);
        }
    }
    (found, text.len() - rest.as_str().len())
}
