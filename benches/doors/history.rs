//! What a long life costs: the time from a start to its first answer, and memory.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use provost::base::limits::EVENT_PAGE_MAX;
use provost::base::{AgentId, EventSeq, TaskId};
use provost::domain::{Change, Event, Outbox, Settings, Task};
use provost::store::{FinishedFilter, Options, StoreError, open, open_reader};

use crate::load::{Shot, persistent};
use crate::machine::resident_kib;
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World, fresh};

const ROUNDS: usize = 7;
/// Finished tasks of a short and of a long history, the one that lives through both included.
const SHORT: usize = 1_000;
const LONG: usize = 100_000;
const BATCH: usize = 500;
/// Pairs of a client and a worker, and the tasks that each pair takes through a whole life of four messages.
const PAIRS: usize = 10;
const LIVES: usize = 250;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let (daemon, _) = world.start()?;
    live(&daemon, 1, 1)?;
    daemon.stop()?;
    let empty = World::new()?;
    empty.start()?.0.stop()?;
    let short = starts(&world, &empty, SHORT - 1)?;
    let long = starts(&world, &empty, LONG - SHORT)?;
    table.ratios(ROUNDS)?;
    let what = |tasks| format!("start to first answer, {tasks} finished tasks, to none");
    table.ratio(&what(SHORT), Unit::Milliseconds, &short.0, &short.1)?;
    table.ratio(&what(LONG), Unit::Milliseconds, &long.0, &long.1)?;
    memory(table, &empty, &world)
}

/// Lengthens the history of one world, and then starts both by turns.
fn starts(grown: &World, empty: &World, more: usize) -> Result<(Rounds, Rounds)> {
    grow(grown, more)?;
    let (mut with, mut without) = (Rounds::default(), Rounds::default());
    for round in 0..=ROUNDS {
        for (world, rounds) in [(grown, &mut with), (empty, &mut without)] {
            let (daemon, took) = world.start()?;
            daemon.stop()?;
            if round > 0 {
                rounds.push(took.as_secs_f64() * 1_000.0);
            }
        }
    }
    Ok((with, without))
}

fn memory(table: &mut Table, empty: &World, grown: &World) -> Result<()> {
    let mib = |daemon: &Daemon| -> Result<f64> { Ok(resident_kib(daemon.pid())? as f64 / 1_024.0) };
    table.note("\n| resident memory | MiB |\n|---|---|")?;
    let (daemon, _) = empty.start()?;
    let idle = mib(&daemon)?;
    table.note(&format!("| after the first answer, no history | {idle:.1} |"))?;
    live(&daemon, PAIRS, LIVES)?;
    let busy = mib(&daemon)?;
    table.note(&format!(
        "| after {} messages ({} tasks through their whole life) | {busy:.1} |",
        4 * PAIRS * LIVES,
        PAIRS * LIVES
    ))?;
    drop(daemon);
    let (daemon, _) = grown.start()?;
    let idle = mib(&daemon)?;
    table.note(&format!("| after the first answer, {LONG} finished tasks | {idle:.1} |"))?;
    let ask =
        Shot::answered(daemon.frame("STATUS_REQUEST", "bench:0", "orchestrator", "{}"), "STATUS_RESPONSE");
    persistent(&daemon.socket, vec![vec![ask]])?;
    let asked = mib(&daemon)?;
    table.note(&format!("| the same after a STATUS answer of the newest 1,000 | {asked:.1} |"))
}

/// Tasks through their whole life: delegated, collected, reported, and the report collected.
pub(crate) fn live(daemon: &Daemon, pairs: usize, lives: usize) -> Result<()> {
    let magazine = |pair: usize| {
        // One connection speaks for both, which keeps the four messages in order.
        let (client, worker) = (format!("client:{pair}"), format!("worker:{pair}"));
        let mut shots = vec![Shot::quiet(daemon.frame("HEARTBEAT", &worker, "orchestrator", "{}"))];
        for _ in 0..lives {
            let id = fresh("task");
            let order = format!(
                r#"{{"return_to":"{client}","task":{{"action":"devit_delegate","goal":"count the lines","timeout":600}}}}"#
            );
            let report = format!(
                r#"{{"artifacts":{{"details":{{"lines":1034}},"summary":"1034 lines"}},"status":"completed","task_id":"{id}"}}"#
            );
            shots.push(Shot::answered(daemon.frame_named("DELEGATE", &id, &client, &worker, &order), "ACK"));
            shots.push(Shot::answered(daemon.frame("POLL", &worker, "orchestrator", "{}"), "DELEGATE"));
            shots.push(Shot::answered(daemon.frame("NOTIFY", &worker, "orchestrator", &report), "ACK"));
            shots.push(Shot::answered(daemon.frame("POLL", &client, "orchestrator", "{}"), "NOTIFY"));
        }
        shots
    };
    persistent(&daemon.socket, (0..pairs).map(magazine).collect()).map(|_| ())
}

/// Writes finished tasks with the events that belong to them, copies of one that a daemon has taken through its
/// life, the way the daemon's engine hands them to the store.
fn grow(world: &World, more: usize) -> Result<()> {
    let dir = world.state_dir()?;
    let mut reader = open_reader(&dir)?;
    let (tasks, _) = reader.finished(FinishedFilter::default(), LONG, usize::MAX)?;
    let template = tasks.last().context("there is no finished task")?.clone();
    let events = reader.events_after(EventSeq(0), EVENT_PAGE_MAX)?;
    let events: Vec<Event> = events
        .iter()
        .filter(|it| it.task.as_ref() == Some(template.id()))
        .map(|it| it.event().and_then(|it| it.ok_or(StoreError::NotRunning)))
        .collect::<Result<_, _>>()?;
    ensure!(!events.is_empty(), "the finished task left no events");
    drop(reader);
    let mut store = open(&dir, Options::default())?;
    let mut seq = store.load(Settings::new(AgentId::parse("client:approver")?))?.state.counters.event;
    for batch in 0..more.div_ceil(BATCH) {
        let mut out = Outbox::default();
        for _ in 0..BATCH.min(more - batch * BATCH) {
            let id = fresh("past");
            out.changes.push(Change::FinishTask(Arc::new(renamed_task(&template, &id)?)));
            for event in &events {
                seq = seq.next();
                out.events.push(renamed_event(event, template.id(), &id, seq)?);
            }
        }
        store.commit(&out)?;
    }
    Ok(store.close()?)
}

fn renamed_task(template: &Task, id: &str) -> Result<Task> {
    let mut task = template.clone();
    task.order.task = TaskId::parse(id)?;
    Ok(task)
}

fn renamed_event(template: &Event, old: &TaskId, id: &str, seq: EventSeq) -> Result<Event> {
    let text = serde_json::to_string(template)?.replace(old.as_str(), id);
    Ok(Event { seq, ..serde_json::from_str(&text)? })
}
