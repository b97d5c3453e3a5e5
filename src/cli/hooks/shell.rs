//! Shell commands: the files that one plainly writes.
//!
//! What a command does cannot be told from its words, and nothing here tries to. Found are redirections and what a few
//! programs write that everybody uses, in the folder in which they are: `cd` is followed, and what `sh -c` is told is read,
//! too. Of a word with a variable or a command in it nothing is known. That keeps honest agents off what others have; it
//! holds nobody who does not want to be held. `words` reads the lines, and `programs` knows what programs write.

mod programs;
mod words;

use std::path::{Path, PathBuf};

use words::{Part, Word};

/// Commands within commands that are read.
const DEPTH_MAX: usize = 8;

/// What a command writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// A file, or a folder with all that is in it.
    Path(PathBuf),
    /// What is in a folder and called like one of these patterns; without any, everything.
    Below(PathBuf, Vec<String>),
    /// What differs in the work tree around a folder from what is checked out, and from this revision.
    Changed(PathBuf, Option<String>),
    /// What a patch says, in this file and from this folder, without so many folders of its paths.
    Patched(PathBuf, PathBuf, usize),
}

/// What a command writes that is run in a folder, as far as its words say so.
pub(super) fn written(command: &str, folder: &Path) -> Vec<Written> {
    let mut found = Vec::new();
    read(command, folder, 0, &mut found);
    found
}

fn read(command: &str, folder: &Path, depth: usize, found: &mut Vec<Written>) {
    if depth > DEPTH_MAX {
        return;
    }
    // Where commands are run; not known behind `cd $SOMEWHERE`. A `(` begins a place of its own.
    let mut places = vec![Some(folder.to_owned())];
    // What `pushd` has put aside, and where a shell runs that reads its commands.
    let (mut aside, mut shell): (Vec<Option<PathBuf>>, Option<PathBuf>) = (Vec::new(), None);
    for part in words::parts(command) {
        let here = places.last().cloned().flatten();
        match part {
            Part::Open => places.push(here),
            Part::Close if places.len() > 1 => drop(places.pop()),
            Part::Close => {}
            Part::Inner(line) => {
                if let Some(folder) = here {
                    read(&line, &folder, depth + 1, found);
                }
            }
            Part::Text(text) => {
                if let Some(folder) = shell.take() {
                    read(&text, &folder, depth + 1, found);
                }
            }
            Part::Command(words) => {
                let (plain, into) = sorted(words);
                let (to, plain) = programs::without_helpers(&plain);
                let here = match to {
                    Some(to) => here.zip(to).map(|(here, to)| here.join(to)),
                    None => here,
                };
                if programs::goes_back(plain) {
                    *places.last_mut().expect("there is always one") = aside.pop().flatten();
                    continue;
                }
                let Some(folder) = here else { continue };
                found.extend(into.iter().map(|it| Written::Path(folder.join(it))));
                if programs::reads_commands(plain) {
                    shell = Some(folder.clone());
                }
                if let Some(to) = programs::changes_folder(plain) {
                    if programs::puts_aside(plain) {
                        aside.push(Some(folder.clone()));
                    }
                    let last = places.last_mut().expect("there is always one");
                    *last = to.map(|to| folder.join(to));
                } else if let Some(inner) = programs::shell_text(plain) {
                    read(&inner, &folder, depth + 1, found);
                } else {
                    programs::of_one(plain, &folder, found);
                }
            }
        }
    }
}

/// The words of a command, and what its output goes into.
fn sorted(words: Vec<Word>) -> (Vec<Word>, Vec<String>) {
    let (mut plain, mut into) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word {
            Word::Into => {
                if let Some(Word::Plain(path)) = words.next() {
                    into.push(path);
                }
            }
            word => plain.push(word),
        }
    }
    (plain, into)
}
