//! Workflows and scans as they travel. A6s 3.0 and 6.9.

use serde::Serialize;
use serde_json::Value;

/// One of `workflows.list`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRow {
    /// `domain:name`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The part of the id before the colon.
    pub domain: String,
    /// A text for people about its purpose.
    pub description: String,
    /// `sequential`, `parallel`, `supervisor`, `maker_checker`.
    pub pattern: &'static str,
    /// How many steps it has.
    pub step_count: usize,
    /// The agents that take its steps, each once.
    pub agents: Vec<String>,
}

/// `scan.techDebt`, `scan.modernize`, `scan.status`, whose members have names of another kind than all others.
#[derive(Clone, Debug, Serialize)]
pub struct ScanJob {
    /// The id of the scan's job.
    pub job_id: String,
    /// `queued`, `running`, `completed`, `failed`.
    pub status: &'static str,
    /// What was found; Emacs opens a window for anything that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
    /// Why it failed, or that it was taken back; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
