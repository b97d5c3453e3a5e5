//! Reports of workers on their tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::Call;
use crate::tool::{About, Entry, Kind, Said, ToolError};
use provost_api::wire;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "notify",
            title: "Report on a task",
            description: "Says how a task of yours is going, or that you have seen what became of one: status progress or blocked while it goes on; completed, failed or cancelled when it is over; ack to acknowledge.",
            kind: Kind::Begins,
        }
        .does(notify),
    ]
}

/// The status in a report; DevIt's tools use it, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Nothing was done yet.
    Pending,
    /// The work goes on.
    #[serde(alias = "progress")]
    InProgress,
    /// The work cannot go on now.
    Blocked,
    /// The work is done.
    Completed,
    /// The work has ended without success.
    Failed,
    /// The work was given up.
    Cancelled,
    /// The asker has seen the result.
    Ack,
}

impl Status {
    /// Returns the word for it on the own API.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Blocked => "blocked",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Ack => "ack",
        }
    }
}

/// The report on a task.
#[derive(Deserialize, JsonSchema)]
struct Notify {
    /// Which task.
    task_id: String,
    /// How it is going.
    status: Status,
    /// A sentence or two.
    #[serde(default)]
    summary: String,
    /// Structured results.
    details: Option<Value>,
    /// Logs, test output and the like.
    evidence: Option<Value>,
}

/// The task's state after the report.
#[derive(Serialize, JsonSchema)]
struct Noted {
    /// The id of the task that was reported on.
    task_id: String,
    /// Its state; `acknowledged` after an ack.
    state: String,
}

async fn notify(call: Call, asked: Notify) -> Result<Said<Noted>, ToolError> {
    let request = wire::Report {
        task: asked.task_id,
        status: asked.status.as_str().into(),
        summary: Some(asked.summary),
        details: asked.details,
        evidence: asked.evidence,
    };
    let now = call.client().report(&request).await?;
    let text = format!("Task {} is {}.", now.task, now.state);
    Ok(Said { text, answer: Noted { task_id: now.task, state: now.state } })
}
