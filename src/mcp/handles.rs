//! Tasks as handles that hosts follow by themselves: the extension `io.modelcontextprotocol/tasks`.
//!
//! A task here is the daemon's task, for each process of the agent, and survives restarts of the daemon. The
//! result of a finished task is what the tool would have answered. So a call whose worker failed is `completed`
//! with an error as its result; `failed` is for calls that could not be made.

use rmcp::ErrorData;
use rmcp::model::{CreateTaskResult, DetailedTask, InputRequests, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::Value;

use super::tools::{delegate, tasks};
use provost_api::wire;
use provost_base::limits::{MCP_BEAT_MS, MCP_POLL_MS};
use provost_client::{Client, ClientError};

/// Returns one of the caller's tasks, in its present state.
pub(super) async fn find(client: &Client, id: &str) -> Result<wire::Task, ErrorData> {
    let query = wire::MyTaskQuery { id: id.to_owned(), ..wire::MyTaskQuery::default() };
    client.my_task(&query).await.map_err(|error| lost(&error))
}

/// Returns the task as soon as it differs from the known state, or after a while.
pub(super) async fn changed(client: &Client, known: &wire::Task) -> Result<wire::Task, ClientError> {
    let seen = Some(known.updated_at.clone());
    client.my_task(&wire::MyTaskQuery { id: known.id.clone(), seen, wait_ms: Some(MCP_BEAT_MS) }).await
}

/// Cancels one of the caller's tasks. A task that is over already stays as it is.
pub(super) async fn cancel(client: &Client, id: &str) -> Result<(), ErrorData> {
    let task = find(client, id).await?;
    if is_over(&task) {
        return Ok(());
    }
    let request = wire::Cancel { task: task.id, reason: Some("the host has cancelled it".into()) };
    match client.cancel(&request).await {
        Ok(_) => Ok(()),
        // The task has ended in between.
        Err(ClientError::Refused { fault, .. }) if fault.error == "task_finished" => Ok(()),
        Err(error) => Err(lost(&error)),
    }
}

/// Returns the answer that the host gets at once, in place of a result.
pub(super) fn handle(task: &wire::Task) -> CreateTaskResult {
    CreateTaskResult::new(bare(task, status(task, false)))
}

/// Returns the state of a task, with its result or with the question for the host.
pub(super) fn detailed(task: &wire::Task, asks: Option<InputRequests>) -> DetailedTask {
    let payload = match (status(task, asks.is_some()), asks) {
        (TaskStatus::Completed, _) => TaskPayload::Completed { result: result(task) },
        (TaskStatus::Cancelled, _) => TaskPayload::Cancelled,
        (_, Some(input_requests)) => TaskPayload::InputRequired { input_requests },
        (_, None) => TaskPayload::Working,
    };
    DetailedTask::new(bare(task, payload.status()), payload)
}

/// Returns the status of a task. If it waits for a person whom the host cannot ask, it needs no input from the host.
pub(super) fn status(task: &wire::Task, asks_host: bool) -> TaskStatus {
    match task.state.as_str() {
        "completed" | "failed" => TaskStatus::Completed,
        "cancelled" => TaskStatus::Cancelled,
        "awaiting" if asks_host => TaskStatus::InputRequired,
        _ => TaskStatus::Working,
    }
}

fn bare(task: &wire::Task, status: TaskStatus) -> Task {
    let (id, said) = (task.id.clone(), tasks::in_words(task));
    Task::new(id, status, task.created_at.clone(), task.updated_at.clone())
        .with_status_message(said)
        .with_poll_interval_ms(MCP_POLL_MS)
}

fn result(task: &wire::Task) -> JsonObject {
    match serde_json::to_value(delegate::outcome(task)) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::default(),
    }
}

pub(super) fn is_over(task: &wire::Task) -> bool {
    matches!(task.state.as_str(), "completed" | "failed" | "cancelled")
}

/// Returns the error for a task that was not found. The task of another agent gives the same error as a missing one.
pub(super) fn lost(error: &ClientError) -> ErrorData {
    match error {
        ClientError::Refused { status: 400..=499, fault } => {
            ErrorData::invalid_params(fault.message.clone(), None)
        }
        other => ErrorData::internal_error(other.to_string(), None),
    }
}
