//! Shell commands: the files that one plainly writes.
//!
//! What a command does cannot be told from its words, and nothing here tries to. Found are redirections and what programs
//! in general use write, in the folder in which they are: `cd` is followed, and what `sh -c` is told is read, too. Of a
//! word with a variable or a command in it only that is known which the command itself says. That keeps honest agents off
//! what others have; it holds no agent that wants to get around it. `words` reads the lines, `values` knows variables,
//! `programs` what programs write, `git`, `searches` and `patches` more of some of them, `code` what stands in a line for
//! an interpreter, and `wrappers` which program is run in the end.

mod code;
mod git;
mod patches;
mod programs;
mod projects;
mod searches;
mod values;
mod words;
mod wrappers;

use std::path::{Path, PathBuf};

use super::wide::Between;
use code::Language;
use values::Values;
use words::{Part, Word};

/// Most lines that are read for one command, those within scripts and loops included.
const LINES_MAX: usize = 500;

/// Commands within commands that are read.
const DEPTH_MAX: usize = 8;

/// What a command writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// A file, or a folder with all that is in it.
    Path(PathBuf),
    /// What is in a folder and called like one of these patterns; without any, everything.
    Below(PathBuf, Vec<String>),
    /// What git finds to differ in the work tree around a folder.
    Changed(PathBuf, Between),
    /// What a patch says, in this file and from this folder, without so many folders of its paths.
    Patched(PathBuf, PathBuf, usize),
}

/// What a command writes that is run in a folder, as far as its words say so.
pub(super) fn written(command: &str, folder: &Path) -> Vec<Written> {
    let mut reader = Reader::default();
    reader.line(command, folder, 0);
    reader.found
}

/// Reads commands.
#[derive(Default)]
struct Reader {
    /// How many lines were read; scripts of a project can call each other without end.
    lines: usize,
    found: Vec<Written>,
    values: Values,
}

/// A program that takes the text in the lines to come.
enum Takes {
    /// A shell, in a folder.
    Shell(PathBuf),
    /// An interpreter, in a folder.
    Code(Language, PathBuf),
    /// One that changes what a patch says, from a folder, without so many folders of its paths.
    Patch(PathBuf, usize),
}

/// Where commands are run.
struct Place {
    /// The folders; not known behind `cd $SOMEWHERE`. A `(` begins a place of its own.
    here: Vec<Option<PathBuf>>,
    /// What `pushd` has put aside.
    aside: Vec<Option<PathBuf>>,
    takes: Option<Takes>,
}

impl Place {
    fn here(&self) -> Option<PathBuf> {
        self.here.last().cloned().flatten()
    }

    fn goes(&mut self, to: Option<PathBuf>) {
        *self.here.last_mut().expect("there is always one") = to;
    }
}

impl Reader {
    fn line(&mut self, command: &str, folder: &Path, depth: usize) {
        self.lines += 1;
        if self.lines == LINES_MAX {
            // Whatever comes of the rest may be written anywhere below.
            self.found.push(Written::Below(folder.to_owned(), Vec::new()));
        }
        if depth > DEPTH_MAX || self.lines >= LINES_MAX {
            return;
        }
        let mut place = Place { here: vec![Some(folder.to_owned())], aside: Vec::new(), takes: None };
        for part in words::parts(command) {
            match part {
                Part::Open => place.here.push(place.here()),
                Part::Close if place.here.len() > 1 => drop(place.here.pop()),
                Part::Close => {}
                Part::Inner(line) => {
                    if let Some(folder) = place.here() {
                        self.line(&line, &folder, depth + 1);
                    }
                }
                Part::Text(text) => {
                    if let Some(takes) = place.takes.take() {
                        self.text(&text, takes, depth);
                    }
                }
                Part::Command(words) => {
                    let rounds = self.values.rounds(&words);
                    for round in 0..rounds {
                        let here = place.here();
                        let settled =
                            words.iter().flat_map(|it| self.values.settled(it, round, here.as_deref()));
                        let settled = settled.collect();
                        self.command(settled, &mut place, depth);
                    }
                }
            }
        }
        self.without_text(place.takes.take());
    }

    /// Text that a program takes.
    fn text(&mut self, text: &str, takes: Takes, depth: usize) {
        match takes {
            Takes::Shell(folder) => self.line(text, &folder, depth + 1),
            Takes::Code(language, folder) => self.code(language, text, &folder, depth),
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

    /// What takes its text from elsewhere: a patch may say anything.
    fn without_text(&mut self, takes: Option<Takes>) {
        if let Some(Takes::Patch(folder, _)) = takes {
            self.found.push(Written::Below(folder, Vec::new()));
        }
    }

    fn code(&mut self, language: Language, text: &str, folder: &Path, depth: usize) {
        let done = code::done_by(language, text);
        for path in &done.paths {
            self.found.extend(programs::written(&Word::Plain(path.clone()), folder));
        }
        for line in &done.lines {
            self.line(line, folder, depth + 1);
        }
    }

    fn command(&mut self, words: Vec<Word>, place: &mut Place, depth: usize) {
        let (words, into, from) = sorted(words);
        self.values.learn(&words);
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
        self.values.learn(plain);
        if let Some(to) = wrappers::changes_folder(plain) {
            if wrappers::puts_aside(plain) {
                place.aside.push(Some(folder.clone()));
            }
            place.goes(to.map(|to| folder.join(to)));
        } else if let Some(inner) = wrappers::shell_text(plain) {
            self.line(&inner, &folder, depth + 1);
        } else if let Some((language, text)) = code::told(plain) {
            self.code(language, &text, &folder, depth);
            programs::of_one(plain, &folder, &mut self.found);
        } else if let Some((folder, line)) = projects::script(plain, &folder) {
            self.line(&line, &folder, depth + 1);
        } else {
            programs::of_one(plain, &folder, &mut self.found);
        }
        let takes = if wrappers::reads_commands(plain) {
            Some(Takes::Shell(folder))
        } else if let Some(language) = code::is_taken_by(plain) {
            Some(Takes::Code(language, folder))
        } else {
            patches::is_taken_by(plain, &folder).map(|(folder, strip)| Takes::Patch(folder, strip))
        };
        match (takes, from) {
            (Some(Takes::Patch(at, strip)), Some(from)) => {
                let from = place.here().unwrap_or_default().join(from);
                self.found.push(Written::Patched(from, at, strip));
            }
            (Some(takes), None) => {
                let before = place.takes.replace(takes);
                self.without_text(before);
            }
            // Files of commands and of code are not read.
            (Some(_), Some(_)) | (None, _) => {}
        }
    }
}

/// The words of a command, what its output goes into, and the file that its input is.
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
