//! A store as a long and busy life leaves it, made of what a daemon has written of each kind once: copies under other names,
//! handed to the store the way the daemon's engine does it.

use std::path::Path;
use std::sync::Arc;

use provost_base::{
    AgentId, ApprovalId, EventSeq, Fence, HostId, Json, RepoPath, SymbolPath, TaskId, Timestamp,
};
use provost_domain::{
    Change, Event, EventKind, Lock, Outbox, Parked, RegisteredAgent, Settings, Task, TaskState,
};
use provost_store::{Options, open};
use serde_json::{Value, json};

/// Why a store cannot be filled.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Events of one commit.
const BATCH: usize = 500;

/// Askers of copied approvals: no agent may have more than a hundred waiting.
const PER_ASKER: usize = 50;

/// The first number of a copied approval, ahead of those that a daemon gives.
const COPIED_FROM: u64 = 1_000_000;

/// How much of each kind there is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// Queued tasks.
    pub tasks: usize,
    /// Approvals that wait, each with its task.
    pub approvals: usize,
    /// Events.
    pub events: usize,
    /// Agents that have registered.
    pub agents: usize,
    /// Locks, which the agents hold by turns; none without agents.
    pub locks: usize,
}

/// How long the locks last, in milliseconds: for longer than any run.
const LASTS_MS: i64 = 6 * 60 * 60 * 1000;

/// The word that one of ten thousand events has.
pub const RARE: &str = "cormorant";

/// The word that each event has.
pub const COMMON: &str = "parser";

/// The name of one of the agents.
pub fn holder(n: usize) -> String {
    format!("holder-{n}")
}

/// Fills the store in a state folder, whose daemon has one queued task and one approval waiting, and does not run; `now` in
/// milliseconds since 1970.
///
/// # Errors
/// A store that cannot be read or written, and one without such a task or approval.
pub fn fill(state_dir: &Path, size: Size, now: i64) -> Result<(), Failed> {
    let mut store = open(state_dir, Options::default())?;
    let state = store.load(Settings::new(AgentId::parse("client:approver")?))?.state;
    let queued =
        state.tasks.iter().find(|it| matches!(it.state, TaskState::Queued { .. })).ok_or("no queued task")?;
    let parked = state.approvals.iter().next().ok_or("no approval")?;
    let mut asked =
        parked.task().and_then(|id| state.tasks.get(id)).ok_or("the approval has no task")?.as_ref().clone();
    let mut seq = state.counters.event;
    let mut out = Outbox::default();
    for n in 0..size.approvals {
        let (number, id) = (ApprovalId(COPIED_FROM + n as u64), format!("asked-{n:08}"));
        out.changes.push(Change::PutApproval(Arc::new(copied(parked, number, &id, n / PER_ASKER)?)));
        asked.order.task = TaskId::parse(&id)?;
        asked.state = TaskState::Awaiting { approval: number };
        out.changes.push(Change::PutTask(Arc::new(asked.clone())));
    }
    for n in 0..size.tasks {
        out.changes.push(Change::PutTask(Arc::new(renamed(queued, &format!("queued-{n:08}"))?)));
        if out.changes.len() >= BATCH {
            store.commit(&std::mem::take(&mut out))?;
        }
    }
    store.commit(&std::mem::take(&mut out))?;
    let now = Timestamp(now);
    out.changes.extend(agents(size, now)?);
    for n in 0..if size.agents == 0 { 0 } else { size.locks } {
        out.changes.push(Change::PutLock(Arc::new(lock(n, size.agents, now)?)));
        if out.changes.len() >= BATCH {
            store.commit(&std::mem::take(&mut out))?;
        }
    }
    store.commit(&std::mem::take(&mut out))?;
    for batch in 0..size.events.div_ceil(BATCH) {
        for n in 0..BATCH.min(size.events - batch * BATCH) {
            seq = seq.next();
            out.events.push(event(seq, now, batch * BATCH + n)?);
        }
        store.commit(&std::mem::take(&mut out))?;
    }
    Ok(store.close()?)
}

fn agents(size: Size, now: Timestamp) -> Result<Vec<Change>, Failed> {
    let agent = |n: usize| {
        Ok(Change::PutAgent(Arc::new(RegisteredAgent {
            id: AgentId::parse(&holder(n))?,
            caps: Vec::new(),
            version: None,
            pid: None,
            peer_pid: None,
            registered_at: now,
            registered: true,
            nick: None,
            share: None,
        })))
    };
    (0..size.agents).map(agent).collect()
}

fn lock(n: usize, agents: usize, now: Timestamp) -> Result<Lock, Failed> {
    let file = format!("src/room{}/file{}.py", (n / 10) % 97, n / 10);
    let at = SymbolPath::of(RepoPath::parse(&file)?, &format!("f{}", n % 10))?;
    let fence = Fence(COPIED_FROM + n as u64);
    Ok(Lock {
        asked: at.to_string().into(),
        names: Vec::new(),
        holder: AgentId::parse(&holder(n % agents))?,
        run: None,
        acquired_at: now,
        expires_at: Timestamp(now.0.saturating_add(LASTS_MS)),
        fence,
        place: fence,
        lapsed: false,
        process: None,
        reason: Some("a change of many files".into()),
        share: None,
        writing: None,
        until_commit: None,
        units: None,
        daemon: Default::default(),
        at,
    })
}

fn renamed(template: &Task, id: &str) -> Result<Task, Failed> {
    let mut task = template.clone();
    task.order.task = TaskId::parse(id)?;
    Ok(task)
}

/// The same command of another asker, which waits under another number.
fn copied(template: &Parked, number: ApprovalId, id: &str, asker: usize) -> Result<Parked, Failed> {
    let old = template.task().ok_or("it makes no task")?;
    let text = serde_json::to_string(template)?.replace(old.as_str(), id);
    let mut value: Value = serde_json::from_str(&text)?;
    if !value["who"].is_object() {
        return Err(format!("an approval has no asker: {value}").into());
    }
    value["id"] = json!(number);
    value["who"]["share"] = json!({ "name": format!("asker-{asker}") });
    Ok(serde_json::from_value(value)?)
}

fn event(seq: EventSeq, at: Timestamp, n: usize) -> Result<Event, Failed> {
    let rare = if n.is_multiple_of(10_000) { RARE } else { "sparrow" };
    let summary = format!("step {n} of the {COMMON}: three files read, one written, {rare}");
    let details = Json::parse(&json!({ "files": 3, "summary": summary }).to_string())?;
    let kind = EventKind::Recorded { what: "bench".into(), subject: "a subject".into(), details };
    Ok(Event { seq, at, actor: AgentId::parse(&format!("bench:{}", n % 40))?, kind, host: HostId::default() })
}
