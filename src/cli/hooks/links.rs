//! Other names of a file that a call would write: hard links, under which another agent may hold it.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::call::{Target, Targets};
use super::trees::InTree;
use crate::RepoContext;
use provost_api::wire;

/// Checks whether any of these files has another name.
pub(super) fn are_there(targets: &Targets) -> bool {
    targets.files.iter().any(|it| has_others(&it.path))
}

fn has_others(path: &Path) -> bool {
    identity(path).is_some_and(|(_, _, names)| names > 1)
}

/// Adds the edits of these files under the names by which others hold them.
pub(super) fn add(here: &RepoContext, targets: &Targets, held: &BTreeSet<String>, all: &mut Vec<InTree>) {
    let top = &here.places.worktree;
    let linked = |it: &&Target| has_others(&it.path);
    let linked: Vec<&Target> = targets.files.iter().filter(linked).collect();
    let worktree = here.linked_worktree();
    let at = all.iter().position(|it| it.worktree == worktree);
    let known = |name: &String| at.is_some_and(|at| all[at].edits.iter().any(|it| it.path == *name));
    let edits = held.iter().filter(|name| !linked.is_empty() && !known(name)).filter_map(|name| {
        let path = top.join(name);
        let there = identity(&path)?;
        let target = linked.iter().find(|it| identity(&it.path) == Some(there))?;
        let texts =
            target.change.as_ref().map(|(before, after)| (STANDARD.encode(before), STANDARD.encode(after)));
        let (before, after) = texts.unzip();
        Some(wire::Edit { path: name.clone(), before, after, fails: target.fails, symbol: None })
    });
    let edits: Vec<wire::Edit> = edits.collect();
    match at {
        Some(at) => all[at].edits.extend(edits),
        None if edits.is_empty() => {}
        None => all.push(InTree { worktree, edits }),
    }
}

/// The identity of the file that a path leads to: its device, its number there, and the number of its names.
type Identity = (u64, u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((found.dev(), found.ino(), found.nlink()))
}

/// Returns `None`: this system does not tell whether two names belong to one file.
#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<Identity> {
    None
}
