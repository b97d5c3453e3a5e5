//! Writes of patches and archives.

use std::path::{Path, PathBuf};

use super::Written;
use super::found::Found;
use super::programs::{has, is_option, name, text, values_of};
use super::words::Word;

/// Options of `patch` that have a value.
const VALUED: &[&str] = &["-p", "-i", "-d", "-o", "-r", "-B", "-D", "-F", "-V", "-Y", "-z", "-g"];

/// The options of `patch` without a value.
const FLAGS: &str = "bcEeflNnRsTtuvZ";

/// Returns the number of leading folders that a line drops from the paths of a patch.
pub(super) fn strip(rest: &[Word], or: usize) -> usize {
    let said = values_of(rest, &["-p", "--strip"], FLAGS);
    said.iter().find_map(|it| it.parse().ok()).unwrap_or(or)
}

/// Returns the words that are neither options nor their values.
pub(super) fn named<'a>(rest: &'a [Word], valued: &[&str]) -> Vec<&'a Word> {
    let (mut named, mut is_value) = (Vec::new(), false);
    for word in rest {
        if std::mem::take(&mut is_value) {
            continue;
        }
        match is_option(word) {
            true => is_value = text(word).is_some_and(|it| valued.contains(&it)),
            false => named.push(word),
        }
    }
    named
}

fn is_tried(rest: &[Word]) -> bool {
    has(rest, &["--dry-run", "--version", "--help"])
}

fn folder_of(rest: &[Word], folder: &Path) -> PathBuf {
    values_of(rest, &["-d", "--directory"], FLAGS)
        .first()
        .map_or_else(|| folder.to_owned(), |it| folder.join(it))
}

/// Finds the writes of `patch`. A patch from its input is handled elsewhere.
pub(super) fn of_patch(rest: &[Word], folder: &Path, found: &mut Found) {
    if is_tried(rest) {
        return;
    }
    let at = folder_of(rest, folder);
    if let Some(into) = values_of(rest, &["-o", "--output"], FLAGS).first() {
        return found.push(Written::Path(at.join(into)));
    }
    let input = values_of(rest, &["-i", "--input"], FLAGS);
    match (input.first(), named(rest, VALUED).first().and_then(|it| text(it))) {
        (_, Some(file)) => found.push(Written::Path(at.join(file))),
        (Some(from), None) => found.push(Written::Patched(at.join(from), at, strip(rest, 0))),
        (None, None) => {}
    }
}

/// Returns, for a program that applies a patch from its input, the folder and the number of leading folders to drop;
/// `None` for a program that reads none.
pub(super) fn is_taken_by(words: &[Word], folder: &Path) -> Option<(PathBuf, usize)> {
    let rest = words.get(1..)?;
    match name(words)? {
        "patch" => {
            let elsewhere = values_of(rest, &["-i", "--input", "-o", "--output"], FLAGS);
            let is_free = is_tried(rest) || !elsewhere.is_empty() || !named(rest, VALUED).is_empty();
            (!is_free).then(|| (folder_of(rest, folder), strip(rest, 0)))
        }
        "git" => super::git::takes_patch(rest, folder),
        _ => None,
    }
}

/// The names under which Codex carries out its patches in a shell.
const CODEX: [&str; 2] = ["apply_patch", "applypatch"];

/// Returns the patch that `apply_patch` gets as an argument.
pub(super) fn codex_patch(words: &[Word]) -> Option<&str> {
    let is_it = name(words).is_some_and(|it| CODEX.contains(&it));
    words.get(1).filter(|_| is_it).and_then(text).filter(|it| it.contains("*** Begin Patch"))
}

/// Checks whether it reads its patch from its input.
pub(super) fn takes_codex_patch(words: &[Word]) -> bool {
    words.len() == 1 && name(words).is_some_and(|it| CODEX.contains(&it))
}

/// Adds the writes of programs for archives: any file below their folder.
pub(super) fn of_archive(program: &str, rest: &[Word], folder: &Path, found: &mut Found) {
    let below = |at: PathBuf| Written::Below(at, Vec::new());
    match program {
        "tar" | "bsdtar" => of_tar(rest, folder, found),
        "unzip" if !has(rest, &["-l", "-t", "-p", "-Z"]) => {
            let into = values_of(rest, &["-d"], "");
            found.push(below(into.first().map_or_else(|| folder.to_owned(), |it| folder.join(it))));
        }
        "7z" | "7za" if matches!(rest.first().and_then(text), Some("x" | "e")) => {
            let into = values_of(rest, &["-o"], "");
            found.push(below(into.first().map_or_else(|| folder.to_owned(), |it| folder.join(it))));
        }
        "cpio" if has(rest, &["-i", "-p", "--extract", "--pass-through"]) => {
            found.push(below(folder.to_owned()))
        }
        "zip" => {
            let into = rest.iter().find(|it| !is_option(it)).and_then(text);
            found.extend(into.map(|it| Written::Path(folder.join(it))));
        }
        "unzip" | "7z" | "7za" | "cpio" => {}
        // These replace a file by another one.
        _ if has(rest, &["-c", "--stdout", "--to-stdout", "-l", "-t", "--list", "--test"]) => {}
        _ => {
            const ENDS: [&str; 4] = [".gz", ".bz2", ".xz", ".zst"];
            for file in rest.iter().filter(|it| !is_option(it)).filter_map(text) {
                let short = ENDS.iter().find_map(|end| file.strip_suffix(end));
                found.extend(
                    [Some(file), short].into_iter().flatten().map(|it| Written::Path(folder.join(it))),
                );
            }
        }
    }
}

/// Adds the writes of `tar`: any file below its folder.
fn of_tar(rest: &[Word], folder: &Path, found: &mut Found) {
    let first = rest.first().and_then(text).unwrap_or_default();
    let is_short = |it: &str| it.starts_with('-') && !it.starts_with("--");
    let says = |it: &str| it == "--extract" || it == "--get" || (is_short(it) && it.contains('x'));
    let extracts = rest.iter().filter_map(text).any(says) || (!first.starts_with('-') && first.contains('x'));
    let shows = has(rest, &["-O", "--to-stdout"]);
    if extracts && !shows {
        let into = values_of(rest, &["-C", "--directory"], "");
        let into = into.first().map_or_else(|| folder.to_owned(), |it| folder.join(it));
        found.push(Written::Below(into, Vec::new()));
    }
}
