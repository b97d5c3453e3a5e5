//! Verbs about the queue of branches that are to be merged.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{MergeEntry, MergePasses, MergeState};
use provost_base::{Digest, Fence, Json};

/// A branch that is to be merged, at the commit that its asker has seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MergeAsked {
    /// The name of the branch, without `refs/heads/`.
    pub branch: Box<str>,
    /// The commit that it names, in hexadecimal digits.
    pub commit: Box<str>,
    /// What it changes, in a line for approvers.
    pub summary: Box<str>,
}

/// Put branches into the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueMerges {
    /// The branches, in the order in which they are to be merged.
    pub branches: Vec<MergeAsked>,
    /// The branch into which they are to be merged.
    pub into: Box<str>,
    /// What the asker lets pass.
    pub passes: MergePasses,
}

impl QueueMerges {
    /// Digest of the request, by which a repeat is recognised.
    pub fn digest(&self) -> Digest {
        // Our own types always encode; an empty text could only make two requests look different.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// The details that an approver is shown.
    pub fn shown(&self) -> Json {
        let one =
            |it: &MergeAsked| json!({ "branch": it.branch, "commit": it.commit, "changes": it.summary });
        let branches: Vec<_> = self.branches.iter().map(one).collect();
        let mut shown = json!({ "merge": branches, "into": self.into });
        if self.passes != MergePasses::default() {
            shown["lets_pass"] = json!(self.passes);
        }
        Json::from_value(&shown)
    }
}

/// The branches are in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergesQueued {
    /// Their entries, in order.
    pub entries: Vec<Arc<MergeEntry>>,
}

/// Take entries out of the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemoveMerges {
    /// The numbers of the entries.
    pub numbers: Vec<Fence>,
}

/// The entries are gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergesRemoved {
    /// How many there were.
    pub count: u32,
}

/// Merge what waits in the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunMerges {
    /// Only these entries, in this order; all that wait where there is none.
    pub only: Vec<Fence>,
}

/// The run is owed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergesBegun {
    /// The entries that it takes up, in order.
    pub numbers: Vec<Fence>,
}

/// Say how far a merge is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveMerge {
    /// The number of the entry.
    pub number: Fence,
    /// Where it stands from now on.
    pub to: MergeState,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeMoved {
    /// The entry as it is now; `None` where it was removed meanwhile.
    pub entry: Option<Arc<MergeEntry>>,
}
