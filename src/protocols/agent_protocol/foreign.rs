//! Agents of other doors and delegated work, in this protocol's words. Shown only where `show_foreign` is set.

use super::wire;
use crate::domain::command::Status;
use crate::domain::view::ForeignAgent;
use crate::domain::{Door, Task, TaskState};

/// An agent of another door. What it uses is the first of its doors, since its program is not known.
pub(super) fn agent(it: &ForeignAgent) -> wire::Agent<'_> {
    let known = it.known.agent.as_deref();
    let door =
        it.known.doors.iter().find(|it| ![Door::AgentProtocol, Door::Own, Door::Internal].contains(it));
    let since = known.map(|it| it.registered_at).or(it.known.last_seen).unwrap_or_default();
    let status = match (it.known.alive, &it.at) {
        (false, _) => "offline",
        (true, Some(_)) => "working",
        (true, None) => "idle",
    };
    wire::Agent {
        id: it.known.id.as_str(),
        tool: door.map_or("provost", |it| it.name()),
        role: "worker",
        status,
        current_task: it.at.as_ref().map(|it| it.id().as_str()),
        capabilities: known.map_or(&[], |it| &it.caps),
        joined_at: since.0,
        last_heartbeat: it.known.last_seen.unwrap_or(since).0,
        requested_role: None,
    }
}

/// A delegated task; the files that its asker wants watched are what it is about.
pub(super) fn task(it: &Task) -> wire::Task<'_> {
    let started = it.notes.iter().find(|it| it.said.as_ref() == Status::InProgress.word());
    let (started, completed) = match it.state {
        TaskState::Running { since, .. } => (Some(since), None),
        TaskState::Finished { status: Status::Completed, at } => (started.map(|it| it.at), Some(at)),
        _ => (None, None),
    };
    wire::Task {
        id: it.id().as_str(),
        title: title(&it.order.goal),
        description: &it.order.goal,
        assigned_to: Some(it.order.worker.as_str()),
        assigned_by: it.asked_by.as_str(),
        status: status(it.state),
        resources: &it.order.watch_patterns,
        depends_on: &[],
        created_at: it.created_at.0,
        started_at: started.map(|it| it.0),
        completed_at: completed.map(|it| it.0),
    }
}

fn status(state: TaskState) -> &'static str {
    match state {
        TaskState::Awaiting { .. } | TaskState::Queued { .. } => "queued",
        TaskState::Assigned { .. } => "assigned",
        TaskState::Running { .. } => "in_progress",
        TaskState::Finished { status: Status::Completed, .. } => "done",
        // There is no word for what has failed or was given up.
        TaskState::Finished { .. } => "blocked",
    }
}

/// The first line of a goal, up to eighty characters.
fn title(goal: &str) -> &str {
    let line = goal.lines().next().unwrap_or_default();
    line.char_indices().nth(80).map_or(line, |(end, _)| &line[..end])
}
