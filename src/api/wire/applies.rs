//! The types for artifacts and applies.

use serde::{Deserialize, Serialize};

/// A file with the content that a worker gives it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Artifact {
    /// The id under which the daemon has kept the content that the file had when the artifact was made.
    pub id: String,
    /// `file`, `delete`, or anything that is written like a file.
    #[serde(rename = "type")]
    pub kind: String,
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// The whole new text of the file; empty for a file that is to be deleted.
    pub content: String,
    /// Digest of the file's content when the artifact was made.
    pub base_hash: Option<String>,
    /// Mode of a new file; only the owner's right to execute it counts.
    pub mode: Option<u32>,
}

/// `POST /preview-artifacts` and `POST /apply-artifacts`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Artifacts {
    /// The artifacts, each for another file.
    pub artifacts: Vec<Artifact>,
}

/// An element of the answer to `POST /preview-artifacts` and `POST /preview-task`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Previewed {
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// `create`, `modify` or `skip`.
    pub action: String,
    /// The difference, in git's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The reason why it would not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the file, in its place, would be run later or instruct agents.
    #[serde(default)]
    pub runs_later: bool,
    /// The number of added lines.
    #[serde(default)]
    pub added: u64,
    /// The number of removed lines.
    #[serde(default)]
    pub removed: u64,
    /// The kind of the difference: `whole`, which `git apply` accepts; `binary`: the bytes differ; `counted`: only the number of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent: Option<String>,
}

/// Answer to `POST /apply-artifacts`, `POST /apply-task` and `POST /undo`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Applied {
    /// `applied`; `awaiting` an approval, after which the same request, made again, is carried out; or `denied`.
    pub state: String,
    /// The number of files that were written.
    pub applied: u32,
    /// The number of files that needed no change.
    pub skipped: u32,
    /// The errors of the other files, each with the reason.
    pub errors: Vec<String>,
    /// The number by which the apply can be undone; absent if there was nothing to write.
    pub apply: Option<u64>,
    /// The approval that it waits for.
    pub approval: Option<u64>,
    /// The rule that denied it.
    pub rule: Option<String>,
    /// The reason that the denying rule gives; absent unless the state is `denied`.
    pub reason: Option<String>,
}

/// `POST /preview-task` and `POST /apply-task`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfTask {
    /// The id of the task, in full; for a job its first task, which has the job's id.
    pub task: String,
    /// Files and folders from the repository's root; without any, all changes.
    pub paths: Vec<String>,
    /// The `view_digest` of the shown preview: nothing is written if the content to write differs from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// `POST /discard-task`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Discard {
    /// The task whose changes the daemon forgets for good.
    pub task: String,
}

/// Answer to `POST /discard-task`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Discarded {
    /// The task whose changes were discarded.
    pub task: String,
    /// The number of changed files that were kept.
    pub files: u32,
    /// Whether they had been discarded before.
    pub already: bool,
}

/// `POST /undo`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Undo {
    /// The number of the apply to undo.
    pub apply: u64,
    /// Whether to bring back files that have changed since that apply, too.
    pub force: bool,
    /// The `view_digest` of the shown preview: nothing is written if the content to write differs from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// `POST /view-apply`: the writes that taking in a task's changes, or an undo, would make, as a person sees them.
/// They are those that the daemon's user would make, and the same for each asker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewApply {
    /// The task whose changes are meant.
    pub task: Option<String>,
    /// The files and folders among the task's changes; without any, all.
    pub paths: Vec<String>,
    /// Instead of a task: the apply to undo.
    pub apply: Option<u64>,
    /// For an undo: whether to restore files that have changed since that apply, too.
    pub force: bool,
}

/// Answer to [`ViewApply`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplyView {
    /// The whole content that a page shows for it, as one canonical JSON text: its title, and the blocks to draw.
    pub view: String,
    /// SHA-256 of that text, hexadecimal: `seen` of the apply or undo. A page computes it itself.
    pub view_digest: String,
    /// The difference, in git's form.
    pub diff: String,
    /// Files that would be written.
    pub files: usize,
    /// Files that need nothing.
    pub skipped: u32,
    /// Files that would not be written, each with the reason.
    pub errors: Vec<String>,
}

/// A file of an apply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppliedFile {
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// The change: `created`, `changed` or `deleted`.
    pub how: String,
}

/// An element of the answer to `GET /applies`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Apply {
    /// The number that `POST /undo` takes; it rises with every apply.
    pub apply: u64,
    /// The agent that asked for it.
    pub by: String,
    /// When the daemon wrote the files.
    pub at: String,
    /// The earlier apply that this one has undone; absent for an apply that is no undo.
    pub undoes: Option<u64>,
    /// The last apply that has undone this one, if any.
    pub undone_by: Option<u64>,
    /// The task whose changes it has written, or taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Files that it has written.
    pub files: Vec<AppliedFile>,
    /// The number of files that it could not write.
    pub errors: u32,
    /// `under way`, `done`, or `broken off` if the daemon ended meanwhile.
    pub state: String,
}
