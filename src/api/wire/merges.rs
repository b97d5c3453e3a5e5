//! Merges of branches as they travel.

use serde::{Deserialize, Serialize};

/// `POST /preview-merge`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergeBranches {
    /// The branches, by their names.
    pub branches: Vec<String>,
    /// The branch into which they are merged; without it, the one that is checked out in the workspace.
    pub into: Option<String>,
}

/// `POST /queue-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueMerges {
    /// The branches, by their names, in the order in which they are merged.
    pub branches: Vec<String>,
    /// The branch into which they are merged; without it, the one that is checked out in the workspace.
    pub into: Option<String>,
    /// The commits that the caller has seen, in the order of the branches; without them, what the branches
    /// name now.
    pub commits: Vec<String>,
    /// What passes: `settings` that run later, `held` places, `symbols` in conflict, `unchecked`. Only a
    /// person says so.
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
    /// What it is, as a sentence.
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
    /// How that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_by: Option<String>,
    /// Whether the daemon's own record says so, too.
    pub owner_proven: bool,
    /// How many files it changes.
    pub files: usize,
    /// `merged` already, `ahead` of the trunk, or to be `merged_in`.
    pub way: String,
    /// Its conflicts with the trunk.
    pub conflicts: Vec<MergeConflict>,
    /// What agents hold of what it touches.
    pub held: Vec<String>,
    /// What agents have announced about what it touches.
    pub announced: Vec<String>,
    /// Files that run later, or tell agents what to do.
    pub settings: Vec<String>,
    /// Why it has this place in the order.
    pub reason: String,
}

/// Two branches that collide.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MergePair {
    /// The branch that is merged first.
    pub one: String,
    /// The other one.
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
    /// What is run on the merged tree.
    pub checks: Vec<String>,
    /// Whether calls were looked for in the whole tree, and not in changed files alone.
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
    /// The agent or person that has put it there.
    pub by: String,
    /// When that was.
    pub at: String,
    /// What passes.
    pub passes: Vec<String>,
    /// `waiting`, `working`, `moving`, `merged` or `set_aside`.
    pub state: String,
    /// Of one that is worked on the step; of one that is set aside the cause in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Of one that is set aside the reason; of one that is merged what is to be known besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The agent that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// The commit at which the trunk was afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk: Option<String>,
}

impl Merge {
    /// Whether nothing more is done with it.
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
    /// Why a rule has denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /remove-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoveMerges {
    /// The branches, by their names.
    pub branches: Vec<String>,
    /// The branch into which they were to be merged; without it, each has to wait for one alone.
    pub into: Option<String>,
}

/// Answer to `POST /remove-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MergesRemoved {
    /// How many entries there were.
    pub count: u32,
}

/// `POST /run-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunMerges {
    /// Only these entries, in this order; all that wait where there is none.
    pub only: Vec<u64>,
}

/// Answer to `POST /run-merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MergesBegun {
    /// The entries that are taken up.
    pub numbers: Vec<u64>,
}

/// `GET /merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergesQuery {
    /// The version that the caller has seen: the answer waits for another one.
    pub seen: Option<String>,
    /// How long it may wait, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// Answer to `GET /merges`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Merges {
    /// The queue, oldest entry first, with what has lately left it.
    pub entries: Vec<Merge>,
    /// The version of it.
    pub version: String,
}
