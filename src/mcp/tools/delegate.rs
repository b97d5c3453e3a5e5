//! Delegates work to a worker. A host that follows tasks by itself gets a handle, any other host the task's id.

use rmcp::model::{CallToolResponse, CallToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tasks::{in_words, short};
use super::workers;
use crate::call::Call;
use crate::tool::{About, Entry, Kind, Said, ToolError, done};
use crate::{dialog, handles, task_revisions};
use provost_api::wire;
use provost_base::limits::MCP_WAIT_S_MAX;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "delegate",
            title: "Delegate work",
            description: "Hands work to a worker, which runs confined beside you, and returns at once with a task_id; follow it with task_wait. Use it for work that takes long or that another program does better; for what you can do yourself in one step, do that.",
            kind: Kind::Begins,
        }
        .answers::<Delegate, Delegated, _>(delegate),
    ]
}

/// The work, and the worker that will do it.
#[derive(Deserialize, JsonSchema)]
struct Delegate {
    /// The work to do; for the worker `shell`, a command.
    goal: String,
    /// A worker from workers_list; or give `pool`.
    #[serde(default)]
    worker: String,
    /// Its folder; else the root.
    working_dir: Option<String>,
    /// Seconds until it is stopped.
    timeout_s: Option<u64>,
    /// The model, if it can be chosen.
    model: Option<String>,
    /// Your id; repeated, the same task.
    task_id: Option<String>,
    /// Data for the worker.
    context: Option<Value>,
    /// Git branch of its work tree; empty: a new one.
    worktree: Option<String>,
    /// Your finished task whose session goes on.
    #[serde(rename = "continue")]
    continues: Option<String>,
    /// Tasks that must succeed first, by id.
    #[serde(default)]
    after: Vec<String>,
    /// `low`, `normal` or `high`.
    priority: Option<String>,
    /// A pool; one of its workers does it.
    pool: Option<String>,
    /// A label of the host, such as `gpu`.
    on: Option<String>,
    /// Wait for a host if none can do it now.
    #[serde(default)]
    wait_for_host: bool,
    /// One success of `after` is enough.
    #[serde(default)]
    after_any: bool,
    /// How often it begins again if it fails.
    retries: Option<u32>,
    /// Globs of files whose changes are told.
    #[serde(default)]
    watch_patterns: Vec<String>,
}

/// The outcome of a delegation.
#[derive(Serialize, JsonSchema)]
struct Delegated {
    /// The id of the task, which task_wait takes.
    task_id: String,
    /// `queued`, `waiting` for other tasks, `awaiting` an approval, or for a repeated call the state of its task.
    state: String,
    /// The approval that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<u64>,
    /// The page that shows the approval to a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    /// The last report about it, once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    /// Exit code of its worker's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    /// The next call, as text.
    next: String,
}

async fn delegate(call: Call, asked: Delegate) -> Result<CallToolResponse, ToolError> {
    if let Some(task) = dialog::answered(&call).await? {
        return Ok(stands(&call, &find(&call, task).await?).await.into());
    }
    if !asked.wait_for_host && (!asked.worker.is_empty() || asked.pool.is_none()) {
        workers::has(&call, &asked.worker).await?;
    }
    // The caller's inbox gets its progress and end, too.
    let me = call.client().who_am_i().await?.agent;
    let request = wire::Delegate {
        return_to: Some(me),
        task: asked.task_id,
        goal: asked.goal,
        worker: asked.worker,
        working_dir: asked.working_dir,
        timeout_s: asked.timeout_s,
        model: asked.model,
        context: asked.context,
        watch_patterns: asked.watch_patterns,
        worktree: asked.worktree,
        continues: asked.continues,
        after: asked.after,
        priority: asked.priority,
        pool: asked.pool,
        on: asked.on,
        wait_for_host: asked.wait_for_host,
        after_any: asked.after_any,
        retries: asked.retries,
        tool: Some("delegate".into()),
        traceparent: call.trace(),
        ..wire::Delegate::default()
    };
    let begun = call.client().delegate(&request).await?;
    if begun.state == "denied" {
        let (rule, reason) = (begun.rule.unwrap_or_default(), begun.reason.unwrap_or_default());
        return Err(ToolError::new(format!("denied by rule {rule}: {reason}")));
    }
    if call.becomes_task() {
        let task = find(&call, begun.task).await?;
        return Ok(match handles::is_over(&task) && !task_revisions::asks_for_task(call.context()) {
            true => outcome(&task).into(),
            false => handles::handle(&task).into(),
        });
    }
    if begun.approval.is_none() {
        return Ok(started(begun).into());
    }
    let task = find(&call, begun.task).await?;
    match dialog::about(call.client(), &task, call.context()).await {
        Some(question) => ask(&call, &task, &question).await,
        None => Ok(stands(&call, &task).await.into()),
    }
}

async fn find(call: &Call, id: String) -> Result<wire::Task, ToolError> {
    let query = wire::MyTaskQuery { id, ..wire::MyTaskQuery::default() };
    Ok(call.client().my_task(&query).await?)
}

/// Asks the person at the host, in the way that the host understands.
async fn ask(
    call: &Call,
    task: &wire::Task,
    question: &dialog::Question,
) -> Result<CallToolResponse, ToolError> {
    if dialog::may_ask_back(call.context()) {
        return Ok(dialog::ask_back(call, task, question).await?.into());
    }
    let patience = std::time::Duration::from_secs(MCP_WAIT_S_MAX);
    let waits = format!("Task {} waits for an answer.", task.id);
    let asked = dialog::ask_now(call.client(), task, question, patience, call.context());
    call.beat()
        .during(&waits, asked)
        .await
        .map_err(|fault| ToolError::new(format!("{fault}; task {} goes on waiting", task.id)))?;
    Ok(stands(call, &find(call, task.id.clone()).await?).await.into())
}

/// Returns the state of a task that needs or needed an approval, as the tool's answer.
async fn stands(call: &Call, task: &wire::Task) -> CallToolResult {
    if handles::is_over(task) {
        return outcome(task);
    }
    let page = match task.approval {
        Some(id) => dialog::page(call.client(), id).await,
        None => None,
    };
    let text = match task.approval {
        Some(id) => pending(task, id, page.as_deref()),
        None => in_words(task),
    };
    let next = format!("task_wait with task_id {}", task.id);
    let (task_id, state, approval_id) = (task.id.clone(), task.state.clone(), task.approval);
    let text = format!("{text}\nNext: {next}");
    let answer = Delegated { task_id, state, approval_id, page, summary: None, exit_code: None, next };
    done(&Said { text, answer })
}

/// Returns the text that a model can pass on to its person.
fn pending(task: &wire::Task, approval: u64, page: Option<&str>) -> String {
    let shows = page.map(|page| format!(", {page} shows it")).unwrap_or_default();
    format!(
        "approval_pending: task {} waits for approval {approval}{shows}. \
         A person answers: provost approve {approval}, or provost deny {approval} --reason WHY.",
        task.id
    )
}

/// Returns the text for a host that must follow the task by calling tools.
fn started(begun: wire::Delegated) -> CallToolResult {
    let (id, now) = (&begun.task, &begun.state);
    let text = format!("Task {id} is {now}.\nNext: task_wait with task_id {id}");
    let next = format!("task_wait with task_id {}", begun.task);
    let (task_id, state) = (begun.task, begun.state);
    let answer =
        Delegated { task_id, state, approval_id: None, page: None, summary: None, exit_code: None, next };
    done(&Said { text, answer })
}

/// Returns the result of a task that is over, for a host that has followed it by itself.
pub(crate) fn outcome(task: &wire::Task) -> CallToolResult {
    let answer = Delegated {
        task_id: task.id.clone(),
        state: task.state.clone(),
        approval_id: None,
        page: None,
        summary: task.notes.last().map(|note| short(&note.summary)),
        exit_code: task.exit_code,
        next: format!("task_output with task_id {}, for what the worker has said", task.id),
    };
    let mut result = done(&Said { text: in_words(task), answer });
    result.is_error = Some(task.state != "completed");
    result
}
