//! The types for the git work trees of runs, and for the commits of a task's run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Task;

/// A git work tree of runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkTree {
    /// The branch that is checked out in it.
    pub branch: String,
    /// Its folder.
    pub path: String,
    /// The worker of the last run in it.
    pub agent: String,
    /// The task of that run.
    pub task: String,
    /// The number of commits of the branch that the workspace's checked-out branch lacks; absent if the branch is gone.
    pub ahead: Option<u64>,
    /// The number of uncommitted files.
    pub uncommitted: u64,
    /// Whether a run works in it.
    pub running: bool,
    /// The reason why it can no longer be used; absent if it can.
    pub stale: Option<String>,
}

/// `POST /remove-work-tree`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoveWorkTree {
    /// Its branch, or its folder as an absolute path.
    pub which: String,
    /// Whether uncommitted or unmerged changes may be lost.
    pub force: bool,
    /// Whether to delete the branch, too.
    pub branch: bool,
}

/// Answer to [`RemoveWorkTree`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemovedWorkTree {
    /// The branch that was checked out in it.
    pub branch: String,
    /// Its former folder.
    pub path: String,
    /// Whether the branch was deleted.
    pub branch_deleted: bool,
}

/// The outcome of a run's changes in its work tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InWorkTree {
    /// The branch.
    pub branch: String,
    /// The folder of the work tree.
    pub path: String,
    /// The commit; `None` if nothing was committed.
    pub commit: Option<String>,
    /// Changed files that are not in the commit, each with the reason.
    pub not_committed: Vec<(String, String)>,
    /// Files that git ignores by a rule that the run has added; only some of them if there are many.
    pub ignored: Vec<String>,
    /// The number of further ones.
    pub ignored_more: u64,
    /// The reason why a commit failed.
    pub failed: Option<String>,
    /// Whether the daemon removed the work tree and the branch, since the run changed nothing and both were made for it.
    pub removed: bool,
    /// The command that merges the branch.
    pub next: Option<String>,
}

impl Task {
    /// Returns what the run has committed; `None` for a run outside of a work tree, or one that is not over.
    pub fn in_work_tree(&self) -> Option<InWorkTree> {
        let mut said = self.notes.iter().rev().filter_map(|note| note.details.as_ref());
        let tree = said.find_map(|it| it.get("work_tree").filter(|it| it["branch"].is_string()))?;
        let text = |it: &Value| it.as_str().map(str::to_owned);
        let left = tree["not_committed"].as_array().into_iter().flatten();
        Some(InWorkTree {
            branch: text(&tree["branch"])?,
            path: text(&tree["path"]).unwrap_or_default(),
            commit: text(&tree["commit"]),
            not_committed: left.filter_map(|it| text(&it["path"]).zip(text(&it["why"]))).collect(),
            ignored: tree["ignored"].as_array().into_iter().flatten().filter_map(text).collect(),
            ignored_more: tree["ignored_more"].as_u64().unwrap_or_default(),
            failed: text(&tree["failed"]),
            removed: tree["removed"] == true,
            next: text(&tree["next"]),
        })
    }
}
