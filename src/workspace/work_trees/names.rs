//! Names of branches, and of the folders of their work trees.

use super::others_refs::check_reserved;
use provost_base::Digest;
use provost_base::limits::{BRANCH_LEN_MAX, BRANCH_PART_LEN_MAX, TREE_SLUG_LEN_MAX};

/// Checks whether a text can be the name of a branch here: a name that git accepts and cannot take for anything else.
///
/// # Errors
/// The fault of the name, as the end of a sentence.
pub fn check_branch(name: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("is no name of a branch: {why}"));
    if name.is_empty() || name.len() > BRANCH_LEN_MAX {
        return wrong(&format!("it has to have 1 to {BRANCH_LEN_MAX} bytes"));
    }
    if name.starts_with('-') {
        return wrong("it begins with `-`");
    }
    if name.starts_with("refs/") || name == "HEAD" || name == "@" {
        return wrong("git takes it for a reference; write the branch alone, as in `feat/x`");
    }
    if name.contains("..") || name.contains("@{") {
        return wrong("it has `..` or `@{` in it");
    }
    let shown = provost_base::visible_name(name, BRANCH_LEN_MAX);
    if shown != name || name.contains([' ', '~', '^', ':', '?', '*', '[', '\\']) {
        return wrong("it has a blank, a character that hides, or one of `~^:?*[\\` in it");
    }
    let is_odd = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    if name.split('/').any(is_odd) || name.ends_with('.') {
        return wrong("a part of it is empty, begins or ends with a dot, or ends with `.lock`");
    }
    check_reserved(name)
}

/// Returns the branch of a run that names none. It depends only on agent and task.
pub fn named_after(agent: &str, task: &str) -> String {
    format!("provost/{}/{}", part(agent), part(task))
}

/// Returns an id as a part of a branch's name; a digest distinguishes ids that had to be changed.
fn part(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = id.chars().map(|c| if fits(c) { c } else { '-' }).take(BRANCH_PART_LEN_MAX).collect();
    let plain = plain.replace("..", "--");
    let plain = plain.trim_matches(['.', '-']);
    match plain == id && !plain.ends_with(".lock") {
        true => plain.to_owned(),
        false => format!("{}-{}", plain.trim_end_matches(".lock"), short(id)).trim_matches('-').to_owned(),
    }
}

/// Returns the name of the folder of a branch's work tree.
pub(super) fn folder_of(branch: &str) -> String {
    let plain: String = branch.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let plain: String = plain.trim_matches('-').chars().take(TREE_SLUG_LEN_MAX).collect();
    format!("{plain}-{}", short(branch)).trim_start_matches('-').to_owned()
}

fn short(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string().chars().take(8).collect()
}

/// Returns an agent as the author of a commit: a name and an address that git does not change.
pub(super) fn author(agent: &str) -> (String, String) {
    let hides = |c: char| provost_base::visible_name(c.encode_utf8(&mut [0; 4]), 16).chars().ne([c]);
    let is_crud = |c: char| "<>\\\"".contains(c) || hides(c);
    let name: String = agent.chars().filter(|c| !is_crud(*c)).collect();
    let name = name.trim_matches([' ', '.', ',', ':', ';', '\'']).to_owned();
    let name = if name.is_empty() { format!("agent-{}", short(agent)) } else { name };
    (name, format!("{}@agents.provost.invalid", part(agent)))
}
