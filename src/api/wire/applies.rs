//! Artifacts and applies as they travel.

use serde::{Deserialize, Serialize};

/// A file as a worker would have it.
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
    /// Digest of what was there when it was made.
    pub base_hash: Option<String>,
    /// Rights of a new file, of which only the owner's to run it counts.
    pub mode: Option<u32>,
}

/// `POST /preview-artifacts` and `POST /apply-artifacts`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Artifacts {
    /// Each a file of its own.
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
    /// Why it would not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it runs later, or tells agents what to do, where it would be written.
    #[serde(default)]
    pub runs_later: bool,
    /// Lines that come.
    #[serde(default)]
    pub added: u64,
    /// Lines that go.
    #[serde(default)]
    pub removed: u64,
    /// How much the difference shows: `whole`, which `git apply` accepts; `binary`, that bytes differ; `counted`, how many lines do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent: Option<String>,
}

/// Answer to `POST /apply-artifacts`, `POST /apply-task` and `POST /undo`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Applied {
    /// `applied`; `awaiting` an approval, after which the same request, made again, is carried out; or `denied`.
    pub state: String,
    /// Files that were written.
    pub applied: u32,
    /// Files that needed nothing.
    pub skipped: u32,
    /// The others, each with a reason.
    pub errors: Vec<String>,
    /// The number by which it can be undone; absent where nothing was to be written.
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
    /// The task whose changes are meant, in full; for a job its first task, which has the job's id.
    pub task: String,
    /// Files and folders from the repository's root; without any, all changes are meant.
    pub paths: Vec<String>,
    /// Only if what would be written is still what was shown: its `view_digest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// `POST /discard-task`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Discard {
    /// The task whose changes are to be forgotten for good.
    pub task: String,
}

/// Answer to `POST /discard-task`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Discarded {
    /// The task whose changes were discarded.
    pub task: String,
    /// How many changed files were kept.
    pub files: u32,
    /// Whether they had been discarded before.
    pub already: bool,
}

/// `POST /undo`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Undo {
    /// The number of the apply whose files are to be brought back.
    pub apply: u64,
    /// Whether to bring back files that have changed since that apply, too.
    pub force: bool,
    /// Only if what would be written is still what was shown: its `view_digest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// `POST /view-apply`: what taking in a task's changes would write, or what an undo would bring back, as a person is shown it. It is
/// what the user of the daemon would write; it is the same for each asker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewApply {
    /// The task whose changes are meant.
    pub task: Option<String>,
    /// Of a task's changes, those files and folders; without any, all.
    pub paths: Vec<String>,
    /// Instead of a task: the apply that would be undone.
    pub apply: Option<u64>,
    /// Of an undo: whether to bring back files that have changed since that apply, too.
    pub force: bool,
}

/// Answer to [`ViewApply`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplyView {
    /// Everything that a page shows of it, as one canonical JSON text: its title, and the blocks to draw.
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
    /// What became of it: `created`, `changed` or `deleted`.
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
    /// How many it could not write.
    pub errors: u32,
    /// `under way`, `done`, or `broken off` by the end of the daemon.
    pub state: String,
}
