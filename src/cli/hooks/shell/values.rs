//! What variables and lines within words stand for, as far as the command itself says so.

use std::collections::BTreeMap;
use std::path::Path;

use super::words::{Part, Piece, Word, parts};

/// Values of a variable that are gone through one by one, as in a loop.
const ROUNDS_MAX: usize = 64;

/// A name that may be that of any file.
const ANY: &str = "**/*";

/// What variables have been given.
#[derive(Default)]
pub(super) struct Values(BTreeMap<String, Vec<Word>>);

/// The setting of a variable that a word is: `name=value`.
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
    /// Takes down what a command gives to variables.
    pub(super) fn learn(&mut self, words: &[Word]) {
        match words.first().and_then(plain) {
            Some("for") if words.get(2).and_then(plain) == Some("in") => {
                if let Some(name) = words.get(1).and_then(plain) {
                    let values = words[3..].iter().filter(|it| **it != Word::Unknown).cloned();
                    self.0.insert(name.to_owned(), values.take(ROUNDS_MAX).collect());
                }
                return;
            }
            // What it reads may be the name of any file, as with `xargs`.
            Some("read") => {
                let names = words[1..].iter().filter_map(plain).filter(|it| !it.starts_with('-'));
                self.0.extend(names.map(|it| (it.to_owned(), vec![Word::Pattern(ANY.into())])));
                return;
            }
            _ => {}
        }
        let words = match words.first().and_then(plain) {
            Some("export" | "local" | "declare" | "readonly" | "typeset") => &words[1..],
            _ => words,
        };
        // Before a command, a setting is for that command alone.
        let settings: Option<Vec<_>> = words.iter().map(setting).collect();
        for (name, value) in settings.unwrap_or_default() {
            self.0.insert(name.to_owned(), vec![value]);
        }
    }

    /// How often a command runs: once for each value of the variable in it that has most.
    pub(super) fn rounds(&self, words: &[Word]) -> usize {
        let pieces = words.iter().filter_map(|it| match it {
            Word::Made(pieces) => Some(pieces),
            _ => None,
        });
        let counts = pieces.flatten().filter_map(|it| match it {
            Piece::Variable { name, .. } => self.0.get(name).map(Vec::len),
            _ => None,
        });
        counts.max().unwrap_or(1).max(1)
    }

    /// The words that one stands for in one of these rounds, run in a folder.
    pub(super) fn settled(&self, word: &Word, round: usize, folder: Option<&Path>) -> Vec<Word> {
        let Word::Made(pieces) = word else { return vec![word.clone()] };
        let (mut text, mut pattern) = (String::new(), false);
        for piece in pieces {
            let known = match piece {
                Piece::Text(text, false) => Some(Word::Plain(text.clone())),
                Piece::Text(text, true) => Some(Word::Pattern(text.clone())),
                Piece::Variable { name, .. } => self.value(name, round, folder),
                Piece::Output(line) => printed(line, folder),
            };
            match known {
                Some(Word::Plain(more)) => text.push_str(&more),
                Some(Word::Pattern(more)) => {
                    text.push_str(&more);
                    pattern = true;
                }
                _ => return vec![Word::Unknown],
            }
        }
        let several = matches!(pieces.as_slice(), [Piece::Variable { quoted: false, .. }]);
        let word = |text: &str| match pattern || (several && text.contains(['*', '?', '['])) {
            true => Word::Pattern(text.to_owned()),
            false => Word::Plain(text.to_owned()),
        };
        match several {
            true => text.split_whitespace().map(word).collect(),
            false => vec![word(&text)],
        }
    }

    fn value(&self, name: &str, round: usize, folder: Option<&Path>) -> Option<Word> {
        let of_path = |path: &Path| path.to_str().map(|it| Word::Plain(it.to_owned()));
        match self.0.get(name) {
            Some(values) => values.get(round % values.len().max(1)).cloned(),
            None if name == "PWD" => of_path(folder?),
            None if name == "HOME" => of_path(Path::new(&std::env::var_os("HOME")?)),
            None => None,
        }
    }
}

/// The top of the work tree around a folder.
pub(super) fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|it| it.join(".git").symlink_metadata().is_ok())
}

/// What a line prints: a folder that is known, or names of files, whichever those are.
fn printed(line: &str, folder: Option<&Path>) -> Option<Word> {
    let of_path = |path: &Path| path.to_str().map(|it| Word::Plain(it.to_owned()));
    match line.trim() {
        "pwd" | "pwd -P" => of_path(folder?),
        "git rev-parse --show-toplevel" => of_path(top(folder?)?),
        line => lists_files(line).then(|| Word::Pattern(ANY.into())),
    }
}

/// Whether a line is of a program that prints names of files.
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
