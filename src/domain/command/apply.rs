//! Verbs about files that the daemon writes for an agent.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{AppliedFile, ApplyFile, Taking};
use provost_base::{AgentId, ApplyId, Digest, Json, RepoPath, TaskId};

/// Write files in the workspace: what a worker has made, or what was there before an apply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApplyFiles {
    /// Of everything that is to be written: what an approver approves, and how the same call is recognised.
    pub digest: Digest,
    /// The files that are to be written or removed, as an approver sees them.
    pub files: Vec<ApplyFile>,
    /// Those of them that run later, or are instructions for agents.
    #[serde(default)]
    pub later: Vec<RepoPath>,
    /// As much of the difference as is shown.
    #[serde(default)]
    pub diff: Box<str>,
    /// The apply that is to be undone.
    pub undoes: Option<ApplyId>,
    /// The task whose changes they are; `None` where they are no task's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<TaskId>,
    /// The worker of that task, for an approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<AgentId>,
}

impl ApplyFiles {
    /// The details that an approver is shown.
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

/// The apply may begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplyBegun {
    /// The number of the apply, which its reports name.
    pub apply: ApplyId,
    /// Whether an approval exists for exactly this.
    pub granted: bool,
}

/// Report that files were written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TellApplied {
    /// The apply that wrote them.
    pub apply: ApplyId,
    /// The agent for which they were written.
    pub by: AgentId,
    /// The files, each with its digests before and after.
    pub files: Vec<AppliedFile>,
    /// What it does with the changes of a task; `None` where they are no task's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Taking>,
}

/// The files are on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppliedTold;

/// Report that an apply is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndApply {
    /// The apply that has ended.
    pub apply: ApplyId,
    /// The agent for which it wrote.
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

/// The end of the apply is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplyEnded;

/// Say that the commit which holds what a task's run has changed is in a branch of the user's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteMerged {
    /// The task of that run.
    pub task: TaskId,
    /// The branch into which it was merged.
    pub into: Box<str>,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergedNoted;

/// Forget for good what a task's run has changed in its private copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiscardChanges {
    /// The task of that run.
    pub task: TaskId,
    /// Files that are kept of it on the disk.
    pub files: u32,
}

/// The changes are forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangesDiscarded {
    /// Files that were kept.
    pub files: u32,
    /// Whether they had been discarded before.
    pub already: bool,
}
