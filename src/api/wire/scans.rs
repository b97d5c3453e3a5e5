//! The files that a run has left in the workspace and that run later, and the changes of watched files.

use serde::{Deserialize, Serialize};

/// The files that a run has left and that run later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScanReport {
    /// The findings, the gravest first; bounded.
    pub findings: Vec<Finding>,
    /// The number of findings that are not listed.
    pub more: u32,
    /// The reason why the comparison is incomplete.
    pub unknown: Option<String>,
}

/// A file that a run has left and that runs later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The path, relative to the workspace.
    pub path: String,
    /// `git`, `setting`, `protected`, `setuid`, `socket`, `link`, `instructions`, `ci`, `build`, `lock`, `executable`.
    pub kind: String,
    /// `new`, `changed`, `removed`.
    pub change: String,
}

/// The changes of the files that the asker wanted watched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FilesChanged {
    /// The changed files, up to a bound.
    pub files: Vec<ChangedFile>,
    /// The number of changed files that are not listed.
    pub more: u32,
    /// The reason why some changes may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// A watched file that changed while the task ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The path, relative to the task's working directory.
    pub path: String,
    /// `new`, `changed`, `renamed`, `removed`.
    pub change: String,
    /// The earlier path of a renamed file; absent for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}
