//! Translates agents of other doors and delegated work into this protocol's words, only if `show_foreign` is set; and the
//! reservations of those agents, which are always shown: clients without another source keep away from those files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{map, wire};
use provost_auth::names::is_same;
use provost_base::ShownToCrew;
use provost_domain::command::Status;
use provost_domain::view::ForeignAgent;
use provost_domain::{Claim, Content, Hold, Reservation, ReservationKind, Task, TaskState};

/// Encodes an agent of another door. Its tool is the first of its doors, since its program is not known.
pub(super) fn agent(it: &ForeignAgent) -> wire::Agent<'_> {
    let known = it.known.agent.as_deref();
    let door = it.known.doors.iter().find(|it| it.row().to_crew != ShownToCrew::Nothing);
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

/// Encodes a delegated task; its files are those that its asker wants watched.
pub(super) fn task(it: &Task) -> wire::Task<'_> {
    let started = it.notes.iter().find(|it| it.said.as_ref() == Status::InProgress.as_str());
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
        TaskState::Awaiting { .. }
        | TaskState::Waiting
        | TaskState::Retrying { .. }
        | TaskState::Queued { .. } => "queued",
        TaskState::Assigned { .. } => "assigned",
        TaskState::Running { .. } => "in_progress",
        TaskState::Finished { status: Status::Completed, .. } => "done",
        // The protocol has no word for work that failed or was given up.
        TaskState::Finished { .. } => "blocked",
    }
}

/// Returns the first line of a goal, up to eighty characters.
fn title(goal: &str) -> &str {
    let line = goal.lines().next().unwrap_or_default();
    line.char_indices().nth(80).map_or(line, |(end, _)| &line[..end])
}

/// Returns the files of the crew, and after them the reservations through other doors: a lock as `locked`, an
/// intent as `claimed`. A claim on a file that another agent has locked there is shown as `conflicted`.
pub(super) fn resources<'a>(
    claims: &'a [Arc<Claim>],
    stakes: &'a [Arc<Reservation>],
) -> Vec<wire::Resource<'a>> {
    let mut elsewhere: BTreeMap<&str, &Reservation> = BTreeMap::new();
    for it in stakes {
        let path = it.pattern.as_deref().unwrap_or(it.at.as_str());
        let better =
            |known: &&Reservation| known.kind == ReservationKind::Lock || it.kind != ReservationKind::Lock;
        if !elsewhere.get(path).is_some_and(better) {
            elsewhere.insert(path, it);
        }
    }
    let is_free = |it: &Claim| matches!(it.held, Hold::Free);
    let mut shown = BTreeSet::new();
    let mut resources = Vec::new();
    for claim in claims {
        let other = elsewhere.get(claim.file.as_str()).copied();
        let mut resource = map::resource(claim);
        match (&claim.held, other) {
            (Hold::Free, Some(other)) => {
                resource = wire::Resource { content_hash: resource.content_hash, ..held(other) }
            }
            (Hold::Claimed { owner, .. }, Some(other))
                if other.kind == ReservationKind::Lock && !is_same(owner, &other.agent) =>
            {
                resource.state = "conflicted";
            }
            _ => {}
        }
        if other.is_some() || !is_free(claim) {
            shown.insert(claim.file.as_str());
        }
        resources.push(resource);
    }
    resources.extend(elsewhere.into_iter().filter(|(path, _)| !shown.contains(path)).map(|(_, it)| held(it)));
    resources
}

/// Encodes a reservation through another door. Its file was not read.
fn held(it: &Reservation) -> wire::Resource<'_> {
    wire::Resource {
        path: it.pattern.as_deref().unwrap_or(it.at.as_str()),
        state: if it.kind == ReservationKind::Lock { "locked" } else { "claimed" },
        owner: Some(it.agent.as_str()),
        claimed_at: Some(it.since.0),
        last_modified_by: None,
        content_hash: map::hash(Content::Unreadable),
    }
}
