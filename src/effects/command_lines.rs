//! Splits command lines as a shell does: finds the words, the place of a program's name, and the unknown parts of a word.
//!
//! Runs nothing. Where a shell would choose at run time (a branch, a loop), all alternatives count.

mod alternatives;
mod pipelines;
mod quoting;
mod settings_values;

use std::collections::BTreeMap;

use super::budget::Budget;
use super::programs::SHELLS;
use alternatives::{CHOICE, CHOSEN, OR, UNKNOWN, each_of, loop_value, one_of};
use pipelines::{given_by, handed_on, names_of, started_by};
use provost_base::limits::{LINE_DEPTH_MAX, LINE_WORDS_MAX, WORD_CHOICES_MAX};
use quoting::{Rest, ahead_of, balanced, braced, default_of, unescaped};
pub(super) use settings_values::{all_values, values};

/// Shell words after which another command begins.
const GO_ON: [&str; 16] = [
    "!", "builtin", "command", "do", "elif", "else", "env", "eval", "exec", "if", "nohup", "setsid", "then",
    "time", "until", "while",
];

/// One word of a command line, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ShellWord {
    /// The known part: the whole word, or its end.
    pub(super) text: String,
    /// Whether an unknown part stands before `text`.
    pub(super) is_end: bool,
    /// The folder of a word whose rest is a pattern or unknown.
    pub(super) open: Option<OpenPart>,
}

/// A word whose beginning is known, and whose rest is a pattern or not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenPart {
    /// The folder before the open part, with its last separator; empty for the folder in which the command starts.
    pub(super) folder: String,
    /// The rest: `*` and the like as in a shell, and `**` for an unknown part.
    pub(super) pattern: String,
}

/// A command: its words, beginning with the program's name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Command {
    /// The variables that are set for the command or before it.
    pub(super) variables: Vec<(String, String)>,
    /// The program's name and its arguments.
    pub(super) words: Vec<ShellWord>,
}

/// The values of variables, as far as they are known.
pub(super) type Variables = BTreeMap<String, String>;

/// Returns the commands of a text, with those in it that go to another shell and those in substitutions.
pub(super) fn commands(text: &str, variables: &Variables, budget: &mut Budget) -> Vec<Command> {
    let (variables, found) = (variables.clone(), Vec::new());
    let (fed, names) = (Vec::new(), Vec::new());
    let mut reader = Reader { variables, found, words: 0, fed, names, array: None, is_prose: false, budget };
    reader.text(text, LINE_DEPTH_MAX);
    reader.found
}

struct Reader<'a> {
    variables: Variables,
    found: Vec<Command>,
    words: usize,
    /// The commands before the present one in a pipe, whose output it reads.
    fed: Vec<Vec<String>>,
    /// Names that the commands of a substitution print.
    names: Vec<String>,
    /// The array that is being read: its name and its words.
    array: Option<(String, Vec<String>)>,
    /// Whether the text is an argument of a program that runs no lines: often a regular expression.
    is_prose: bool,
    budget: &'a mut Budget,
}

/// The place of the reader within `case … in … esac`.
#[derive(Default)]
struct Cases {
    open: usize,
    /// Whether the next words are a pattern, and no command.
    is_pattern: bool,
    /// Whether the reader is within `[[ … ]]`, which is a pattern as a whole.
    is_test: bool,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// A pipe: the output goes to the next command.
    Pipe,
    /// A bracket is closed, or a pattern ends.
    Bracket,
    /// A branch of `case` ends.
    Branch,
    Other,
}

/// The ways in which a script names the folder that it lies in.
const OWN_FOLDER: [&str; 7] = [
    "dirname \"$0\"",
    "dirname -- \"$0\"",
    "dirname $0",
    "dirname \"$BASH_SOURCE\"",
    "dirname \"${BASH_SOURCE[0]}\"",
    "dirname -- \"${BASH_SOURCE[0]}\"",
    "dirname ${BASH_SOURCE[0]}",
];

/// A word that is being read.
#[derive(Default)]
struct Draft {
    text: String,
    begun: bool,
    /// Whether a quoted part has blanks or operators, and so may be a line for another shell.
    lines: bool,
    /// The number of open braces.
    choices: usize,
}

impl Reader<'_> {
    fn text(&mut self, text: &str, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return self.budget.is_not_enough() };
        if !self.budget.read(text.len()) {
            return;
        }
        let fed = std::mem::take(&mut self.fed);
        let (mut command, mut word, mut cases) = (Vec::new(), Draft::default(), Cases::default());
        let mut rest = text.chars().peekable();
        while let Some(next) = rest.next() {
            let ending = match next {
                ' ' | '\t' | '\r' | '<' | '>' => {
                    self.end_word(&mut word, &mut command, depth);
                    continue;
                }
                '|' if rest.next_if_eq(&'|').is_none() => Ending::Pipe,
                ';' if rest.next_if(|it| matches!(it, ';' | '&')).is_some() => Ending::Branch,
                ')' => Ending::Bracket,
                '(' if word.text.ends_with('=') => {
                    self.array = Some((word.text.trim_end_matches(['=', '+']).to_owned(), Vec::new()));
                    cases.is_pattern = true;
                    Ending::Other
                }
                '\n' | ';' | '&' | '|' | '(' => Ending::Other,
                other => {
                    self.sign(other, &mut rest, &mut word, depth);
                    continue;
                }
            };
            self.end_word(&mut word, &mut command, depth);
            self.end_command(&mut command, ending, &mut cases);
        }
        self.end_word(&mut word, &mut command, depth);
        self.end_command(&mut command, Ending::Other, &mut cases);
        self.fed = fed;
    }

    /// Reads a sign that belongs to a word.
    fn sign(&mut self, next: char, rest: &mut Rest<'_>, word: &mut Draft, depth: usize) {
        match next {
            '\\' if !cfg!(windows) => {
                word.begun = true;
                match rest.next() {
                    None | Some('\n') => {}
                    Some(escaped) => word.text.push(escaped),
                }
            }
            '\'' => {
                let quoted: String = rest.by_ref().take_while(|it| *it != '\'').collect();
                word.quote(&quoted);
            }
            '"' => self.quoted(rest, word, depth),
            '$' if rest.next_if_eq(&'\'').is_some() => word.quote(&unescaped(rest)),
            '$' if rest.peek() == Some(&'"') => {}
            '$' | '`' => self.variable(next, rest, word, depth),
            '#' if !word.begun => while rest.next_if(|it| *it != '\n').is_some() {},
            // The placeholder for a name, of `find` and `xargs`.
            '{' if !word.begun && rest.next_if_eq(&'}').is_some() => {
                word.begun = true;
                word.text.push_str("{}");
            }
            '{' => self.brace(rest, word),
            ',' if word.choices > 0 => word.text.push(OR),
            '}' if word.choices > 0 => {
                word.choices -= 1;
                word.text.push(CHOSEN);
            }
            '}' if !word.begun => {}
            other => {
                word.begun = true;
                word.text.push(other);
            }
        }
    }

    /// Reads a brace: of choices, of a range of numbers, or of a group of commands.
    fn brace(&mut self, rest: &mut Rest<'_>, word: &mut Draft) {
        let ahead = ahead_of(rest);
        let is_read = self.budget.read(ahead.len());
        match ahead.split_once('}').map(|(inner, _)| inner).filter(|_| is_read) {
            Some(inner) if inner.contains(',') => {
                (word.begun, word.choices) = (true, word.choices + 1);
                word.text.push(CHOICE);
            }
            Some(inner) if inner.contains("..") && !inner.contains('/') => {
                word.begun = true;
                word.text.push('*');
                while rest.next_if(|it| *it != '}').is_some() {}
                rest.next();
            }
            _ if word.begun => word.text.push('{'),
            _ => {}
        }
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

    /// Reads a variable: appends its value, or the mark for an unknown one. Substituted commands count as commands, too.
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
                let value = self.substituted(&inner, depth);
                word.text.push_str(&value);
                return;
            }
            (_, Some('{')) => {
                rest.next();
                let inner = braced(rest);
                if let Some((name, default)) = default_of(&inner) {
                    let value = self.with_default(name, default, depth);
                    if inner[name.len()..].trim_start_matches(':').starts_with('=') {
                        self.variables.insert(name.to_owned(), value.clone());
                    }
                    word.text.push_str(&value);
                    return;
                }
                inner
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
            // A variable that is made of itself doubles each time.
            Some(value) if self.budget.read(value.len()) => word.text.push_str(value),
            _ => word.text.push(UNKNOWN),
        }
    }

    /// Returns the names that substituted commands print, as far as the names are known.
    fn substituted(&mut self, inner: &str, depth: usize) -> String {
        let outer = std::mem::take(&mut self.names);
        self.text(inner, depth);
        let names = std::mem::replace(&mut self.names, outer);
        let unknown = std::iter::once(UNKNOWN.to_string());
        let value = match inner.trim() {
            "pwd" | "git rev-parse --show-toplevel" => ".".to_owned(),
            it if OWN_FOLDER.contains(&it) => one_of(unknown.chain(self.variables.get("0%/*").cloned())),
            _ => one_of(unknown.chain(names)),
        };
        if self.budget.read(value.len()) { value } else { UNKNOWN.to_string() }
    }

    /// Returns both alternatives: the value of a variable, and the default that counts where it has none.
    fn with_default(&mut self, name: &str, default: &str, depth: usize) -> String {
        let known = self.variables.get(name).cloned().unwrap_or_else(|| UNKNOWN.to_string());
        let Some(depth) = depth.checked_sub(1) else {
            self.budget.is_not_enough();
            return UNKNOWN.to_string();
        };
        let (mut word, mut rest) = (Draft::default(), default.chars().peekable());
        while let Some(next) = rest.next() {
            match next {
                '"' | '\'' => {}
                '\\' => word.text.extend(rest.next()),
                '$' | '`' => self.variable(next, &mut rest, &mut word, depth),
                other => word.text.push(other),
            }
        }
        let value = if word.text.is_empty() { known } else { one_of([known, word.text]) };
        if self.budget.read(value.len()) { value } else { UNKNOWN.to_string() }
    }

    fn end_word(&mut self, word: &mut Draft, command: &mut Vec<String>, depth: usize) {
        let Draft { text, begun, lines, .. } = std::mem::take(word);
        if !begun {
            return;
        }
        if self.words >= LINE_WORDS_MAX {
            return self.budget.is_not_enough();
        }
        self.words += 1;
        if lines {
            if let Some(given) = given_by(command, &self.fed) {
                // The arguments of the inner line: `find -exec sh -c '. "$1"'`.
                self.variables.insert(String::new(), given);
            }
            let outer = self.is_prose;
            self.is_prose = !runs_lines(command);
            self.text(&text, depth);
            self.is_prose = outer;
            self.variables.remove("");
        }
        command.push(match text.strip_prefix("~+/") {
            Some(below) => format!("./{below}"),
            None => text,
        });
    }

    fn end_command(&mut self, words: &mut Vec<String>, ending: Ending, cases: &mut Cases) {
        let words = std::mem::take(words);
        let is_pattern = cases.of(&words, ending);
        if words.is_empty() {
            return;
        }
        let mut words = words.into_iter().peekable();
        let mut variables = Vec::new();
        loop {
            while words.next_if(|it| GO_ON.contains(&it.as_str())).is_some() {}
            let is_export = |it: &String| matches!(it.as_str(), "export" | "local" | "readonly" | "declare");
            if words.next_if(is_export).is_some() {
                continue;
            }
            let Some(set) = words.next_if(|it| assigned(it).is_some()) else { break };
            if let Some((name, value)) = assigned(&set) {
                variables.push((name.to_owned(), value.to_owned()));
                self.variables.insert(name.to_owned(), value.to_owned());
            }
        }
        let words: Vec<String> = words.collect();
        if is_pattern {
            self.listed(&words, ending);
            return self.keep(&variables, &words, false);
        }
        self.names.extend(names_of(&words));
        self.assign(&words);
        self.keep(&variables, &words, true);
        for started in started_by(&words, &self.fed) {
            self.words += started.len();
            self.keep(&[], &started, true);
        }
        match ending {
            Ending::Pipe if self.fed.len() < WORD_CHOICES_MAX => self.fed.push(words),
            Ending::Pipe => {}
            _ => self.fed.clear(),
        }
    }

    /// Collects the words of an array, which is complete at its bracket.
    fn listed(&mut self, words: &[String], ending: Ending) {
        let Some((name, mut all)) = self.array.take() else { return };
        all.extend_from_slice(words);
        if ending != Ending::Bracket {
            self.array = Some((name, all));
        } else if let Some(value) = loop_value(&all) {
            self.variables.insert(format!("{name}[@]"), value.clone());
            self.variables.insert(format!("{name}[*]"), value);
        }
    }

    /// Sets the variables of a loop, or of `read` behind a pipe.
    fn assign(&mut self, words: &[String]) {
        let Some((first, words)) = words.split_first() else { return };
        match (first.as_str(), words.split_first()) {
            ("for" | "select", Some((name, values))) => {
                // Skips the word `in`.
                match loop_value(values.get(1..).unwrap_or_default()) {
                    Some(value) => drop(self.variables.insert(name.clone(), value)),
                    None => self.budget.is_not_enough(),
                }
            }
            ("read", Some(_)) => {
                let Some(names) = handed_on(&self.fed) else { return };
                let value = one_of([UNKNOWN.to_string(), names]);
                for name in words.iter().filter(|it| !it.starts_with('-')) {
                    if self.budget.read(value.len()) {
                        self.variables.insert(name.clone(), value.clone());
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds a command, once for each choice that its words have. A pattern of `case` names no folder.
    fn keep(&mut self, variables: &[(String, String)], words: &[String], is_command: bool) {
        let mut all = Vec::with_capacity(words.len());
        for word in words {
            all.push(each_of(word, self.budget));
        }
        let mut set = Vec::new();
        for (name, value) in variables {
            set.extend(each_of(value, self.budget).into_iter().map(|it| (name.clone(), it)));
        }
        let count = all.iter().map(Vec::len).max().unwrap_or_default().max(1);
        self.words = self.words.saturating_add((count - 1) * words.len());
        if self.words > LINE_WORDS_MAX {
            return self.budget.is_not_enough();
        }
        let is_prose = self.is_prose;
        for at in first_of(words, &all, count)..count {
            let chosen = |each: &Vec<String>| {
                let word = ShellWord::of(each.get(at).or(each.last()).map_or("", String::as_str));
                ShellWord { open: word.open.filter(|_| is_command && !is_prose), ..word }
            };
            let words: Vec<ShellWord> = all.iter().map(chosen).collect();
            let variables = std::mem::take(&mut set);
            if !words.is_empty() || !variables.is_empty() {
                self.found.push(Command { variables, words });
            }
        }
    }
}

impl Draft {
    /// Adds the text in quotes.
    fn quote(&mut self, quoted: &str) {
        self.begun = true;
        self.lines |= is_line(quoted);
        self.text.push_str(quoted);
    }
}

impl Cases {
    /// Updates the state, and returns whether the words of the command that has ended are a pattern.
    fn of(&mut self, words: &[String], ending: Ending) -> bool {
        let first = words.iter().find(|it| !GO_ON.contains(&it.as_str())).map(String::as_str);
        if first == Some("case") && words.iter().any(|it| it == "in") {
            (self.open, self.is_pattern) = (self.open + 1, true);
        } else if first == Some("esac") {
            (self.open, self.is_pattern) = (self.open.saturating_sub(1), false);
        }
        let begins = first == Some("[[");
        let is_pattern = self.is_pattern || self.is_test || begins;
        self.is_test = (self.is_test || begins) && !words.iter().any(|it| it == "]]");
        match ending {
            Ending::Bracket => self.is_pattern = false,
            Ending::Branch => self.is_pattern = self.open > 0,
            Ending::Pipe | Ending::Other => {}
        }
        is_pattern
    }
}

/// Returns the index of the first choice of a command that counts. If a loop goes into several folders, the rest starts in none of
/// them; if the last folder is unknown, a known one counts before it.
fn first_of(words: &[String], all: &[Vec<String>], count: usize) -> usize {
    let goes = matches!(words.first().map(String::as_str), Some("cd" | "pushd"));
    let is_known = |each: &Vec<String>| {
        each.len() < 2 || each.len() == 2 && each.first().is_some_and(|it| it.contains(UNKNOWN))
    };
    match goes && count > 1 {
        true if all.iter().all(is_known) => count - 1,
        true => count,
        false => 0,
    }
}

/// Checks whether a command runs lines that are its arguments.
fn runs_lines(words: &[String]) -> bool {
    const RUN: [&str; 7] = ["eval", "flock", "script", "ssh", "su", "trap", "watch"];
    words.is_empty()
        || words.iter().take(WORD_CHOICES_MAX).any(|it| {
            let name = it.rsplit('/').next().unwrap_or_default();
            RUN.contains(&name) || SHELLS.contains(&name)
        })
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
