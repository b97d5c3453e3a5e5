//! Splits what a tool would write by the work tree in which each file lies: a lease keeps writers out of its own work tree, and a
//! session may write into another one than that in which it runs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::call::{Target, names_in, real};
use crate::{CliError, RepoContext};
use provost_api::wire;
use provost_base::limits::WIT_WORKTREES_MAX;
use provost_config::WorkTree;

/// The edits of one work tree.
pub(super) struct InTree {
    /// Its top; `None` for the main one.
    pub(super) worktree: Option<String>,
    pub(super) edits: Vec<wire::Edit>,
}

/// What the repository has to say about, by work tree; what lies outside of it is not our business.
pub(super) fn by_tree(here: &RepoContext, targets: &[Target]) -> Result<Vec<InTree>, CliError> {
    let trees = here.places.work_trees(WIT_WORKTREES_MAX);
    let mut all: Vec<InTree> = Vec::new();
    for target in targets {
        if target.path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(CliError::of("the tool call is not understood").because("a path has a NUL in it"));
        }
        let names = names_in(here, &target.path);
        if names.is_empty() {
            continue;
        }
        let worktree = tree_of(here, &trees, target);
        let at = all.iter().position(|it| it.worktree == worktree).unwrap_or_else(|| {
            all.push(InTree { worktree, edits: Vec::new() });
            all.len() - 1
        });
        for path in names {
            let change = target.change.as_ref();
            let texts = change.map(|(before, after)| (STANDARD.encode(before), STANDARD.encode(after)));
            let (before, after) = texts.unzip();
            all[at].edits.push(wire::Edit { path, before, after, fails: target.fails, symbol: None });
        }
    }
    Ok(all)
}

/// The work tree in which a file lies; one may lie within another. Where that is not known, the session's own.
fn tree_of(here: &RepoContext, trees: &[WorkTree], target: &Target) -> Option<String> {
    let path = real(&target.path).unwrap_or_else(|| target.path.clone());
    let around = trees.iter().map(|it| &it.top).filter(|it| path.starts_with(it));
    match around.max_by_key(|it| it.components().count()) {
        Some(top) if *top == here.places.root => None,
        Some(top) => top.to_str().map(str::to_owned),
        None => here.linked_worktree(),
    }
}

/// Two answers of the daemon as one.
pub(super) fn joined(all: Option<wire::Guarded>, more: wire::Guarded) -> wire::Guarded {
    let Some(mut all) = all else { return more };
    all.blocked.extend(more.blocked);
    all.near.extend(more.near);
    all.written.extend(more.written);
    all
}
