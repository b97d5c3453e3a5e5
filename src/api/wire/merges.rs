//! The types for merges of branches.

use serde::{Deserialize, Serialize};

/// `POST /preview-merge`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergeBranches {
    /// The branches, by their names.
    pub branches: Vec<String>,
    /// The branch into which they are merged; the one that is checked out in the workspace when absent.
    pub into: Option<String>,
}

/// `POST /queue-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueMerges {
    /// The branches, by their names, in the order in which they are merged.
    pub branches: Vec<String>,
    /// The branch into which they are merged; the one that is checked out in the workspace when absent.
    pub into: Option<String>,
    /// The commits that the caller has seen, in the order of the branches; when empty, the present commits of the
    /// branches.
    pub commits: Vec<String>,
    /// The obstacles to ignore: `settings` that run later, `held` places, `symbols` in conflict, `unchecked`. Only
    /// a person may set them.
    pub passes: Vec<String>,
}

/// A conflict.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MergeConflict {
    /// `text`, `symbol`, `call` or `contract`.
    pub kind: String,
    /// The file, from the root of the repository.
    pub file: String,
    /// The symbol in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The conflict, as a sentence.
    pub text: String,
}

/// A branch as it would be merged.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergeBranch {
    /// Its name.
    pub branch: String,
    /// The commit that it names.
    pub commit: String,
    /// The agent that made the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The source of that knowledge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_by: Option<String>,
    /// Whether the daemon's own record confirms the owner.
    pub owner_proven: bool,
    /// The number of files that it changes.
    pub files: usize,
    /// `merged` already, `ahead` of the trunk, or to be `merged_in`.
    pub way: String,
    /// Its conflicts with the trunk.
    pub conflicts: Vec<MergeConflict>,
    /// The reservations of agents that it touches.
    pub held: Vec<String>,
    /// The intents of agents that it touches.
    pub announced: Vec<String>,
    /// Files that run later, or instruct agents.
    pub settings: Vec<String>,
    /// The reason for its place in the order.
    pub reason: String,
}

/// Two branches that collide.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MergePair {
    /// The branch that is merged first.
    pub one: String,
    /// The branch that is merged second.
    pub other: String,
    /// Their conflicts.
    pub conflicts: Vec<MergeConflict>,
}

/// Answer to `POST /preview-merge`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergePreview {
    /// The branch into which the others are merged.
    pub into: String,
    /// The commit that it names.
    pub commit: String,
    /// The branches, in the order in which they are merged.
    pub branches: Vec<MergeBranch>,
    /// The pairs that collide.
    pub pairs: Vec<MergePair>,
    /// The checks of the merged tree.
    pub checks: Vec<String>,
    /// Whether calls were searched in the whole tree, and not only in changed files.
    pub whole: bool,
}

/// An entry of the queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Merge {
    /// Its number.
    pub number: u64,
    /// The branch.
    pub branch: String,
    /// The branch into which it is merged.
    pub into: String,
    /// The commit that is merged.
    pub commit: String,
    /// The agent or person that has queued it.
    pub by: String,
    /// When it was queued.
    pub at: String,
    /// The obstacles that it ignores.
    pub passes: Vec<String>,
    /// `waiting`, `working`, `moving`, `merged` or `set_aside`.
    pub state: String,
    /// While it is worked on, the step; if it is set aside, the cause as a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// If it is set aside, the reason; if it is merged, a note for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The agent that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// The commit of the trunk afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<String>,
}

impl Merge {
    /// Returns whether the entry is merged or set aside.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "merged" | "set_aside")
    }
}

/// Answer to `POST /queue-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergesQueued {
    /// `queued`; `awaiting` an approval; or `denied`.
    pub state: String,
    /// The entries.
    pub entries: Vec<Merge>,
    /// The approval that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<u64>,
    /// The rule that has denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason of the denying rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /remove-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoveMerges {
    /// The branches, by their names.
    pub branches: Vec<String>,
    /// The branch into which they would be merged; when absent, each must wait for only one branch.
    pub into: Option<String>,
}

/// Answer to `POST /remove-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MergesRemoved {
    /// The number of removed entries.
    pub count: u32,
}

/// `POST /run-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunMerges {
    /// Only these entries, in this order; all waiting ones if empty.
    pub only: Vec<u64>,
}

/// Answer to `POST /run-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MergesBegun {
    /// The entries that the run merges.
    pub numbers: Vec<u64>,
}

/// `GET /merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergesQuery {
    /// The version that the caller has seen: the daemon answers when it changes.
    pub seen: Option<String>,
    /// How long the daemon may wait, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// Answer to `GET /merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Merges {
    /// The queue, oldest entry first, with the entries that have lately left it.
    pub entries: Vec<Merge>,
    /// The version of the queue.
    pub version: String,
}
