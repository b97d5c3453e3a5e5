//! The broker's door: publishing and polling, and what a million messages change.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use provost::base::{AgentId, Timestamp};
use provost::domain::command::Publish;
use provost::domain::post::{Post, Source};
use provost::domain::{Call, Core, Door, Facts, Outbox, Proof, Scope, Settings};
use provost::policy::builtin;
use provost::store::{Options, open};
use provost_test_equipment::callers::caller;

use crate::http::{Cell, Line, PONG_ROLE, Request, Server, persistent, run, started};
use crate::machine::{processor_ns, resident_kib};
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World};

const ROUNDS: usize = 5;
const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// Messages that are stored, all of them in one inbox.
const STORED: [usize; 3] = [1_000, 100_000, 1_000_000];
/// Messages of one commit, and polls of one round, where messages are many.
const BATCH: usize = 500;
const POLLS: usize = 500;
/// Messages over which memory is watched.
const MANY: usize = 100_000;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let (daemon, _) = world.start()?;
    let door = at(&daemon)?;
    let (_pong, pong) = started(PONG_ROLE, &world.path("pong.port"))?;
    table.ratios(ROUNDS)?;
    cells(table, door, pong)?;
    memory(table, &daemon, door)?;
    daemon.stop()?;
    stored(table)
}

fn at(daemon: &Daemon) -> Result<Server> {
    Ok(Server::new(daemon.port("broker")?, daemon.pid()))
}

fn status(port: u16, agent: usize) -> Request {
    let body = format!(
        r#"{{"type":"agent.status","agent_id":"feat-bench-{agent}","payload":{{"status":"working","modified_files":["src/f{agent}.rs"],"message":null}}}}"#
    );
    Request::post(port, "/publish", &body, 202)
}

fn blocked(port: u16, agent: usize) -> Request {
    let body = format!(
        r#"{{"type":"agent.blocked","agent_id":"feat-bench-{agent}","payload":{{"needs":"the parser's new signature","from":"feat-target"}}}}"#
    );
    Request::post(port, "/publish", &body, 202)
}

fn cells(table: &mut Table, door: Server, pong: Server) -> Result<()> {
    let port = door.at.port();
    for connections in CONNECTIONS {
        let requests = if connections == 1 { 2_000 } else { 6_400 };
        let cell = |what, requests| Cell { what, connections, requests, rounds: ROUNDS, send: persistent };
        cell("POST /publish, agent.status", requests / 2)
            .measure(table, door, pong, |agent| status(port, agent))?;
        cell("POST /publish, agent.blocked", requests / 2)
            .measure(table, door, pong, |agent| blocked(port, agent))?;
        cell("GET /status", requests).measure(table, door, pong, |_| Request::get(port, "/status"))?;
        cell("GET /messages/… that finds nothing", requests).measure(table, door, pong, |agent| {
            Request::get(port, &format!("/messages/feat-bench-{agent}?since=999999999"))
        })?;
    }
    Ok(())
}

fn memory(table: &mut Table, daemon: &Daemon, door: Server) -> Result<()> {
    let before = resident_kib(daemon.pid())?;
    let magazine = |agent| (0..=MANY / 64).map(|_| status(door.at.port(), agent)).collect();
    persistent(door, (0..64).map(magazine).collect())?;
    let after = resident_kib(daemon.pid())?;
    table.note(&format!("\nResident memory: {before} KiB before, {after} KiB after {MANY} messages more.\n"))
}

/// What a door answers from ever longer histories.
fn stored(table: &mut Table) -> Result<()> {
    table.ratios(ROUNDS)?;
    let world = World::new()?;
    world.start()?.0.stop()?;
    let (mut there, mut resident) = (0, Vec::new());
    let mut first: Option<Vec<(Rounds, Rounds)>> = None;
    for count in STORED {
        fill(&world, count - there)?;
        there = count;
        let (daemon, _) = world.start()?;
        let (door, last) = (at(&daemon)?, last_seq(at(&daemon)?)?);
        let port = door.at.port();
        let asked = [
            (
                "GET /messages/… that finds nothing",
                Request::get(port, &format!("/messages/feat-target?since={last}")),
            ),
            (
                "GET /messages/… that finds the newest",
                Request::get(port, &format!("/messages/feat-target?since={}", last - 1)),
            ),
            (
                "GET /messages/… that finds the newest ten",
                Request::get(port, &format!("/messages/feat-target?since={}", last - 10)),
            ),
            ("GET /log, the newest", Request::get(port, &format!("/log?since={}", last - 1))),
            ("GET /status", Request::get(port, "/status")),
            ("POST /publish", status(port, 0)),
        ];
        let rows = asked.iter().map(|(_, it)| alone(door, it)).collect::<Result<Vec<_>>>()?;
        resident.push(format!("{} KiB with {count}", resident_kib(daemon.pid())?));
        daemon.stop()?;
        let Some(few) = &first else {
            first = Some(rows);
            continue;
        };
        for (((what, _), (clock, cost)), (few_clock, few_cost)) in asked.iter().zip(&rows).zip(few.iter()) {
            let what = format!("{what}, of {count} stored, to that of {}", STORED[0]);
            table.ratio(&what, Unit::Microseconds, clock, few_clock)?;
            table.ratio("… daemon's processor time", Unit::Microseconds, cost, few_cost)?;
        }
    }
    table.note(&format!("\nResident memory after these: {}.", resident.join(", ")))
}

/// One after the other over one connection: time and processor time of each, in microseconds.
fn alone(door: Server, request: &Request) -> Result<(Rounds, Rounds)> {
    let (mut clock, mut cost) = (Rounds::default(), Rounds::default());
    run(async {
        let mut line = Line::to(door).await?;
        for round in 0..=ROUNDS {
            let (begun, before) = (Instant::now(), processor_ns(door.pid)?);
            for _ in 0..POLLS {
                line.ask(request).await?;
            }
            if round > 0 {
                clock.push(begun.elapsed().as_secs_f64() * 1e6 / POLLS as f64);
                cost.push(processor_ns(door.pid)?.saturating_sub(before) as f64 / 1e3 / POLLS as f64);
            }
        }
        Ok(())
    })?;
    Ok((clock, cost))
}

/// The number of the newest message in the inbox.
fn last_seq(door: Server) -> Result<u64> {
    run(async {
        let mut line = Line::to(door).await?;
        // A poll's page ends where it has enough; the log begins with the newest page.
        let answer = line.ask(&Request::get(door.at.port(), "/log")).await?;
        let answer: serde_json::Value = serde_json::from_slice(answer)?;
        let last = answer["last_seq"].as_u64().context("an answer without last_seq")?;
        ensure!(last > 10, "the log is nearly empty: {last}");
        Ok(last)
    })
}

/// Publishes messages as the daemon's engine does, many with each commit.
fn fill(world: &World, more: usize) -> Result<()> {
    let mut store = open(&world.state_dir()?, Options::default())?;
    let loaded = store.load(Settings::new(AgentId::parse("client:approver")?))?;
    let mut core = Core::new(loaded.state, Box::new(builtin("open").context("rules that are built in")?));
    let who = caller("feat-sender", Door::Broker, &[Scope::Coordinate], Proof::PeerUid);
    let begun = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let now = Timestamp(i64::try_from(begun.as_millis())?);
    let mut publish = |post, out: &mut Outbox| {
        let call =
            Call { now, wall: now, who: &who, facts: Facts::default(), past: None, earlier: Vec::new() };
        let done = core.apply(call, Publish { post, source: Source::Client }.into(), out);
        done.map(drop).map_err(|err| anyhow::anyhow!("a message was refused: {err}"))
    };
    let mut out = Outbox::default();
    publish(status_of("feat-target")?, &mut out)?;
    store.commit(&out)?;
    let mut left = more;
    while left > 0 {
        let mut out = Outbox::default();
        for _ in 0..BATCH.min(left) {
            let post = Post::Blocked {
                agent: AgentId::parse("feat-sender")?,
                needs: "the parser's new signature".into(),
                from: "feat-target".into(),
            };
            publish(post, &mut out)?;
        }
        left -= BATCH.min(left);
        store.commit(&out)?;
    }
    Ok(store.close()?)
}

/// What gives an agent an inbox.
fn status_of(agent: &str) -> Result<Post> {
    Ok(Post::Status {
        agent: AgentId::parse(agent)?,
        status: "working".into(),
        files: Vec::new(),
        message: None,
        cli: None,
        phase: None,
        detail: None,
    })
}
