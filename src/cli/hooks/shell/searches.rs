//! Writes of programs that run another program on the files that they find or read.

use std::path::{Path, PathBuf};

use super::found::Found;
use super::programs::{is_option, of_one, text};
use super::words::Word;
use super::wrappers::{shell_text, without_helpers};
use super::{Reader, Written, code};

/// Finds the writes of `find`, which removes the files that it finds, or runs a program on them.
pub(super) fn of_find(rest: &[Word], folder: &Path, found: &mut Found) {
    let says = |names: &[&str]| rest.iter().filter_map(text).any(|it| names.contains(&it));
    for (at, word) in rest.iter().enumerate() {
        if matches!(text(word), Some("-fprint" | "-fprint0" | "-fprintf" | "-fls"))
            && let Some(into) = rest.get(at + 1).and_then(text)
        {
            found.push(Written::Path(folder.join(into)));
        }
    }
    let mut written = OfGiven { itself: says(&["-delete"]), into: Vec::new() };
    for (command, is_here) in runs(rest) {
        written.add(runs_writer(&standing_for(command, "{}"), folder, is_here, found));
    }
    let is_test = |it: &Word| is_option(it) || matches!(text(it), Some("(" | "!"));
    let from: Vec<PathBuf> =
        rest.iter().take_while(|it| !is_test(it)).filter_map(text).map(|it| folder.join(it)).collect();
    let from = if from.is_empty() { vec![folder.to_owned()] } else { from };
    // How tests are joined in another way than by `and` is not analysed.
    let is_joined = says(&["-o", "-or", "!", "-not", "-prune", ",", "("]);
    let named = |it: &&Word| matches!(text(it), Some("-name"));
    let names: Vec<String> = match rest.iter().filter(named).count() {
        1 if !is_joined => {
            let at = rest.iter().position(|it| named(&it));
            at.and_then(|at| text(rest.get(at + 1)?)).map(str::to_owned).into_iter().collect()
        }
        _ => Vec::new(),
    };
    if written.itself {
        found.extend(from.into_iter().map(|it| Written::Below(it, names.clone())));
    }
    // A found path may be a folder.
    let brought: Vec<String> = names.iter().flat_map(|it| [it.clone(), format!("{it}/**")]).collect();
    found.extend(written.into.into_iter().map(|it| Written::Below(it, brought.clone())));
}

/// Returns the commands that `find` runs, and whether each runs in the same folder as `find`.
fn runs(mut rest: &[Word]) -> Vec<(&[Word], bool)> {
    let begins = |it: &Word| matches!(text(it), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
    let ends = |it: &Word| matches!(text(it), Some(";" | "+"));
    let mut all = Vec::new();
    while let Some(at) = rest.iter().position(begins) {
        let is_here = matches!(text(&rest[at]), Some("-exec" | "-ok"));
        rest = &rest[at + 1..];
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        all.push((&rest[..end], is_here));
        rest = &rest[end..];
    }
    all
}

/// Finds the writes of `fd`, which runs a program on the files that it finds.
pub(super) fn of_fd(rest: &[Word], folder: &Path, found: &mut Found) {
    let runs = |it: &Word| matches!(text(it), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    if let Some(at) = rest.iter().position(runs) {
        runs_writer(&standing_for(&rest[at + 1..], "{}"), folder, true, found).anything(folder, found);
    }
}

/// Finds the writes of `xargs` and `parallel`, which run a program on the words that they read: these may be any files below.
pub(super) fn of_xargs(rest: &[Word], folder: &Path, found: &mut Found) {
    const VALUED: [&str; 13] = [
        "-I",
        "-n",
        "-P",
        "-L",
        "-d",
        "-s",
        "-E",
        "-a",
        "-j",
        "--jobs",
        "--max-args",
        "--max-procs",
        "--arg-file",
    ];
    let takes_value = |it: &Word| text(it).is_some_and(|it| VALUED.contains(&it));
    let mut at = 0;
    while rest.get(at).is_some_and(is_option) {
        at += if takes_value(&rest[at]) { 2 } else { 1 };
    }
    let given = |it: &Word| matches!(text(it), Some(":::" | "::::"));
    let command = rest.get(at..).unwrap_or_default().split(given).next().unwrap_or_default();
    // A single word is a whole line.
    let words = match command {
        [Word::Plain(line)] if line.contains(' ') => {
            vec![Word::Plain("sh".into()), Word::Plain("-c".into()), Word::Plain(line.clone())]
        }
        command => standing_for(command, &placeholder(rest.get(..at).unwrap_or_default())),
    };
    runs_writer(&words, folder, true, found).anything(folder, found);
}

/// Returns the word that `xargs` and `parallel` replace by the words that they read.
fn placeholder(options: &[Word]) -> String {
    let at = options.iter().position(|it| text(it).is_some_and(|it| it.starts_with("-I")));
    let said = at.and_then(|at| match text(&options[at])?.strip_prefix("-I")? {
        "" => options.get(at + 1).and_then(text),
        said => Some(said),
    });
    said.unwrap_or("{}").to_owned()
}

/// The word that stands for the given files: no file has this name.
const GIVEN: &str = "\u{2}";

/// Returns the words of a command with the given files in place of the placeholder, or at the end.
fn standing_for(words: &[Word], placeholder: &str) -> Vec<Word> {
    let is_one = |it: &Word| text(it).is_some_and(|it| it.contains(placeholder));
    let filled = |it: &Word| match text(it) {
        Some(word) if is_one(it) => Word::Plain(word.replace(placeholder, GIVEN)),
        _ => it.clone(),
    };
    let mut filled: Vec<Word> = words.iter().map(filled).collect();
    if !words.iter().any(is_one) {
        filled.push(Word::Plain(GIVEN.into()));
    }
    filled
}

/// The writes of a command among the files that it is given.
#[derive(Debug, Default)]
struct OfGiven {
    /// The given files themselves, or files beside them.
    itself: bool,
    /// Files of the same names in these folders.
    into: Vec<PathBuf>,
}

impl OfGiven {
    fn itself() -> Self {
        Self { itself: true, into: Vec::new() }
    }

    fn add(&mut self, other: Self) {
        self.itself |= other.itself;
        self.into.extend(other.into);
    }

    /// Adds the writes where nothing is known about the given files.
    fn anything(self, folder: &Path, found: &mut Found) {
        let itself = self.itself.then(|| folder.to_owned());
        found.extend(itself.into_iter().chain(self.into).map(|it| Written::Below(it, Vec::new())));
    }
}

/// Returns the writes of a command among the files that a search gives to it. The caller looks separately for the
/// files that the command's own arguments name in this folder.
fn runs_writer(words: &[Word], folder: &Path, is_here: bool, found: &mut Found) -> OfGiven {
    let (to, words) = without_helpers(words, &|_| false);
    if !found.affords(size_of_val(words)) {
        return OfGiven::itself();
    }
    if let Some((language, text)) = code::told(words) {
        // The code refers to the given files by names of its own.
        if code::writes(language, &text) {
            return OfGiven::itself();
        }
    }
    let is_here = is_here && !matches!(to, Some(None));
    let folder = to.flatten().map_or_else(|| folder.to_owned(), |it| folder.join(it));
    let all = found.apart(|found| match shell_text(words) {
        // A shell's line does the same.
        Some(inner) => {
            let names = ["\"$@\"", "\"$1\"", "\"$0\"", "$@", "$1", "$0", "$f", "{}"];
            let inner = names.iter().fold(inner, |text, name| text.replace(name, GIVEN));
            Reader::within(found).line(&inner, &folder);
        }
        None => of_one(words, &folder, found),
    });
    let (named, given): (Vec<Written>, Vec<Written>) =
        all.into_iter().partition(|it| is_here && is_named(it));
    found.extend(named);
    let mut of_given = OfGiven { itself: found.gave_up(), into: Vec::new() };
    for it in given {
        // If the command runs elsewhere, the paths in its arguments are not known either.
        match it {
            Written::Path(path) | Written::Below(path, _) if is_here && is_in_another(&path, &folder) => {
                of_given.into.extend(path.parent().map(Path::to_owned));
            }
            _ => of_given.itself = true,
        }
    }
    of_given
}

/// Checks whether a path is that of a given file, under its own name in a folder that the command names.
fn is_in_another(path: &Path, folder: &Path) -> bool {
    let parent = path.parent().filter(|it| *it != folder && !it.to_string_lossy().contains(GIVEN));
    parent.is_some() && path.file_name().is_some_and(|it| it == GIVEN)
}

/// Checks whether a command names its writes itself, for any files that it is given.
fn is_named(written: &Written) -> bool {
    let is_free = |path: &Path| !path.to_string_lossy().contains(GIVEN);
    match written {
        Written::Path(path) => is_free(path),
        Written::Below(path, patterns) => is_free(path) && !patterns.iter().any(|it| it.contains(GIVEN)),
        Written::Index(folder) => is_free(folder),
        Written::CodexPatch(_, folder) => is_free(folder),
        Written::Changed(..) | Written::Patched(..) | Written::Anything => false,
    }
}
