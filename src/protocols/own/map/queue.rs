//! The turn of tasks: its encoding, and the words for their states.

use super::{OwnError, task_id, text};
use provost_api::wire;
use provost_base::limits::RETRIES_MAX;
use provost_base::{ApprovalId, TaskId};
use provost_domain::command::Status;
use provost_domain::{Delegate, Denial, Placement, Priority, Task, TaskState};

/// Reads the id that the asker of a new task chooses.
pub(super) fn new_task(id: &str) -> Result<TaskId, OwnError> {
    TaskId::chosen(id).map_err(|err| OwnError::invalid(format!("task {err}")))
}

/// Reads the priority, pool and host of a delegation; `None` if it names none.
pub(super) fn placement(asked: &wire::Delegate) -> Result<Option<Box<Placement>>, OwnError> {
    let priority = match asked.priority.as_deref().map(str::trim).filter(|it| !it.is_empty()) {
        None => Priority::Normal,
        Some(word) => Priority::parse(word).ok_or_else(|| {
            let word: String = word.chars().take(40).collect();
            OwnError::invalid(format!("priority '{word}' is not one of low, normal, high"))
        })?,
    };
    let (pool, on) = (text(asked.pool.clone()), text(asked.on.clone()));
    let (wait_for_host, after_any) = (asked.wait_for_host, asked.after_any);
    if after_any && asked.after.len() < 2 {
        return Err(OwnError::invalid("after_any: it chooses among several tasks of `after`"));
    }
    let retries = asked.retries;
    if retries.is_some_and(|it| it > RETRIES_MAX) {
        return Err(OwnError::invalid(format!(
            "retries: a task begins again {RETRIES_MAX} times at the most"
        )));
    }
    let mut placement =
        Placement { priority, after: Vec::new(), pool, on, wait_for_host, after_any, retries };
    for id in &asked.after {
        let id = task_id(id.trim()).map_err(|_| {
            let id: String = id.chars().take(40).collect();
            OwnError::invalid(format!("after: '{id}' cannot be the id of a task"))
        })?;
        if !placement.after.contains(&id) {
            placement.after.push(id);
        }
    }
    Ok(placement.unless_usual())
}

/// Returns the priority of a task; `None` for the usual one.
fn priority_word(order: &Delegate) -> Option<String> {
    Some(order.priority()).filter(|it| !it.is_normal()).map(|it| it.as_str().into())
}

/// Adds the data about its turn to a task.
pub(super) fn with_placement(of_task: &Task, task: wire::Task) -> wire::Task {
    let order = &of_task.order;
    let placement = order.placement.as_deref();
    let of = |member: fn(&Placement) -> &Option<Box<str>>| {
        placement.and_then(|it| member(it).as_deref()).map(str::to_owned)
    };
    let again_at = match of_task.state {
        TaskState::Retrying { at } => Some(at.rfc3339()),
        _ => None,
    };
    let attempt = (of_task.tried > 0).then(|| of_task.attempt());
    let (pool, on) = (of(|it| &it.pool), of(|it| &it.on));
    let host = (!of_task.daemon.is_alone()).then(|| of_task.daemon.host.short());
    let refused = of_task.travel.iter().flat_map(|it| &it.refused);
    let left_by = refused.map(|(daemon, why)| format!("host {}: {why}", daemon.host.short())).collect();
    wire::Task { priority: priority_word(order), pool, on, host, left_by, attempt, again_at, ..task }
}

/// Returns the word for the state of a task.
pub(in crate::own) fn state_word(state: &TaskState) -> &'static str {
    match state {
        TaskState::Awaiting { .. } => "awaiting",
        TaskState::Waiting => "waiting",
        TaskState::Retrying { .. } => "retrying",
        TaskState::Queued { .. } => "queued",
        TaskState::Assigned { .. } => "assigned",
        TaskState::Running { .. } => "running",
        TaskState::Finished { status: Status::Completed, .. } => "completed",
        TaskState::Finished { status: Status::Cancelled, .. } => "cancelled",
        TaskState::Finished { .. } => "failed",
    }
}

pub(in crate::own) fn delegated(task: &TaskId, state: &TaskState) -> wire::Delegated {
    let (task, state) = (task.to_string(), state_word(state).into());
    wire::Delegated { task, state, approval: None, rule: None, reason: None }
}

pub(in crate::own) fn parked(task: &TaskId, id: ApprovalId) -> wire::Delegated {
    let (task, state, approval) = (task.to_string(), "awaiting".into(), Some(id.0));
    wire::Delegated { task, state, approval, rule: None, reason: None }
}

pub(in crate::own) fn denied(task: &TaskId, denial: Denial) -> wire::Delegated {
    let (rule, reason) = (Some(denial.rule.to_string()), Some(denial.reason.into()));
    wire::Delegated { task: task.to_string(), state: "denied".into(), approval: None, rule, reason }
}
