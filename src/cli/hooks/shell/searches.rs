//! What programs write that have another one write what they find or read.

use std::path::{Path, PathBuf};

use super::found::Found;
use super::programs::{is_option, of_one, text};
use super::words::Word;
use super::wrappers::{shell_text, without_helpers};
use super::{Reader, Written, code};

/// `find` removes what it finds, or has a program write it.
pub(super) fn of_find(rest: &[Word], folder: &Path, found: &mut Found) {
    let says = |names: &[&str]| rest.iter().filter_map(text).any(|it| names.contains(&it));
    for (at, word) in rest.iter().enumerate() {
        if matches!(text(word), Some("-fprint" | "-fprint0" | "-fprintf" | "-fls"))
            && let Some(into) = rest.get(at + 1).and_then(text)
        {
            found.push(Written::Path(folder.join(into)));
        }
    }
    if !says(&["-delete"])
        && !runs(rest).into_iter().any(|(it, is_here)| runs_writer(it, folder, is_here, found))
    {
        return;
    }
    let is_test = |it: &Word| is_option(it) || matches!(text(it), Some("(" | "!"));
    let from: Vec<PathBuf> =
        rest.iter().take_while(|it| !is_test(it)).filter_map(text).map(|it| folder.join(it)).collect();
    let from = if from.is_empty() { vec![folder.to_owned()] } else { from };
    // Of tests that are joined in another way than by `and` it is not looked at how.
    let is_joined = says(&["-o", "-or", "!", "-not", "-prune", ",", "("]);
    let named = |it: &&Word| matches!(text(it), Some("-name"));
    let names: Vec<String> = match rest.iter().filter(named).count() {
        1 if !is_joined => {
            let at = rest.iter().position(|it| named(&it));
            at.and_then(|at| text(rest.get(at + 1)?)).map(str::to_owned).into_iter().collect()
        }
        _ => Vec::new(),
    };
    found.extend(from.into_iter().map(|it| Written::Below(it, names.clone())));
}

/// The commands that `find` runs, and whether it does so where it runs itself.
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

/// `fd` has a program write what it finds.
pub(super) fn of_fd(rest: &[Word], folder: &Path, found: &mut Found) {
    let runs = |it: &Word| matches!(text(it), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    if let Some(at) = rest.iter().position(runs)
        && runs_writer(&rest[at + 1..], folder, true, found)
    {
        found.push(Written::Below(folder.to_owned(), Vec::new()));
    }
}

/// `xargs` and `parallel` read what they have a program write: it may be anything below.
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
    // All of it in one word is a line.
    let runs = match command {
        [Word::Plain(line)] if line.contains(' ') => {
            let words = [Word::Plain("sh".into()), Word::Plain("-c".into()), Word::Plain(line.clone())];
            runs_writer(&words, folder, true, found)
        }
        command => runs_writer(command, folder, true, found),
    };
    if runs {
        found.push(Written::Below(folder.to_owned(), Vec::new()));
    }
}

/// Stands for what is given to a command: no file is called so.
const GIVEN: &str = "\u{2}";

/// Whether a command would write what is given to it. What it names itself, if it runs in this folder, is found besides.
fn runs_writer(words: &[Word], folder: &Path, is_here: bool, found: &mut Found) -> bool {
    let (to, words) = without_helpers(words, &|_| false);
    if !found.affords(size_of_val(words)) {
        return true;
    }
    if let Some((language, text)) = code::told(words) {
        // What is given to it stands in there under names of its own.
        if code::writes(language, &text) {
            return true;
        }
    }
    let is_here = is_here && !matches!(to, Some(None));
    let folder = to.flatten().map_or_else(|| folder.to_owned(), |it| folder.join(it));
    let all = found.apart(|found| match shell_text(words) {
        // The same.
        Some(inner) => {
            let names = ["\"$@\"", "\"$1\"", "\"$0\"", "$@", "$1", "$0", "$f", "{}"];
            let inner = names.iter().fold(inner, |text, name| text.replace(name, GIVEN));
            Reader::within(found).line(&inner, &folder);
        }
        None => {
            let mut given = words.to_vec();
            given.push(Word::Plain(GIVEN.into()));
            of_one(&given, &folder, found);
        }
    });
    let (named, given): (Vec<Written>, Vec<Written>) =
        all.into_iter().partition(|it| is_here && is_named(it));
    found.extend(named);
    found.gave_up() || !given.is_empty()
}

/// Whether a command itself says what is written, whatever is given to it.
fn is_named(written: &Written) -> bool {
    let is_free = |path: &Path| !path.to_string_lossy().contains(GIVEN);
    match written {
        Written::Path(path) => is_free(path),
        Written::Below(path, patterns) => is_free(path) && !patterns.iter().any(|it| it.contains(GIVEN)),
        Written::Changed(..) | Written::Patched(..) | Written::Anything => false,
    }
}
