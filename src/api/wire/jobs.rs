//! Jobs as they travel.

use serde::{Deserialize, Serialize};

/// Query of `GET /job-log`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobLogQuery {
    /// Which job: `job_`, `exec_` or `task_` and sixteen characters, or these alone.
    pub id: String,
    /// The position from which to read, in bytes: 0 at first, then `next` of the answer before.
    pub from: u64,
    /// How long to wait for more, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// `GET /job-log`: what a job's workers have said since a position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobLog {
    /// For people, without escape sequences.
    pub text: String,
    /// The position at which the next request continues, in bytes.
    pub next: u64,
    /// Whether nothing more will come.
    pub done: bool,
}
