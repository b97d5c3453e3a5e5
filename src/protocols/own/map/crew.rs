//! The crew: the own API's words and ours.

use super::super::wire;
use super::Fault;
use crate::domain::command::{FileClaimed, JoinCrew};
use crate::domain::view::{AtWorkOut, FirstOf};
use crate::domain::{
    Assignment, AssignmentState, Claim, Hold, Member, Role, Stake, StakeKind, Standing, Transfer,
};

pub(in super::super) fn join(it: wire::JoinCrew) -> Result<JoinCrew, Fault> {
    let role = match it.role.as_deref() {
        None | Some("worker") => Role::Worker,
        Some("specialist") => Role::Specialist,
        Some("lead") => Role::Lead,
        Some(other) => {
            return Err(Fault::invalid(format!("role '{other}' is not one of lead, specialist, worker")));
        }
    };
    if it.tool.trim().is_empty() {
        return Err(Fault::invalid("tool is empty: it is the program that the agent is"));
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
    let warning =
        |(with, at): (&Stake, &str)| format!("{at} {} {}: {}", with.kind.verb(), with.agent, with.asked);
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
        handoffs: rows(&it.transfers, |it| Some(handoff(it))),
        patience_ms: it.patience.as_millis().into(),
    }
}

fn rows<T, W>(all: &FirstOf<T>, shown: impl Fn(&T) -> Option<W>) -> wire::Rows<W> {
    wire::Rows { rows: all.rows.iter().filter_map(shown).collect(), more: all.more }
}

fn file_held(it: &Claim) -> Option<wire::FileHeld> {
    let how = match it.held {
        Hold::Free => return None,
        Hold::Claimed { .. } => "claimed",
        Hold::Locked { .. } => "locked",
        Hold::Conflicted { .. } => "conflicted",
    };
    let agent = it.held.owner()?.to_string();
    Some(wire::FileHeld { file: it.file.as_str().into(), how: how.into(), agent })
}

fn stake(it: &Stake) -> wire::Stake {
    let kind = match it.kind {
        StakeKind::Claim => "claim",
        StakeKind::Lock => "lock",
        StakeKind::Intent | StakeKind::Plan => "intent",
    };
    // A pattern says more than the folder in which it begins.
    let at = it.pattern.as_deref().unwrap_or(it.at.as_str());
    wire::Stake { at: at.into(), kind: kind.into(), agent: it.agent.to_string(), asked: it.asked.to_string() }
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

fn handoff(it: &Transfer) -> wire::HandoffForMe {
    wire::HandoffForMe {
        id: it.id.to_string(),
        from: it.from.to_string(),
        task: it.assignment.to_string(),
        summary: it.summary.to_string(),
    }
}
