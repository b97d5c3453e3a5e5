//! Writes of programs that copy, move and link: the last argument, or files of the same names in it.

use std::path::{Path, PathBuf};

use super::Written;
use super::found::Found;
use super::programs::{has, is_option, text, values_of, written};
use super::words::Word;

/// Programs whose last argument is the target of the others.
const PROGRAMS: &[&str] = &["cp", "mv", "install", "ln", "rsync", "scp", "ditto"];

/// Their options of one letter without a value.
const FLAGS: &str = "rRafpvuiLPHdnxsDTbZ";

pub(super) fn is_one(program: &str) -> bool {
    PROGRAMS.contains(&program)
}

pub(super) fn of_one(program: &str, rest: &[Word], folder: &Path, found: &mut Found) {
    let mut named: Vec<&Word> = rest.iter().filter(|it| !is_option(it)).collect();
    if program == "rsync" && has(rest, &["-n", "--dry-run"]) {
        return;
    }
    if program == "mv" || (program == "rsync" && has(rest, &["--remove-source-files"])) {
        let sources = named.split_last().map_or(&named[..], |it| if it.1.is_empty() { &named } else { it.1 });
        found.extend(sources.iter().flat_map(|it| written(it, folder)));
    }
    let said = values_of(rest, &["-t", "--target-directory"], FLAGS);
    if let Some(into) = said.first().filter(|_| !matches!(program, "rsync" | "scp" | "ditto")) {
        return put(&named, &folder.join(into), folder, found);
    }
    let Some(last) = named.pop() else { return };
    if program == "ln" && named.is_empty() {
        return put(&[last], folder, folder, found);
    }
    if program == "install" && has(rest, &["-d", "--directory"]) {
        return;
    }
    let literal = match last {
        Word::Plain(text) => Some(text),
        // A pattern without a match is a file's name.
        Word::Pattern(text) => Some(text).filter(|it| folder.join(it).symlink_metadata().is_ok()),
        Word::Made(_) | Word::Unknown | Word::Into | Word::From => return,
    };
    let Some(literal) = literal else { return found.extend(written(last, folder)) };
    let at = folder.join(literal);
    let to_the_name = has(rest, &["-T", "--no-target-directory"]) && program != "rsync";
    let whole =
        program == "ditto" || (program == "cp" && has(rest, &["--parents"])) || has(rest, &["--relative"]);
    let is_folder = at.is_dir() || literal.ends_with('/');
    if whole || (to_the_name && is_folder) {
        return found.push(Written::Below(at, Vec::new()));
    }
    if !is_folder || to_the_name {
        found.push(Written::Path(at.clone()));
        let brings_folder = |it: &&&Word| text(it).is_some_and(|it| folder.join(it).is_dir());
        if named.iter().any(|it| brings_folder(&it)) {
            found.push(Written::Below(at.clone(), Vec::new()));
        }
        // An existing target that is no folder stays one; a missing target may become a folder before the command runs.
        if to_the_name || at.symlink_metadata().is_ok() {
            return;
        }
    }
    if program == "rsync" && named.iter().any(|it| text(it).is_none_or(|it| it.ends_with('/'))) {
        return found.push(Written::Below(at, Vec::new()));
    }
    put(&named, &at, folder, found);
}

/// Adds the writes of sources into a folder, under their own names.
fn put(sources: &[&Word], into: &Path, folder: &Path, found: &mut Found) {
    for source in sources {
        let all = || Written::Below(into.to_owned(), Vec::new());
        let (Word::Plain(text) | Word::Pattern(text)) = source else {
            found.push(all());
            continue;
        };
        let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        // In a source on another machine, the file's name follows the machine's name.
        if let Some((_, name)) = name.rsplit_once(':').filter(|it| !it.1.is_empty()) {
            found.push(Written::Path(into.join(name)));
        }
        let has_pattern = name.contains(['*', '?']) || matches!(source, Word::Pattern(_));
        found.push(match name {
            "" | "." | ".." => all(),
            name if has_pattern && name.contains(['*', '?', '[', '{', '}']) => {
                // This includes the files in folders with such names.
                Written::Below(into.to_owned(), vec![name.to_owned(), format!("{name}/**")])
            }
            name => brought(into.join(name), &folder.join(text)),
        });
    }
}

fn brought(at: PathBuf, from: &Path) -> Written {
    if from.is_dir() { Written::Below(at, Vec::new()) } else { Written::Path(at) }
}
