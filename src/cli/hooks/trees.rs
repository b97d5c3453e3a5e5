//! Splits the writes of a tool by the work tree that contains each file: a lease keeps writers out of its own work
//! tree, and a session may write into another one than that in which it runs.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::call::{Target, names_in};
use crate::{CliError, RepoContext};
use provost_api::wire;

/// The edits of one work tree.
pub(super) struct InTree {
    /// Its top; `None` for the main one.
    pub(super) worktree: Option<String>,
    pub(super) edits: Vec<wire::Edit>,
}

/// Returns the edits within the repository, by work tree; files outside of it are left out. A link in one work tree
/// may lead to a file of another one: then the file has an edit in both.
pub(super) fn by_tree(here: &RepoContext, targets: &[Target]) -> Result<Vec<InTree>, CliError> {
    let mut all: Vec<InTree> = Vec::new();
    for target in targets {
        if target.path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(CliError::of("the tool call is not understood").because("a path has a NUL in it"));
        }
        for (top, path) in names_in(here, &target.path) {
            let worktree = linked(here, &top);
            let at = all.iter().position(|it| it.worktree == worktree).unwrap_or_else(|| {
                all.push(InTree { worktree, edits: Vec::new() });
                all.len() - 1
            });
            let change = target.change.as_ref();
            let texts = change.map(|(before, after)| (STANDARD.encode(before), STANDARD.encode(after)));
            let (before, after) = texts.unzip();
            all[at].edits.push(wire::Edit { path, before, after, fails: target.fails, symbol: None });
        }
    }
    Ok(all)
}

/// Returns the name of a work tree for the daemon; `None` for the main one.
pub(super) fn linked(here: &RepoContext, top: &Path) -> Option<String> {
    (top != here.places.root).then(|| top.to_str().map(str::to_owned)).flatten()
}

/// Joins two answers of the daemon.
pub(super) fn joined(all: Option<wire::Guarded>, more: wire::Guarded) -> wire::Guarded {
    let Some(mut all) = all else { return more };
    all.blocked.extend(more.blocked);
    all.near.extend(more.near);
    all.written.extend(more.written);
    all
}
