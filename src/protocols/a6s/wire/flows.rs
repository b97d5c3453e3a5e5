//! The types for workflows and scans. A6s 3.0 and 6.9.

use serde::Serialize;
use serde_json::Value;

/// A row of `workflows.list`.
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
    /// The number of its steps.
    pub step_count: usize,
    /// The agents of its steps, each once.
    pub agents: Vec<String>,
}

/// The answer of `scan.techDebt`, `scan.modernize` and `scan.status`; its members are named in another style than all others.
#[derive(Clone, Debug, Serialize)]
pub struct ScanJob {
    /// The id of the scan's job.
    pub job_id: String,
    /// `queued`, `running`, `completed`, `failed`.
    pub status: &'static str,
    /// The findings; Emacs opens a window if the member is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
    /// The reason of its failure or of its cancellation; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
