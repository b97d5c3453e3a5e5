//! A store as a long and busy life leaves it, made of what a daemon has written of each kind once: copies under other names,
//! handed to the store the way the daemon's engine does it.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use provost::base::{AgentId, ApprovalId, EventSeq, Json, TaskId, Timestamp};
use provost::domain::{Change, Event, EventKind, Outbox, Parked, Settings, Task, TaskState};
use provost::store::{Options, open};
use serde_json::{Value, json};

use crate::world::{World, fresh};

/// Events of one commit.
const BATCH: usize = 500;

/// Askers of copied approvals: no agent may have more than a hundred waiting.
const PER_ASKER: usize = 50;

/// The first number of a copied approval, ahead of those that a daemon gives.
const COPIED_FROM: u64 = 1_000_000;

/// How much of each kind there is to be.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) tasks: usize,
    pub(crate) approvals: usize,
    pub(crate) events: usize,
}

/// The word that one of ten thousand events has.
pub(crate) const RARE: &str = "cormorant";

/// The word that each event has.
pub(crate) const COMMON: &str = "parser";

/// Fills the store of a world whose daemon has one queued task and one approval waiting.
pub(crate) fn fill(world: &World, size: Size) -> Result<()> {
    let mut store = open(&world.state_dir()?, Options::default())?;
    let state = store.load(Settings::new(AgentId::parse("client:approver")?))?.state;
    let queued = state
        .tasks
        .iter()
        .find(|it| matches!(it.state, TaskState::Queued { .. }))
        .context("a queued task")?;
    let parked = state.approvals.iter().next().context("an approval")?;
    let mut asked = parked.task().and_then(|id| state.tasks.get(id)).context("its task")?.as_ref().clone();
    let mut seq = state.counters.event;
    let mut out = Outbox::default();
    for n in 0..size.approvals {
        let (number, id) = (ApprovalId(COPIED_FROM + n as u64), fresh("asked"));
        out.changes.push(Change::PutApproval(Arc::new(copied(parked, number, &id, n / PER_ASKER)?)));
        asked.order.task = TaskId::parse(&id)?;
        asked.state = TaskState::Awaiting { approval: number };
        out.changes.push(Change::PutTask(Arc::new(asked.clone())));
    }
    for _ in 0..size.tasks {
        out.changes.push(Change::PutTask(Arc::new(renamed(queued, &fresh("queued"))?)));
        if out.changes.len() >= BATCH {
            store.commit(&std::mem::take(&mut out))?;
        }
    }
    store.commit(&std::mem::take(&mut out))?;
    let now = Timestamp(chrono::Utc::now().timestamp_millis());
    for batch in 0..size.events.div_ceil(BATCH) {
        for n in 0..BATCH.min(size.events - batch * BATCH) {
            seq = seq.next();
            out.events.push(event(seq, now, batch * BATCH + n)?);
        }
        store.commit(&std::mem::take(&mut out))?;
    }
    Ok(store.close()?)
}

fn renamed(template: &Task, id: &str) -> Result<Task> {
    let mut task = template.clone();
    task.order.task = TaskId::parse(id)?;
    Ok(task)
}

/// The same command of another asker, which waits under another number.
fn copied(template: &Parked, number: ApprovalId, id: &str, asker: usize) -> Result<Parked> {
    let old = template.task().context("it makes a task")?;
    let text = serde_json::to_string(template)?.replace(old.as_str(), id);
    let mut value: Value = serde_json::from_str(&text)?;
    ensure!(value["who"].is_object(), "an approval has an asker: {value}");
    value["id"] = json!(number);
    value["who"]["share"] = json!({ "name": format!("asker-{asker}") });
    Ok(serde_json::from_value(value)?)
}

fn event(seq: EventSeq, at: Timestamp, n: usize) -> Result<Event> {
    let rare = if n.is_multiple_of(10_000) { RARE } else { "sparrow" };
    let summary = format!("step {n} of the {COMMON}: three files read, one written, {rare}");
    let details = Json::parse(&json!({ "files": 3, "summary": summary }).to_string())?;
    let kind = EventKind::Recorded { what: "bench".into(), subject: "a subject".into(), details };
    Ok(Event { seq, at, actor: AgentId::parse(&format!("bench:{}", n % 40))?, kind })
}
