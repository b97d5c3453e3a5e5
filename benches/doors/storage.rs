//! The store alone: events a second by batch, against raw rows of the same size and number.

use std::time::Instant;

use anyhow::Result;
use provost::base::{AgentId, EventSeq, HostId, Json, Timestamp};
use provost::domain::command::Durability;
use provost::domain::{Event, EventKind, Outbox, Settings};
use provost::store::{Options, open};

use crate::floor::Rows;
use crate::table::{Rounds, Table, Unit};
use crate::world::World;

const ROUNDS: usize = 5;
/// Events in one commit, and commits in one round.
const CELLS: [(usize, usize); 3] = [(1, 100), (16, 50), (512, 6)];

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let mut store = open(&world.path("store"), Options::default())?;
    let mut seq = store.load(Settings::new(AgentId::parse("client:approver")?))?.state.counters.event;
    // A row of the floor has the bytes of an event's body, its hash and its link of the chain.
    let row_bytes = serde_json::to_string(&event(seq)?)?.len() + 64;
    let mut rows = Rows::create(&world.path("rows.db"), row_bytes)?;
    table.ratios(ROUNDS)?;
    for (durability, word) in [(Durability::Commit, "not waited for"), (Durability::Durable, "on disk")] {
        rows.wait_for_disk(durability == Durability::Durable)?;
        for (events, commits) in CELLS {
            let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
            let rate = |begun: Instant| (events * commits) as f64 / begun.elapsed().as_secs_f64();
            for _ in 0..ROUNDS {
                let mut batches = Vec::new();
                for _ in 0..commits {
                    batches.push(batch(&mut seq, events, durability)?);
                }
                let begun = Instant::now();
                for batch in &batches {
                    store.commit(batch)?;
                }
                ours.push(rate(begun));
                let begun = Instant::now();
                for _ in 0..commits {
                    rows.commit(events)?;
                }
                floor.push(rate(begun));
            }
            let what = format!("events, {events} a commit, {word}");
            table.ratio(&what, Unit::PerSecond, &ours, &floor)?;
        }
    }
    Ok(store.close()?)
}

fn batch(seq: &mut EventSeq, events: usize, durability: Durability) -> Result<Outbox> {
    let mut out = Outbox::default();
    for _ in 0..events {
        *seq = seq.next();
        out.events.push(event(*seq)?);
    }
    out.durability = durability;
    Ok(out)
}

fn event(seq: EventSeq) -> Result<Event> {
    let details = Json::parse(r#"{"files":3,"summary":"a note of ordinary length"}"#)?;
    let kind = EventKind::Recorded { what: "bench".into(), subject: "a subject".into(), details };
    Ok(Event {
        seq,
        at: Timestamp(1_800_000_000_000),
        actor: AgentId::parse("bench:0")?,
        kind,
        host: HostId::default(),
    })
}
