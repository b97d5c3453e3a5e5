//! Shell commands: the files that one plainly writes.
//!
//! The effects of a command cannot be told from its words, and nothing here tries to. This module finds redirections and the usual
//! writes of known programs, in the folder in which they run: it follows `cd`, and also reads the text of `sh -c`. Of a word with a
//! variable or a command in it, it knows only the values that the command itself gives. That keeps honest agents off places of others;
//! it stops no agent that wants to get around it. If a search costs more than its bounds, the command may write anything. `words` reads
//! the lines, `spans` finds the ends of quotations and parentheses, `values` knows variables, `found` has the results and the bounds,
//! `programs` the writes of programs, `copies`, `git`, `searches`, `scripts` and `patches` those of more of them, `code` the code in a
//! line for an interpreter, `sources` the scripts of the repository that are read, and `wrappers` the program that finally runs.

mod code;
mod copies;
mod found;
mod git;
mod patches;
mod programs;
mod projects;
mod scripts;
mod searches;
mod sources;
mod spans;
mod values;
mod words;
mod wrappers;

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::wide::Between;
use code::Language;
use found::Found;
use provost_base::limits::{SHELL_FUNCTIONS_MAX, SHELL_PLACES_MAX};
use values::Values;
use words::{Part, Word};

/// A write of a command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Written {
    /// A file, or a folder with everything in it.
    Path(PathBuf),
    /// The files in a folder whose names match one of these patterns; without patterns, all of them.
    Below(PathBuf, Vec<String>),
    /// The files of the work tree around a folder that git finds to differ.
    Changed(PathBuf, Between),
    /// The files that a patch names: the patch's file, the folder at which its paths begin, and the number of leading folders to drop.
    Patched(PathBuf, PathBuf, usize),
    /// The files that one of Codex's patches names, from this folder: `apply_patch` in a shell does the same as the tool.
    CodexPatch(String, PathBuf),
    /// Git's index or stash of the work tree around a folder.
    Index(PathBuf),
    /// Any file: the analysis would cost more than its bounds.
    Anything,
}

/// Returns the writes of a command that runs in a folder, as far as its words tell them until then.
pub(super) fn written(command: &str, folder: &Path, until: Instant) -> Vec<Written> {
    let mut found = Found::until(until);
    Reader::within(&mut found).line(command, folder);
    found.written()
}

/// Reads commands.
struct Reader<'a> {
    found: &'a mut Found,
    values: Values,
    /// The output of the command before.
    said: Option<String>,
    /// Whether that output has more values than the search tries.
    said_more: bool,
}

/// A program that takes the text of the following lines.
enum Takes {
    /// A shell, in a folder, with the words of its command.
    Shell(PathBuf, Vec<Word>),
    /// An interpreter, in a folder, with the words of its command.
    Code(Language, PathBuf, Vec<Word>),
    /// A program that applies a patch, from a folder, without the first folders of its paths.
    Patch(PathBuf, usize),
    /// A program that applies one of Codex's patches, from a folder.
    CodexPatch(PathBuf),
}

/// The folders in which commands run.
struct ShellFolders {
    /// The folders; `None` after `cd $SOMEWHERE`. A `(` begins a level of its own.
    here: Vec<Option<PathBuf>>,
    /// The folders that `pushd` has put aside.
    aside: Vec<Option<PathBuf>>,
    /// The folder before, to which `cd -` returns.
    before: Option<PathBuf>,
    takes: Option<Takes>,
}

impl ShellFolders {
    fn here(&self) -> Option<PathBuf> {
        self.here.last().cloned().flatten()
    }

    fn goes(&mut self, to: Option<PathBuf>) {
        self.before = self.here();
        *self.here.last_mut().expect("there is always one") = to;
    }
}

impl<'a> Reader<'a> {
    fn within(found: &'a mut Found) -> Self {
        Self { found, values: Values::default(), said: None, said_more: false }
    }

    /// Reads something one level deeper, with the present findings.
    fn deeper(&mut self, search: impl FnOnce(&mut Reader<'_>)) {
        let mut values = std::mem::take(&mut self.values);
        self.found.deeper(|found| values = Reader::with(found, std::mem::take(&mut values), search));
        self.values = values;
    }

    /// Does the same with a script that a command starts, as far as its bounds allow.
    fn script(&mut self, text: &str, folder: &Path) {
        let mut values = std::mem::take(&mut self.values);
        self.found.as_far_as_it_goes(|found| {
            values = Reader::with(found, std::mem::take(&mut values), |it| it.line(text, folder));
        });
        self.values = values;
    }

    /// Reads something with these values of variables; returns the values after it.
    fn with(found: &mut Found, values: Values, search: impl FnOnce(&mut Reader<'_>)) -> Values {
        let mut reader = Reader { found, values, said: None, said_more: false };
        search(&mut reader);
        reader.values
    }

    fn line(&mut self, command: &str, folder: &Path) {
        if !self.found.reads(command) {
            return;
        }
        let mut place = ShellFolders {
            here: vec![Some(folder.to_owned())],
            aside: Vec::new(),
            before: None,
            takes: None,
        };
        let parts = words::parts(command);
        self.learn_calls(&parts);
        for part in parts {
            if self.found.gave_up() {
                return;
            }
            match part {
                Part::Open if place.here.len() > SHELL_PLACES_MAX => return self.found.give_up(),
                Part::Open => place.here.push(place.here()),
                Part::Close if place.here.len() > 1 => drop(place.here.pop()),
                Part::Close => {}
                Part::Inner(line) => {
                    if let Some(folder) = place.here() {
                        self.deeper(|it| it.line(&line, &folder));
                    }
                }
                Part::Text(text) => {
                    if let Some(takes) = place.takes.take() {
                        self.text(&text, takes);
                    }
                }
                Part::Command(words) => self.rounds(&words, &mut place),
            }
        }
        self.without_text(place.takes.take());
    }

    /// Learns the arguments with which functions of a line are called in it.
    fn learn_calls(&mut self, parts: &[Part]) {
        let mut functions: Vec<&str> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let Part::Command(words) = part else { continue };
            let is_call = matches!(parts.get(at + 1..at + 3), Some([Part::Open, Part::Close]));
            let named = match words.first().and_then(programs::text) {
                Some("function") => words.get(1),
                _ => words.last().filter(|_| is_call),
            };
            functions.extend(named.and_then(programs::text));
        }
        if functions.len() > SHELL_FUNCTIONS_MAX {
            return self.found.give_up();
        }
        for part in parts.iter().filter(|_| !functions.is_empty()) {
            let Part::Command(words) = part else { continue };
            let (words, ..) = sorted(words.clone());
            let Some((name, given)) = words.split_first().filter(|it| !it.1.is_empty()) else { continue };
            if programs::text(name).is_some_and(|it| functions.contains(&it)) {
                self.values.learn_parameters(given, true);
            }
        }
    }

    /// Reads a command once for each combination of its variables' values.
    fn rounds(&mut self, words: &[Word], place: &mut ShellFolders) {
        let rounds = self.values.rounds(words);
        let Some(count) = rounds.count() else {
            self.said = None;
            self.said_more = true;
            if !may_vary(words) {
                self.found.give_up();
            }
            return;
        };
        for round in 0..count {
            let here = place.here();
            let mut settled = Vec::new();
            for word in words {
                let stands_for = self.values.settled(word, (&rounds, round), here.as_deref());
                match stands_for.and_then(words::spelled_out) {
                    Some(words) if self.found.affords(words::length(word, &words)) => settled.extend(words),
                    _ => return self.found.give_up(),
                }
            }
            self.command(settled, place, round > 0);
        }
    }

    /// Reads a text that a program takes.
    fn text(&mut self, text: &str, takes: Takes) {
        match takes {
            Takes::Shell(folder, words) => {
                let line = wrappers::read_by(&words, text);
                self.deeper(|it| it.line(&line, &folder));
            }
            Takes::Code(language, folder, words) => self.code(language, text, &words, &folder),
            Takes::CodexPatch(folder) => self.found.push(Written::CodexPatch(text.to_owned(), folder)),
            Takes::Patch(folder, strip) => {
                let named = super::patch::named(text, strip);
                if named.is_empty() {
                    self.found.push(Written::Below(folder, Vec::new()));
                } else {
                    self.found.extend(named.into_iter().map(|it| Written::Path(folder.join(it))));
                }
            }
        }
    }

    /// Handles a program whose text comes from elsewhere: a patch may name any file.
    fn without_text(&mut self, takes: Option<Takes>) {
        if let Some(Takes::Patch(folder, _)) = takes {
            self.found.push(Written::Below(folder, Vec::new()));
        }
    }

    fn code(&mut self, language: Language, text: &str, words: &[Word], folder: &Path) {
        if !self.found.affords(text.len().saturating_mul(code::COST)) {
            return;
        }
        let done = code::done_by(language, text);
        if done.gave_up {
            return self.found.give_up();
        }
        for path in &done.paths {
            self.found.extend(programs::written(&Word::Plain(path.clone()), folder));
        }
        if done.writes_given {
            self.found.extend(words.iter().skip(1).flat_map(|it| programs::written(it, folder)));
        }
        for line in &done.lines {
            self.deeper(|it| it.line(line, folder));
        }
    }

    fn command(&mut self, words: Vec<Word>, place: &mut ShellFolders, once_more: bool) {
        let (words, into, from) = sorted(words);
        self.values.learn(&words, once_more);
        let at = place.here().unwrap_or_default();
        let is_script = |words: &[Word]| projects::script(words, &at).is_some();
        let (to, plain) = wrappers::without_helpers(&words, &is_script);
        let here = match to {
            Some(to) => place.here().zip(to).map(|(here, to)| here.join(to)),
            None => place.here(),
        };
        if wrappers::goes_back(plain) {
            let to = place.aside.pop().flatten();
            return place.goes(to);
        }
        let Some(folder) = here else { return };
        self.found.extend(into.iter().flat_map(|it| programs::written(it, &folder)));
        self.values.learn(plain, once_more);
        if let Some(to) = wrappers::changes_folder(plain) {
            if wrappers::puts_aside(plain) {
                place.aside.push(Some(folder.clone()));
            }
            let back = || place.before.clone().filter(|_| plain.get(1).and_then(programs::text) == Some("-"));
            let to = to.map(|to| folder.join(to)).or_else(back);
            place.goes(to);
        } else if let Some(inner) = wrappers::shell_text(plain) {
            self.values.learn_environment(&words[..words.len() - plain.len()]);
            self.deeper(|it| it.line(&inner, &folder));
        } else if let Some((language, text)) = code::told(plain) {
            self.code(language, &text, plain, &folder);
            programs::of_one(plain, &folder, self.found);
        } else if let Some((folder, line)) = projects::script(plain, &folder) {
            self.deeper(|it| it.line(&line, &folder));
        } else if let Some(text) = sources::started(plain, &folder) {
            self.script(&text, &folder);
        } else {
            if let Some(patch) = patches::codex_patch(plain) {
                self.found.push(Written::CodexPatch(patch.to_owned(), folder.clone()));
            }
            programs::of_one(plain, &folder, self.found);
        }
        self.takes(plain, folder, from, place);
    }

    /// Handles a program that takes the output of the command before, or the text of the following lines.
    fn takes(&mut self, plain: &[Word], folder: PathBuf, from: Option<String>, place: &mut ShellFolders) {
        let said = std::mem::replace(&mut self.said, values::said(plain));
        if std::mem::take(&mut self.said_more)
            && from.is_none()
            && (wrappers::reads_commands(plain) || code::is_taken_by(plain).is_some())
        {
            return self.found.give_up();
        }
        let takes = if wrappers::reads_commands(plain) {
            if let Some(line) = said.filter(|_| from.is_none()) {
                self.deeper(|it| it.line(&line, &folder));
            }
            Some(Takes::Shell(folder, plain.to_vec()))
        } else if let Some(language) = code::is_taken_by(plain) {
            if let Some(text) = said.filter(|_| from.is_none()) {
                self.code(language, &text, plain, &folder);
            }
            Some(Takes::Code(language, folder, plain.to_vec()))
        } else if patches::takes_codex_patch(plain) {
            if let Some(text) = said.filter(|_| from.is_none()) {
                self.found.push(Written::CodexPatch(text, folder.clone()));
            }
            Some(Takes::CodexPatch(folder))
        } else {
            patches::is_taken_by(plain, &folder).map(|(folder, strip)| Takes::Patch(folder, strip))
        };
        match (takes, from) {
            (Some(Takes::Patch(at, strip)), Some(from)) => {
                let from = place.here().unwrap_or_default().join(from);
                self.found.push(Written::Patched(from, at, strip));
            }
            (Some(Takes::Shell(at, words)), Some(from)) => {
                if let Some(text) = sources::read(&from, &place.here().unwrap_or_default()) {
                    self.script(&wrappers::read_by(&words, &text), &at);
                }
            }
            (Some(takes), None) => {
                let before = place.takes.replace(takes);
                self.without_text(before);
            }
            (Some(Takes::CodexPatch(at)), Some(from)) => {
                if let Some(text) = sources::read(&from, &place.here().unwrap_or_default()) {
                    self.found.push(Written::CodexPatch(text, at));
                }
            }
            // Files of code are not read.
            (Some(Takes::Code(..)), Some(_)) | (None, _) => {}
        }
    }
}

/// Checks whether a command writes nothing with every value of its variables.
fn may_vary(words: &[Word]) -> bool {
    const READ: [&str; 14] = [
        "echo", "printf", "test", "[", "[[", "docker", "podman", "kubectl", "grep", "cat", "ls", "sleep",
        "diff", "wc",
    ];
    let (words, into, _) = sorted(words.to_vec());
    let (_, plain) = wrappers::without_helpers(&words, &|_| false);
    let is_device = |it: &Word| programs::text(it).is_some_and(|it| it == "/dev/null");
    into.iter().all(is_device) && programs::name(plain).is_some_and(|it| READ.contains(&it))
}

/// Splits a command into its words, the targets of its output, and the file of its input.
fn sorted(words: Vec<Word>) -> (Vec<Word>, Vec<Word>, Option<String>) {
    let (mut plain, mut into, mut from) = (Vec::new(), Vec::new(), None);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word {
            Word::Into => into.extend(words.next()),
            Word::From => {
                if let Some(Word::Plain(path)) = words.next() {
                    from = Some(path);
                }
            }
            word => plain.push(word),
        }
    }
    (plain, into, from)
}
