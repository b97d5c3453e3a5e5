//! Durable work: a DELEGATE is on disk before it is answered. Against raw SQLite commits of as many bytes.

use std::time::Duration;

use anyhow::Result;
use rusqlite::{Connection, OpenFlags};

use crate::floor::{Commits, Rows};
use crate::history::live;
use crate::load::{Shot, persistent};
use crate::machine::{self, processor_ns};
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World, fresh};

const ROUNDS: usize = 4;
/// Clients, and the delegations of each in one round. All rounds together stay below what may be unfinished at once.
const CELLS: [(usize, usize); 3] = [(1, 150), (16, 40), (64, 20)];

const PAYLOAD: &str = r#"{"return_to":"bench:0","task":{"action":"devit_delegate","context":{"file_path":"/src/lib.rs","notes":"the parser takes the last of two equal keys, the writer the first one; see the failing vector","original_from":"client:claude_code"},"format":"default","goal":"make the parser refuse a key that occurs twice, add the vector and run the tests of the module","timeout":1800,"watch_patterns":["src/**/*.rs","tests/**/*.rs"]}}"#;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    // The daemon counts all clients of this process as one agent, so the limit for one agent is raised.
    world.configure("[limits]\ntasks_per_agent = 10000\n")?;
    let flush = machine::flush_cost(&world.path("run"))?;
    let (best, median) = (flush.best(Unit::Milliseconds), flush.median());
    table.note(&format!(
        "4 KiB on this disk (`fdatasync`, 100 times): best {best:.2} ms, median {median:.2} ms.\n"
    ))?;
    let (daemon, _) = world.start()?;
    // So that every agent is known, and the size of what is stored can be looked up.
    delegate(&daemon, 64, 1)?;
    let row_bytes = stored_bytes(&world)?;
    // So that the store's log has its full size, as the floors' have.
    live(&daemon, 16, 100)?;
    table.note(&format!("One delegation is stored as {row_bytes} bytes; so are the floor's rows.\n"))?;
    let mut single = Rows::create(&world.path("single.db"), row_bytes)?;
    let mut batched = Rows::create(&world.path("batched.db"), row_bytes)?;
    table.ratios(ROUNDS)?;
    let mut first: Option<Rounds> = None;
    for (clients, each) in CELLS {
        let (mut ours, mut one, mut many) = (Rounds::default(), Rounds::default(), Rounds::default());
        let mut cost = Rounds::default();
        let rate = |took: Duration| (clients * each) as f64 / took.as_secs_f64();
        for _ in 0..ROUNDS {
            let before = processor_ns(daemon.pid())?;
            ours.push(rate(delegate(&daemon, clients, each)?));
            let used = processor_ns(daemon.pid())?.saturating_sub(before);
            cost.push(used as f64 / 1e3 / (clients * (each + 1)) as f64);
            let (rows, took) = single.written_by(clients, each, Commits::Single)?;
            single = rows;
            one.push(rate(took));
            let (rows, took) = batched.written_by(clients, each, Commits::Batched)?;
            batched = rows;
            many.push(rate(took));
        }
        let what = |floor| format!("durable DELEGATE, clients: {clients}, to {floor}");
        table.ratio(&what("one commit a row"), Unit::PerSecond, &ours, &one)?;
        table.ratio(&what("batches"), Unit::PerSecond, &ours, &many)?;
        let alone = first.get_or_insert_with(|| cost.clone()).clone();
        let what = "… daemon's processor time a message, to that with one client";
        table.ratio(what, Unit::Microseconds, &cost, &alone)?;
    }
    Ok(())
}

/// Each client on a connection of its own, to a worker that nobody is.
pub(crate) fn delegate(daemon: &Daemon, clients: usize, each: usize) -> Result<Duration> {
    let magazine = |_| {
        let from = fresh("bench");
        let hello = Shot::quiet(daemon.frame("HEARTBEAT", &from, "orchestrator", "{}"));
        let worker = fresh("absent");
        let delegation = |_| {
            let id = fresh("3f2a9c1e-7b64-4d0a-9e21");
            Shot::answered(daemon.frame_named("DELEGATE", &id, &from, &worker, PAYLOAD), "ACK")
        };
        std::iter::once(hello).chain((0..each).map(delegation)).collect()
    };
    persistent(&daemon.socket, (0..clients).map(magazine).collect())
}

/// What the store has for one delegation: task, message and events.
fn stored_bytes(world: &World) -> Result<usize> {
    let path = world.state_dir()?.join(provost::store::DATABASE);
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let sql = "SELECT (SELECT sum(length(body)) FROM task) + (SELECT sum(length(body)) FROM mail)
               + (SELECT sum(length(body)) FROM event WHERE task IS NOT NULL), (SELECT count(*) FROM task)";
    let (bytes, tasks): (i64, i64) = db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(usize::try_from(bytes / tasks.max(1))?)
}
