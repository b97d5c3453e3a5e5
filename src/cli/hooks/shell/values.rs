//! The values of variables, and the output of lines within words, as far as the command itself tells them.

use std::collections::BTreeMap;
use std::path::Path;

use super::sorted;
use super::words::{Part, Piece, Word, parts};
use provost_base::limits::{SHELL_ROUNDS_MAX, SHELL_WORD_BYTES_MAX};

/// A pattern for any file.
const ANY: &str = "**/*";

/// The values that variables have been given.
#[derive(Default)]
pub(super) struct Values {
    known: BTreeMap<String, Vec<Word>>,
    /// Whether the line has conditions and loops, so that an earlier value may be the one that counts.
    branches: bool,
}

/// The number of values of each variable in a command.
pub(super) struct Rounds(Vec<(String, usize)>);

impl Rounds {
    /// Returns the number of rounds: each value of each variable with each value of the others; `None` if these are too many.
    pub(super) fn count(&self) -> Option<usize> {
        let all = self.0.iter().try_fold(1_usize, |all, it| all.checked_mul(it.1.max(1)));
        all.filter(|it| *it <= SHELL_ROUNDS_MAX)
    }

    fn index(&self, name: &str, round: usize) -> usize {
        let mut left = round;
        for (variable, count) in &self.0 {
            if variable == name {
                return left % count;
            }
            left /= count;
        }
        0
    }
}

/// Returns the setting of a variable, if the word is `name=value`.
pub(super) fn setting(word: &Word) -> Option<(&str, Word)> {
    let split = |text: &str| {
        let (name, value) = text.split_once('=')?;
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        plain.then(|| (name.len(), value.to_owned()))
    };
    match word {
        Word::Plain(text) => split(text).map(|(end, value)| (&text[..end], Word::Plain(value))),
        Word::Pattern(text) => split(text).map(|(end, value)| (&text[..end], Word::Pattern(value))),
        _ => None,
    }
}

fn plain(word: &Word) -> Option<&str> {
    match word {
        Word::Plain(text) => Some(text),
        _ => None,
    }
}

impl Values {
    /// Records the values that a command gives to variables; `once_more`, in a further round, adds them to the earlier values.
    pub(super) fn learn(&mut self, words: &[Word], once_more: bool) {
        const BRANCHES: [&str; 9] = ["if", "then", "else", "elif", "for", "while", "until", "do", "case"];
        self.branches |= words.first().and_then(plain).is_some_and(|it| BRANCHES.contains(&it));
        let words = match words.first().and_then(plain) {
            Some("then" | "else" | "do" | "{" | "!") => &words[1..],
            _ => words,
        };
        match words.first().and_then(plain) {
            Some("for" | "select") if words.get(2).and_then(plain) == Some("in") => {
                if let Some(name) = words.get(1).and_then(plain) {
                    let values = words[3..].iter().filter(|it| **it != Word::Unknown).cloned();
                    self.give(name, values.collect(), once_more);
                }
                return;
            }
            Some("set") if words.get(1).and_then(plain) == Some("--") => {
                return self.learn_parameters(&words[2..], once_more);
            }
            // The words that it reads may be names of any files, as with `xargs`.
            Some("read" | "mapfile" | "readarray") => {
                for name in words[1..].iter().filter_map(plain).filter(|it| !it.starts_with('-')) {
                    self.give(name, vec![Word::Pattern(ANY.into())], once_more);
                }
                return;
            }
            _ => {}
        }
        let words = match words.first().and_then(plain) {
            Some("export" | "local" | "declare" | "readonly" | "typeset") => &words[1..],
            _ => words,
        };
        // A setting before a command is for that command alone.
        let settings: Option<Vec<_>> = words.iter().map(setting).collect();
        for (name, value) in settings.unwrap_or_default() {
            self.give(name, vec![value], once_more || self.branches);
        }
    }

    /// Records the arguments of a script or a function.
    pub(super) fn learn_parameters(&mut self, words: &[Word], besides: bool) {
        for (at, word) in words.iter().enumerate().take(9) {
            self.give(&(at + 1).to_string(), vec![word.clone()], besides);
        }
        for all in ["@", "*"] {
            self.give(all, words.to_vec(), besides);
        }
    }

    /// Records the settings before a command, for a line that the command reads.
    pub(super) fn learn_environment(&mut self, words: &[Word]) {
        for (name, value) in words.iter().filter_map(setting) {
            self.give(name, vec![value], true);
        }
    }

    fn give(&mut self, name: &str, values: Vec<Word>, besides: bool) {
        let known = self.known.entry(name.to_owned()).or_default();
        if !besides {
            known.clear();
        }
        // One value more than the bound shows that these are too many.
        let left = (SHELL_ROUNDS_MAX + 1).saturating_sub(known.len());
        let new: Vec<Word> = values.into_iter().filter(|it| !known.contains(it)).take(left).collect();
        known.extend(new);
    }

    /// Returns the rounds of a command: its variables, each with the number of its values.
    pub(super) fn rounds(&self, words: &[Word]) -> Rounds {
        let pieces = words.iter().filter_map(|it| match it {
            Word::Made(pieces) => Some(pieces),
            _ => None,
        });
        let mut all: Vec<(String, usize)> = Vec::new();
        for piece in pieces.flatten() {
            let Piece::Variable { name, .. } = piece else { continue };
            let count = self.known.get(name).map_or(0, Vec::len);
            if count > 1 && !all.iter().any(|it| it.0 == *name) {
                all.push((name.clone(), count));
            }
            // These have more rounds than the search tries.
            if all.len() > SHELL_ROUNDS_MAX {
                break;
            }
        }
        Rounds(all)
    }

    /// Returns the words that a word stands for in one round, run in a folder; `None` if they are too long.
    pub(super) fn settled(
        &self,
        word: &Word,
        (rounds, round): (&Rounds, usize),
        folder: Option<&Path>,
    ) -> Option<Vec<Word>> {
        let Word::Made(pieces) = word else { return Some(vec![word.clone()]) };
        let (mut text, mut pattern) = (String::new(), false);
        for piece in pieces {
            let known = match piece {
                Piece::Text(text, false) => Some(Word::Plain(text.clone())),
                Piece::Text(text, true) => Some(Word::Pattern(text.clone())),
                Piece::Variable { name, or, .. } => self
                    .value(name, rounds.index(name, round), folder)
                    .or_else(|| or.clone().map(Word::Plain)),
                Piece::Output(line, _) => printed(line, folder),
            };
            match known {
                Some(Word::Plain(more)) => text.push_str(&more),
                Some(Word::Pattern(more)) => {
                    text.push_str(&more);
                    pattern = true;
                }
                _ => return Some(vec![Word::Unknown]),
            }
            if text.len() > SHELL_WORD_BYTES_MAX {
                return None;
            }
        }
        let several =
            matches!(pieces.as_slice(), [Piece::Variable { quoted: false, .. } | Piece::Output(_, false)]);
        let word = |text: &str| match pattern || (several && text.contains(['*', '?', '['])) {
            true => Word::Pattern(text.to_owned()),
            false => Word::Plain(text.to_owned()),
        };
        Some(match several {
            true => text.split_whitespace().map(word).collect(),
            false => vec![word(&text)],
        })
    }

    fn value(&self, name: &str, index: usize, folder: Option<&Path>) -> Option<Word> {
        let of_path = |path: &Path| path.to_str().map(|it| Word::Plain(it.to_owned()));
        match self.known.get(name) {
            Some(values) => values.get(index).cloned(),
            None if name == "PWD" => of_path(folder?),
            None if name == "SHELL" => Some(Word::Plain("sh".into())),
            None if matches!(name, "EDITOR" | "VISUAL") => Some(Word::Plain("vi".into())),
            None if name == "HOME" => of_path(Path::new(&std::env::var_os("HOME")?)),
            None => None,
        }
    }
}

/// Returns the top of the work tree around a folder.
pub(super) fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok())
}

/// Returns the output of a line: a known folder, or names of any files.
fn printed(line: &str, folder: Option<&Path>) -> Option<Word> {
    let of_path = |path: &Path| path.to_str().map(|it| Word::Plain(it.to_owned()));
    if lists_files(line) {
        return Some(Word::Pattern(ANY.into()));
    }
    let [Part::Command(words)] = <[Part; 1]>::try_from(parts(line)).ok()? else { return None };
    let (words, into, _) = sorted(words);
    let plain: Option<Vec<&str>> = words.iter().map(plain).collect();
    match plain.unwrap_or_default().as_slice() {
        ["pwd"] | ["pwd", "-P" | "-L"] => of_path(folder?),
        ["git", "rev-parse", "--show-toplevel"] => of_path(top(folder?)?),
        // Output into a file may be all output, or only errors.
        _ if into.len() > 1 => None,
        _ => said(&words).map(Word::Plain),
    }
}

/// Returns the output of `echo`, `printf` and programs for paths, where it is plain.
pub(super) fn said(words: &[Word]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let last = || rest.iter().rev().filter_map(plain).find(|it| !it.starts_with('-')).map(str::to_owned);
    let is_format = match plain(program)? {
        "realpath" | "readlink" => return last(),
        "dirname" => {
            let path = last()?;
            return Some(
                path.rsplit_once('/').map_or_else(|| ".".to_owned(), |(folder, _)| folder.to_owned()),
            );
        }
        "basename" => return last()?.rsplit('/').next().map(str::to_owned),
        "echo" => false,
        "printf" => true,
        _ => return None,
    };
    let words: Option<Vec<&str>> = rest.iter().map(plain).collect();
    let words = words?.into_iter().skip_while(|it| it.starts_with('-')).collect::<Vec<_>>();
    match (is_format, words.split_first()) {
        (true, Some((format, given))) => {
            let mut given = given.iter();
            let mut text = format.replace("\\n", "\n");
            while text.contains("%s") {
                text = text.replacen("%s", given.next().unwrap_or(&""), 1);
            }
            (text.len() <= SHELL_WORD_BYTES_MAX).then_some(text)
        }
        _ => Some(words.join(" ")),
    }
}

/// Checks whether a line runs a program that prints names of files.
fn lists_files(line: &str) -> bool {
    let parts = parts(line);
    let words = parts.iter().find_map(|it| match it {
        Part::Command(words) if !words.is_empty() => Some(words),
        _ => None,
    });
    let Some((program, rest)) = words.and_then(|it| it.split_first()) else { return false };
    let says = |wanted: &[&str]| rest.iter().filter_map(plain).any(|it| wanted.contains(&it));
    let short = |c: char| {
        rest.iter().filter_map(plain).any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(c))
    };
    match plain(program).unwrap_or_default() {
        "find" | "fd" | "fdfind" | "ls" | "cat" => true,
        "grep" | "egrep" | "fgrep" | "ag" | "ack" => short('l') || says(&["--files-with-matches"]),
        "rg" => short('l') || says(&["--files", "--files-with-matches"]),
        "git" => says(&["ls-files", "--name-only"]) || (says(&["grep"]) && short('l')),
        _ => false,
    }
}
