//! Words of command lines that a person copies into a shell: a text that others have chosen, such as an id or a
//! name of a file, is one word there, and never a command.

use std::fmt::Write as _;

use crate::lookalikes::is_hidden;

/// Returns a text as one word of a shell's line. A hidden character is written as in `$'\u202e'`, which shells read
/// as that character.
pub fn shell_word(text: &str) -> String {
    let hides = |c: char| c.is_control() || is_hidden(c) || (c.is_whitespace() && c != ' ');
    let is_plain = |c: char| (c.is_alphanumeric() && !hides(c)) || "/._-+:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(hides) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for c in text.chars() {
        // Writing into a String does not fail.
        let _ = match c {
            '\'' | '\\' => write!(word, "\\{c}"),
            c if hides(c) && u32::from(c) > 0xffff => write!(word, "\\U{:08x}", u32::from(c)),
            c if hides(c) => write!(word, "\\u{:04x}", u32::from(c)),
            c => write!(word, "{c}"),
        };
    }
    word.push('\'');
    word
}

/// The words that the noun `apply` takes for one of its commands, and not for a task.
const OF_APPLY: [&str; 3] = ["list", "undo", "help"];

/// Returns the command about a task, as a person types it: `task_command("task show", id, "--wait")`.
pub fn task_command(command: &str, task: &str, flags: &str) -> String {
    let command = if command == "apply" && OF_APPLY.contains(&task) { "task apply" } else { command };
    // An id that itself looks like one marked as exact gets the mark as well.
    let exact = if task.starts_with(EXACTLY) { EXACTLY } else { "" };
    let word = shell_word(&format!("{exact}{task}"));
    let parts = match task.starts_with('-') {
        true => ["provost", command, flags, "--", &word],
        false => ["provost", command, &word, flags, ""],
    };
    parts.iter().filter(|it| !it.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

/// The words that the noun `merge` takes for one of its commands, and not for a branch.
const OF_MERGE: [&str; 3] = ["branches", "queue", "help"];

/// Returns the command that merges a branch, as a person types it. No branch begins with a dash.
pub fn merge_command(branch: &str) -> String {
    let verb = if OF_MERGE.contains(&branch) { "branches " } else { "" };
    format!("provost merge {verb}{}", shell_word(branch))
}

/// The mark before an id that is meant exactly, if other ids begin with it.
pub const EXACTLY: &str = "id:";
