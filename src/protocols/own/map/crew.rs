//! The crew: the dictionary between the own API's words and Provost's.

use super::{OwnError, agent};
use axum::http::StatusCode;
use provost_api::wire;
use provost_base::{AgentId, HandoffId};
use provost_domain::command::{FileClaimed, JoinCrew, OfferTransfer};
use provost_domain::view::{AtWorkOut, FirstOf};
use provost_domain::{
    Assignment, AssignmentState, Claim, Handoff, HandoffState, Hold, Member, Reservation, ReservationKind,
    Role, Standing,
};

pub(in super::super) fn join(it: wire::JoinCrew) -> Result<JoinCrew, OwnError> {
    let role = match it.role.as_deref() {
        None | Some("worker") => Role::Worker,
        Some("specialist") => Role::Specialist,
        Some("lead") => Role::Lead,
        Some(other) => {
            return Err(OwnError::invalid(format!("role '{other}' is not one of lead, specialist, worker")));
        }
    };
    if it.tool.trim().is_empty() {
        return Err(OwnError::invalid("tool is empty: it is the program that the agent is"));
    }
    let capabilities = it.capabilities.into_iter().map(Into::into).collect();
    Ok(JoinCrew { tool: it.tool.into(), role, capabilities })
}

pub(in super::super) fn member(it: &Member) -> wire::Member {
    let role = match it.role() {
        Role::Lead => "lead",
        Role::Specialist => "specialist",
        Role::Worker => "worker",
    };
    let status = match it.standing {
        Standing::Idle => "idle",
        Standing::Working => "working",
        Standing::Blocked => "blocked",
        Standing::WaitingReview => "waiting_review",
        Standing::Offline => "offline",
    };
    let (agent, tool) = (it.id.to_string(), it.tool.to_string());
    wire::Member { agent, tool, role: role.into(), status: status.into() }
}

pub(in super::super) fn claimed(it: &FileClaimed) -> wire::Claimed {
    let warning = |(with, at): (&Reservation, &str)| {
        format!("{at} {} {}: {}", with.kind.verb(), with.agent, with.asked)
    };
    let warnings = it.met.iter().map(|it| warning((&it.with, it.mine.at.as_str()))).collect();
    wire::Claimed { file: it.claim.file.as_str().into(), warnings }
}

pub(in super::super) fn at_work(it: &AtWorkOut) -> wire::AtWork {
    wire::AtWork {
        me: it.me.as_deref().map(member),
        members: rows(&it.members, |it| Some(member(it))),
        workers: rows(&it.workers, |(agent, task)| {
            Some(wire::WorkerAtTask { agent: agent.to_string(), task: task.to_string() })
        }),
        claims: rows(&it.claims, |it| file_held(it)),
        stakes: rows(&it.stakes, |it| Some(stake(it))),
        tasks: rows(&it.assignments, |it| Some(task(it))),
        handoffs: rows(&it.handoffs, |it| Some(handoff(it))),
        patience_ms: it.patience.as_millis().into(),
    }
}

fn rows<T, W>(all: &FirstOf<T>, shown: impl Fn(&T) -> Option<W>) -> wire::Rows<W> {
    wire::Rows { rows: all.rows.iter().filter_map(shown).collect(), more: all.more }
}

fn hold_word(held: &Hold) -> Option<&'static str> {
    match held {
        Hold::Free => None,
        Hold::Claimed { .. } => Some("claimed"),
        Hold::Locked { .. } => Some("locked"),
        Hold::Conflicted { .. } => Some("conflicted"),
    }
}

fn file_held(it: &Claim) -> Option<wire::FileHeld> {
    let how = hold_word(&it.held)?;
    let agent = it.held.owner()?.to_string();
    Some(wire::FileHeld { file: it.file.as_str().into(), how: how.into(), agent })
}

fn stake(it: &Reservation) -> wire::Reservation {
    let kind = match it.kind {
        ReservationKind::Claim => "claim",
        ReservationKind::Lock => "lock",
        ReservationKind::Intent | ReservationKind::Plan => "intent",
    };
    // A pattern is more exact than the folder in which it begins.
    let at = it.pattern.as_deref().unwrap_or(it.at.as_str());
    wire::Reservation {
        at: at.into(),
        kind: kind.into(),
        agent: it.agent.to_string(),
        asked: it.asked.to_string(),
    }
}

fn task(it: &Assignment) -> wire::TaskForMe {
    let status = match it.state {
        AssignmentState::Queued => "queued",
        AssignmentState::Assigned => "assigned",
        AssignmentState::InProgress => "in_progress",
        AssignmentState::Review => "review",
        AssignmentState::Done => "done",
        AssignmentState::Blocked => "blocked",
    };
    wire::TaskForMe {
        id: it.id.to_string(),
        title: it.title.to_string(),
        by: it.by.to_string(),
        status: status.into(),
        files: it.files.iter().map(ToString::to_string).collect(),
    }
}

fn handoff(it: &Handoff) -> wire::HandoffForMe {
    wire::HandoffForMe {
        id: it.id.to_string(),
        from: it.from.to_string(),
        task: it.assignment.to_string(),
        summary: it.summary.to_string(),
    }
}

pub(in super::super) fn held(it: &Claim) -> Option<wire::HeldFile> {
    Some(wire::HeldFile {
        file: it.file.as_str().into(),
        how: hold_word(&it.held)?.into(),
        holder: it.held.owner()?.to_string(),
        since: it.held.since().map(|it| it.rfc3339()),
        fence: it.fence.0,
        task: it.assignment.as_ref().map(ToString::to_string),
    })
}

pub(in super::super) fn transfer_word(state: HandoffState) -> &'static str {
    match state {
        HandoffState::Pending => "pending",
        HandoffState::Accepted => "accepted",
        HandoffState::Rejected => "rejected",
    }
}

fn texts(all: &[Box<str>]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

pub(in super::super) fn handed_over(it: &Handoff) -> wire::HandedOver {
    wire::HandedOver {
        id: it.id.to_string(),
        place: it.place.0,
        from: it.from.to_string(),
        to: it.to.as_ref().map(ToString::to_string),
        task: it.assignment.to_string(),
        state: transfer_word(it.state).into(),
        summary: it.summary.to_string(),
        files_modified: texts(&it.modified),
        files_created: texts(&it.created),
        context: it.context.to_string(),
        blockers: texts(&it.blockers),
        at: it.created_at.rfc3339(),
    }
}

/// Makes a hand-off with a new id, in the form of the door of Agent Protocol.
pub(in super::super) fn offer(it: wire::OfferHandoff) -> Result<OfferTransfer, OwnError> {
    let filled = |text: &str, member: &str| match text.trim() {
        "" => Err(OwnError::invalid(format!("{member} is empty"))),
        text => Ok(text.into()),
    };
    let id = format!("hoff_{}", uuid::Uuid::new_v4().simple());
    let boxed = |all: Vec<String>| all.into_iter().map(Into::into).collect();
    let to = it.to.filter(|it| !it.trim().is_empty()).map(|it| agent(it.trim(), "to")).transpose()?;
    Ok(OfferTransfer {
        id: HandoffId::parse(&id).expect("a prefix and a UUID are an id"),
        to: to.map(|it| it.as_str().into()),
        assignment: filled(&it.task, "task")?,
        summary: filled(&it.summary, "summary")?,
        modified: boxed(it.files_modified),
        created: boxed(it.files_created),
        context: it.context.into(),
        blockers: boxed(it.blockers),
    })
}

/// Refuses an answer to a hand-off from its maker, and from any agent but the intended one.
pub(in super::super) fn may_answer(it: &Handoff, who: &AgentId) -> Result<(), OwnError> {
    let for_whom = it.to.as_deref().filter(|to| *to != who.as_str());
    let why = match for_whom {
        _ if it.from == *who => format!("hand-off {} is your own", it.id),
        Some(to) => format!("hand-off {} is for {to}", it.id),
        None => return Ok(()),
    };
    Err(OwnError::new(StatusCode::FORBIDDEN, "handoff_not_yours", why)
        .hint("handoff_list shows those that wait for you"))
}
