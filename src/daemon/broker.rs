//! The broker door over this repository: whose it is, and which work trees there are.

#[cfg(unix)]
mod log;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::base::limits::WIT_WORKTREES_MAX;
use crate::config::Places;
use crate::protocols::broker::{Broker, Tree};
use crate::service::Provost;

/// The door of a repository.
pub(super) fn door(places: &Places, provost: Provost) -> Broker {
    let identity = (places.root.display().to_string(), places.hash.clone());
    let at = places.clone();
    Broker::new(provost, identity, super::now, (Arc::new(move || trees(&at)), Box::new(|_, _| {})))
}

/// The work trees, each with the name of its branch.
pub(super) fn trees(places: &Places) -> Vec<Tree> {
    let all = places.worktrees(WIT_WORKTREES_MAX);
    all.into_iter().map(|top| (top.clone(), branch(&top))).collect()
}

/// The branch that is checked out in a work tree; none where that is no branch.
fn branch(top: &Path) -> Option<String> {
    let dot_git = top.join(".git");
    let git_dir = match fs::read_to_string(&dot_git) {
        Ok(pointer) => top.join(pointer.strip_prefix("gitdir: ")?.trim_end()),
        Err(_) => dot_git,
    };
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    head.strip_prefix("ref: refs/heads/").map(|it| it.trim_end().to_owned())
}
