//! Scripts of the repository that a command starts, or that a shell reads for it.

use std::path::Path;

use super::programs::{name, text};
use super::projects;
use super::values::top;
use super::words::Word;
use super::wrappers::{filled_in, is_shell, past_options, reads_commands, shell_text};
use provost_base::later::is_fetched;
use provost_base::plain_path;

/// Options of shells that have a value in the next word.
const VALUED: &[&str] = &["-o", "-O", "+o", "+O", "--init-file", "--rcfile"];

/// Returns the text of a script that a command starts, with the given words in place of its parameters. `None` where
/// it is not a script of the repository, or is for another interpreter.
pub(super) fn started(words: &[Word], folder: &Path) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let given = match name(words)? {
        "." | "source" => rest,
        shell if is_shell(shell) => {
            let takes_a_file = !reads_commands(words) && shell_text(words).is_none();
            let at = past_options(shell, rest, VALUED, &mut None);
            rest.get(at..).filter(|_| takes_a_file)?
        }
        _ if text(first)?.contains('/') => words,
        _ => return None,
    };
    let script = read(text(given.first()?)?, folder)?;
    let is_started_itself = std::ptr::eq(given, words);
    let interpreter = script.lines().next().and_then(|it| it.strip_prefix("#!"));
    let of_a_shell = interpreter.is_some_and(|it| it.split(['/', ' ']).any(is_shell));
    (of_a_shell || !is_started_itself).then(|| filled_in(&script, given))
}

/// Returns the text of a file of the repository, unless a package manager has put it there.
pub(super) fn read(path: &str, folder: &Path) -> Option<String> {
    let (folder, file) = (plain_path(folder), plain_path(&folder.join(path)));
    let below = file.strip_prefix(top(&folder)?).ok()?;
    let is_fetched = below.iter().any(|it| is_fetched(it.as_encoded_bytes()));
    if is_fetched { None } else { projects::read(&file) }
}
