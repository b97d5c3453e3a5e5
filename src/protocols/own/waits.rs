//! The waits of agents: for locks, approvals, answers and more.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map;
use provost_api::{endpoints, wire};
use provost_base::Timestamp;
use provost_base::limits::CIRCLES_KEPT_MS;
use provost_domain::post::slug;
use provost_domain::view::{AllPasskeys, AllWaits, AllWaitsOut};
use provost_domain::{LockWait, RefusedCircle, Task, TaskState};

impl Handles<endpoints::Waits> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::Waits> {
        let found = self.0.provost.view(AllWaits).await.map_err(map::fault)?;
        let hour = Timestamp(found.now.0.saturating_sub_unsigned(CIRCLES_KEPT_MS)).rfc3339();
        let refused_since = (self.0.about)().started_at.max(hour);
        let refused = found.circles.iter().map(|it| circle(it)).collect();
        let more = found.more;
        let enrolled = self.0.provost.view(AllPasskeys).await.map_err(map::fault)?.enrolled;
        Ok(wire::Waits { waits: waits(&found, enrolled), more, refused, refused_since })
    }
}

fn waits(found: &AllWaitsOut, enrolled: bool) -> Vec<wire::Wait> {
    let mut all: Vec<wire::Wait> = found.locks.iter().map(of_lock).collect();
    all.extend(found.approvals.iter().map(|it| {
        let about = map::approval(it, enrolled);
        wire::Wait {
            kind: "approval".into(),
            agent: about.asked_by,
            wanted: about.id.to_string(),
            words: Some(about.goal.unwrap_or(about.reason)),
            by: about.by.split(", ").map(Into::into).collect(),
            since: about.asked_at,
            until: Some(about.expires_at),
            task: about.task,
            ..wire::Wait::default()
        }
    }));
    all.extend(found.questions.iter().map(|it| wire::Wait {
        kind: "answer".into(),
        agent: slug(it.agent.as_str()).as_str().into(),
        wanted: it.n.0.to_string(),
        words: Some(it.text.as_ref().into()),
        by: vec!["a person".into()],
        since: it.at.rfc3339(),
        ..wire::Wait::default()
    }));
    all.extend(found.tasks.iter().map(|(task, place)| of_task(task, *place)));
    all.extend(found.handoffs.iter().map(|it| wire::Wait {
        kind: "handoff".into(),
        agent: it.from.to_string(),
        wanted: it.id.to_string(),
        words: Some(it.summary.to_string()),
        by: vec![it.to.as_deref().unwrap_or("any agent of the crew").into()],
        since: it.created_at.rfc3339(),
        ..wire::Wait::default()
    }));
    all.extend(found.contracts.iter().map(|it| wire::Wait {
        kind: "contract".into(),
        agent: it.proposer.to_string(),
        wanted: it.at.to_string(),
        words: Some(it.signature.to_string()),
        by: vec!["any other agent".into()],
        since: it.proposed_at.rfc3339(),
        ..wire::Wait::default()
    }));
    all.sort_by(|a, b| a.since.cmp(&b.since));
    all
}

fn of_lock(it: &LockWait) -> wire::Wait {
    let waiter = &it.waiter;
    wire::Wait {
        kind: if waiter.at.is_resource() { "resource" } else { "lock" }.into(),
        agent: waiter.agent.to_string(),
        wanted: waiter.at.to_string(),
        by: it.holders.iter().map(ToString::to_string).collect(),
        place: Some(it.ahead + 1),
        since: waiter.since.rfc3339(),
        until: Some(waiter.until.rfc3339()),
        task: waiter.run.as_ref().map(ToString::to_string),
        ticket: Some(waiter.ticket.0),
        ..wire::Wait::default()
    }
}

fn of_task(task: &Task, place: Option<usize>) -> wire::Wait {
    let until = match task.state {
        TaskState::Queued { until } => Some(until),
        TaskState::Retrying { at } => Some(at),
        TaskState::Assigned { lease_until, .. } | TaskState::Running { lease_until, .. } => Some(lease_until),
        TaskState::Awaiting { .. } | TaskState::Waiting | TaskState::Finished { .. } => None,
    };
    wire::Wait {
        kind: "task".into(),
        agent: task.asked_by.to_string(),
        wanted: task.id().to_string(),
        words: Some(task.order.goal.to_string()),
        by: match task.waits.is_empty() {
            true => vec![task.order.worker.to_string()],
            false => task.waits.iter().map(|it| format!("task {it}")).collect(),
        },
        place,
        since: task.created_at.rfc3339(),
        until: until.map(|it| it.rfc3339()),
        task: Some(task.id().to_string()),
        state: Some(map::state_word(&task.state).into()),
        ticket: None,
    }
}

fn circle(it: &RefusedCircle) -> wire::RefusedCircle {
    wire::RefusedCircle {
        at: it.at.rfc3339(),
        times: it.times,
        wanted: it.wanted.to_string(),
        members: it.members.iter().map(ToString::to_string).collect(),
    }
}
