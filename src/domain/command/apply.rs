//! Verbs about files that the daemon writes for an agent.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::{AgentId, ApplyId, Digest, Json, RepoPath};
use crate::domain::{AppliedFile, ApplyFile};

/// Write files in the workspace: what a worker has made, or what was there before an apply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApplyFiles {
    /// Of everything that is to be written: what an approver approves, and how the same call is recognised.
    pub digest: Digest,
    /// Which files, for people.
    pub files: Vec<ApplyFile>,
    /// Those of them that run later, or are instructions for agents.
    #[serde(default)]
    pub later: Vec<RepoPath>,
    /// As much of the difference as is shown.
    #[serde(default)]
    pub diff: Box<str>,
    /// The apply that is to be undone.
    pub undoes: Option<ApplyId>,
}

impl ApplyFiles {
    /// What an approver is shown.
    pub fn shown(&self) -> Json {
        let one = |it: &ApplyFile| format!("{} {}", if it.gone { "delete" } else { "write" }, it.path);
        let files: Vec<String> = self.files.iter().map(one).collect();
        let mut shown = json!({ "files": files, "settings": self.later, "diff": self.diff });
        if let (Some(shown), Some(apply)) = (shown.as_object_mut(), self.undoes) {
            shown.insert("undo".into(), json!(apply));
        }
        Json::from_value(&shown)
    }
}

/// It may begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplyBegun {
    /// Its number.
    pub apply: ApplyId,
    /// Whether an approval exists for exactly this.
    pub granted: bool,
}

/// Files were written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TellApplied {
    /// By which apply.
    pub apply: ApplyId,
    /// For whom.
    pub by: AgentId,
    /// Which.
    pub files: Vec<AppliedFile>,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppliedTold;

/// An apply is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndApply {
    /// Which.
    pub apply: ApplyId,
    /// For whom it was.
    pub by: AgentId,
    /// Files that it has written.
    pub applied: u32,
    /// Files that needed nothing.
    pub skipped: u32,
    /// Files that it could not write.
    pub errors: u32,
    /// Whether the daemon ended in the middle of it, and it was settled at the next start.
    pub broken_off: bool,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplyEnded;
