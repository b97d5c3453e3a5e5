//! Git work trees in which runs work, and what a task's run has committed in one.

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
    /// The worker whose run was the last one in it.
    pub agent: String,
    /// The task of that run.
    pub task: String,
    /// Commits of the branch that what is checked out in the workspace does not have; absent where the branch is gone.
    pub ahead: Option<u64>,
    /// Files that are not committed.
    pub uncommitted: u64,
    /// Whether a run works in it.
    pub running: bool,
    /// Why it cannot be used any more; absent for one that can.
    pub stale: Option<String>,
}

/// `POST /remove-work-tree`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoveWorkTree {
    /// The branch that is checked out in it, or its folder as an absolute path.
    pub which: String,
    /// Whether what is not committed, or not merged, may be lost.
    pub force: bool,
    /// Whether the branch is deleted as well.
    pub branch: bool,
}

/// Answer to [`RemoveWorkTree`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemovedWorkTree {
    /// The branch that was checked out in it.
    pub branch: String,
    /// Where it was.
    pub path: String,
    /// Whether the branch was deleted.
    pub branch_deleted: bool,
}

/// What has become of a run's changes in its work tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InWorkTree {
    /// The branch.
    pub branch: String,
    /// The folder of the work tree.
    pub path: String,
    /// The commit; `None` where nothing was committed.
    pub commit: Option<String>,
    /// Changed files that are not in it, each with the reason.
    pub not_committed: Vec<(String, String)>,
    /// Files that git ignores by a rule that the run has made; some of them where there are many.
    pub ignored: Vec<String>,
    /// How many more there are.
    pub ignored_more: u64,
    /// Why nothing was committed that should have been.
    pub failed: Option<String>,
    /// Whether work tree and branch were removed, since the run has changed nothing and both were made for it alone.
    pub removed: bool,
    /// The command that merges the branch.
    pub next: Option<String>,
}

impl Task {
    /// What its run has committed; `None` for a run that was in no work tree, or is not over.
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
