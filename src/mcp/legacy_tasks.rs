//! Tasks in the form of revision 2025-11-25: the host asks for a task with each call, and fetches its result
//! by `tasks/result`. The content of the answers comes from the same functions as in the newer form.
//!
//! In that revision a tool that answers with an error counts as a task that has failed, and the answer of
//! `tasks/cancel` must be the task. There are no other differences.

use rmcp::ErrorData;
use rmcp::model::{CustomResult, ListToolsResult, TaskStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use super::handles;
use super::tools::{delegate, tasks};
use provost_api::wire;
use provost_base::limits::MCP_POLL_MS;
use provost_client::{Client, ClientError};

/// Returns the place in the answer to `initialize` where the server declares tasks.
pub(super) fn capability() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

/// Returns whether a tool can become a task.
pub(super) fn supports(tool: &str) -> bool {
    tool == "delegate"
}

/// Encodes a task.
pub(super) fn task(task: &wire::Task, asks_host: bool) -> Value {
    let status = match task.state.as_str() {
        "failed" => TaskStatus::Failed,
        _ => handles::status(task, asks_host),
    };
    json!({
        "taskId": task.id,
        "status": status,
        "statusMessage": tasks::in_words(task),
        "createdAt": task.created_at,
        "lastUpdatedAt": task.updated_at,
        // The configuration says how long the daemon keeps finished tasks.
        "ttl": null,
        "pollInterval": MCP_POLL_MS,
    })
}

/// Returns the answer to a call that has become a task. A task begins as working, even if it waits.
pub(super) fn begun(it: &wire::Task) -> CustomResult {
    let said = format!("{}. Its result will follow.", tasks::in_words(it).trim_end_matches('.'));
    let meta = json!({ "io.modelcontextprotocol/model-immediate-response": said });
    CustomResult(json!({ "task": task(it, false), "_meta": meta }))
}

/// Returns the answer to `tasks/result`.
pub(super) fn result(it: &wire::Task) -> CustomResult {
    let mut result = delegate::outcome(it);
    result.result_type = None;
    let mut result = serde_json::to_value(result).unwrap_or_default();
    result["_meta"] = related(&it.id);
    CustomResult(result)
}

/// Returns the member that every message about a task carries.
pub(super) fn related(task: &str) -> Value {
    json!({ "io.modelcontextprotocol/related-task": { "taskId": task } })
}

/// The parameters of `tasks/list`.
#[derive(Deserialize, Default)]
pub(super) struct Page {
    cursor: Option<String>,
}

/// Returns the list of tools, with a mark for those that can become a task.
pub(super) fn tools(tools: &ListToolsResult) -> CustomResult {
    let mut list = serde_json::to_value(tools).unwrap_or_default();
    if let Some(list) = list.as_object_mut() {
        list.remove("resultType");
    }
    for tool in list["tools"].as_array_mut().into_iter().flatten() {
        if tool["name"].as_str().is_some_and(supports) {
            tool["execution"] = json!({ "taskSupport": "optional" });
        }
    }
    CustomResult(list)
}

/// Answers `tasks/list`.
pub(super) async fn list(client: &Client, page: Page) -> Result<CustomResult, ErrorData> {
    let query = wire::MyTasksQuery { after: page.cursor, ..wire::MyTasksQuery::default() };
    let page = client.my_tasks(&query).await.map_err(|error| handles::lost(&error))?;
    let mut answer = json!({ "tasks": page.tasks.iter().map(|it| task(it, false)).collect::<Vec<_>>() });
    if let Some(next) = page.next {
        answer["nextCursor"] = json!(next);
    }
    Ok(CustomResult(answer))
}

/// Answers `tasks/cancel`, which refuses a task that is over.
pub(super) async fn cancel(client: &Client, id: &str) -> Result<CustomResult, ErrorData> {
    let over = |it: &wire::Task| {
        let why = format!("task {} is {} already, and stays so", it.id, it.state);
        Err(ErrorData::invalid_params(why, None))
    };
    let now = handles::find(client, id).await?;
    if handles::is_over(&now) {
        return over(&now);
    }
    let request = wire::Cancel { task: now.id, reason: Some("the host has cancelled it".into()) };
    match client.cancel(&request).await {
        Ok(_) => Ok(CustomResult(task(&handles::find(client, id).await?, false))),
        Err(ClientError::Refused { fault, .. }) if fault.error == "task_finished" => {
            over(&handles::find(client, id).await?)
        }
        Err(error) => Err(handles::lost(&error)),
    }
}
