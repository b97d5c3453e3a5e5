//! The types for the log of a job.

use serde::{Deserialize, Serialize};

/// Query of `GET /job-log`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobLogQuery {
    /// The id of the job: `job_`, `exec_` or `task_` and sixteen characters, or these characters alone.
    pub id: String,
    /// The position from which to read, in bytes: 0 at first, then `next` of the previous answer.
    pub from: u64,
    /// How long to wait for more, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// `GET /job-log`: the output of a job's workers since a position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobLog {
    /// The text for people, without escape sequences.
    pub text: String,
    /// The position at which the next request continues, in bytes.
    pub next: u64,
    /// Whether the output is complete.
    pub done: bool,
}
