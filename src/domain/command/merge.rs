//! Verbs about the queue of branches that wait to be merged.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{MergeEntry, MergePasses, MergeState};
use provost_base::{Digest, Fence, Json};

/// A branch to merge, at the commit that its asker has seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MergeAsked {
    /// The name of the branch, without `refs/heads/`.
    pub branch: Box<str>,
    /// The commit that it names, in hexadecimal digits.
    pub commit: Box<str>,
    /// The changes on the branch, in a line for approvers.
    pub summary: Box<str>,
}

/// Put branches into the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueMerges {
    /// The branches, in the order in which they will be merged.
    pub branches: Vec<MergeAsked>,
    /// The branch into which they will be merged.
    pub into: Box<str>,
    /// The checks that the asker waives.
    pub passes: MergePasses,
}

impl QueueMerges {
    /// Returns the digest of the request, by which a repeat is recognised.
    pub fn digest(&self) -> Digest {
        // Provost's own types always encode; an empty text could only make two requests look different.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// Returns the details that an approver is shown.
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
    /// The entries of the branches, in order.
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
    /// The number of entries that were removed.
    pub count: u32,
}

/// Merge the entries that wait in the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunMerges {
    /// The only entries to merge, in this order; empty for all that wait.
    pub only: Vec<Fence>,
}

/// The run is owed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergesBegun {
    /// The entries that the run takes up, in order.
    pub numbers: Vec<Fence>,
}

/// Report the progress of a merge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveMerge {
    /// The number of the entry.
    pub number: Fence,
    /// The state of the entry from now on.
    pub to: MergeState,
}

/// The new state is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeMoved {
    /// The entry as it is now; `None` if it was removed meanwhile.
    pub entry: Option<Arc<MergeEntry>>,
}
