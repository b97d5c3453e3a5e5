//! Verbs about files that the daemon writes for an agent.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{AppliedFile, ApplyFile, Taking};
use provost_base::{AgentId, ApplyId, Digest, Json, RepoPath, TaskId};

/// Write files in the workspace: a worker's changes, or the contents from before an apply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApplyFiles {
    /// The digest of all contents to write: an approver approves it, and a repeated call is recognised by it.
    pub digest: Digest,
    /// The files to write or remove, as an approver sees them.
    pub files: Vec<ApplyFile>,
    /// Those of the files that run later, or are instructions for agents.
    #[serde(default)]
    pub later: Vec<RepoPath>,
    /// The difference, as much of it as is shown.
    #[serde(default)]
    pub diff: Box<str>,
    /// The apply that this one undoes.
    pub undoes: Option<ApplyId>,
    /// The task that made the changes; `None` if they are no task's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<TaskId>,
    /// The worker of that task, for an approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<AgentId>,
}

impl ApplyFiles {
    /// Returns the details that an approver is shown.
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

/// The answer: the apply may begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplyBegun {
    /// The number of the apply, which its reports name.
    pub apply: ApplyId,
    /// Whether an approval exists for exactly these contents.
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
    /// The effect on the changes of a task; `None` if the files are no task's.
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
    /// Files that already had the right content.
    pub skipped: u32,
    /// Files that it could not write.
    pub errors: u32,
    /// Whether the daemon ended in the middle of the apply, which was then settled at the next start.
    pub broken_off: bool,
}

/// The end of the apply is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplyEnded;

/// Report that the commit with the changes of a task's run is in a branch of the user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteMerged {
    /// The task of that run.
    pub task: TaskId,
    /// The branch into which the commit was merged.
    pub into: Box<str>,
}

/// The answer: the merge is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergedNoted;

/// Forget for good the changes that a task's run made in its private copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiscardChanges {
    /// The task of that run.
    pub task: TaskId,
    /// The number of files on the disk that are kept of the run.
    pub files: u32,
}

/// The changes are forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangesDiscarded {
    /// The number of files that were kept.
    pub files: u32,
    /// Whether the changes had been discarded before.
    pub already: bool,
}
