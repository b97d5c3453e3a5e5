//! Artifacts and applies as they travel.

use serde::{Deserialize, Serialize};

/// A file as a worker would have it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Artifact {
    /// By which the daemon finds what the file was when it was made.
    pub id: String,
    /// `file`, `delete`, or anything that is written like a file.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it belongs.
    pub path: String,
    /// All of it.
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
    /// Which file.
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
}

/// Answer to `POST /apply-artifacts`, `POST /apply-task` and `POST /undo`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Applied {
    /// `applied`; `awaiting` an approval, after which the daemon carries the same request out; or `denied`.
    pub state: String,
    /// Files that were written.
    pub applied: u32,
    /// Files that needed nothing.
    pub skipped: u32,
    /// The others, each with a reason.
    pub errors: Vec<String>,
    /// By which it can be undone.
    pub apply: Option<u64>,
    /// The approval that it waits for.
    pub approval: Option<u64>,
    /// The rule that denied it.
    pub rule: Option<String>,
    /// Its reason.
    pub reason: Option<String>,
}

/// `POST /preview-task` and `POST /apply-task`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfTask {
    /// The task whose changes are meant, in full.
    pub task: String,
}

/// `POST /undo`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Undo {
    /// Which apply.
    pub apply: u64,
    /// Also where a file has changed since.
    pub force: bool,
}

/// A file of an apply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppliedFile {
    /// Which.
    pub path: String,
    /// What became of it: `created`, `changed` or `deleted`.
    pub how: String,
}

/// An element of the answer to `GET /applies`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Apply {
    /// Its number.
    pub apply: u64,
    /// For whom.
    pub by: String,
    /// When.
    pub at: String,
    /// What it has undone.
    pub undoes: Option<u64>,
    /// By what it was undone last.
    pub undone_by: Option<u64>,
    /// Files that it has written.
    pub files: Vec<AppliedFile>,
    /// How many it could not write.
    pub errors: u32,
    /// `under way`, `done`, or `broken off` by the end of the daemon.
    pub state: String,
}
