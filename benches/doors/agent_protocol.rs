//! Agent Protocol's door: questions, claims and events, streams to many readers, and what long logs change.

use std::collections::HashMap;

use anyhow::Result;

use crate::fanout::{FANOUT_ROLE, MARK, fan_out};
use crate::http::{Cell, Line, PONG_ROLE, Request, Server, persistent, run, started};
use crate::machine::resident_kib;
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World};

const ROUNDS: usize = 5;
const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// Readers of a stream, and how many events each gets.
const READERS: [(usize, usize); 2] = [(50, 200), (1_000, 20)];
/// Events over which memory is watched, and after which everything is measured again.
const MANY: usize = 100_000;
/// Readers that read nothing, and what they leave: events of so many bytes.
const STALLED: usize = 20;
const LARGE: (usize, usize) = (1_000, 12 << 10);

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let (daemon, _) = world.start()?;
    let door = Server::new(daemon.port("agent_protocol")?, daemon.pid());
    let (_pong, pong) = started(PONG_ROLE, &world.path("pong.port"))?;
    let (_fanout, fanout) = started(FANOUT_ROLE, &world.path("fanout.port"))?;
    // Before anything is measured, so that whoever is asked for is known.
    announce(door)?;
    let idle = resident_kib(daemon.pid())?;
    table.ratios(ROUNDS)?;
    cells(table, door, pong)?;
    streams(table, door, fanout)?;
    memory(table, &daemon, door, idle)?;
    table.ratios(ROUNDS)?;
    cells(table, door, pong)
}

fn announce(door: Server) -> Result<()> {
    run(async {
        let mut line = Line::to(door).await?;
        for agent in 0..64 {
            let body = format!(r#"{{"id":"bench-{agent}","tool":"bench"}}"#);
            line.ask(&Request::post(door.at.port(), "/agents/announce", &body, 201)).await?;
        }
        Ok(())
    })
}

fn event(port: u16, agent: usize, action: &str, metadata: &str) -> Request {
    let body = format!(r#"{{"agent_id":"bench-{agent}","action":"{action}","metadata":{metadata}}}"#);
    Request::post(port, "/events", &body, 201)
}

fn cells(table: &mut Table, door: Server, pong: Server) -> Result<()> {
    let port = door.at.port();
    for connections in CONNECTIONS {
        // Whoever says nothing for a minute counts as gone.
        announce(door)?;
        let requests = if connections == 1 { 2_000 } else { 6_400 };
        let cell = |what, requests| Cell { what, connections, requests, rounds: ROUNDS, send: persistent };
        cell("GET /status", requests).measure(table, door, pong, |_| Request::get(port, "/status"))?;
        cell("GET /events?limit=1", requests)
            .measure(table, door, pong, |_| Request::get(port, "/events?limit=1"))?;
        let mut claimed: HashMap<usize, bool> = HashMap::new();
        cell("POST claim and release, by turns", requests / 2).measure(table, door, pong, |agent| {
            let held = claimed.entry(agent).or_default();
            *held = !*held;
            let path = if *held { "/resources/claim" } else { "/resources/release" };
            let body = format!(r#"{{"path":"src/f{agent}.rs","agent_id":"bench-{agent}"}}"#);
            Request::post(port, path, &body, 200)
        })?;
        let note = r#"{"why":"the parser takes the last of two equal keys","lines":[1,2,3]}"#;
        cell("POST /events", requests / 2)
            .measure(table, door, pong, |agent| event(port, agent, "bench.note", note))?;
    }
    Ok(())
}

fn streams(table: &mut Table, door: Server, floor: Server) -> Result<()> {
    for (readers, events) in READERS {
        let (mut half, mut floor_half) = (Rounds::default(), Rounds::default());
        let (mut most, mut floor_most) = (Rounds::default(), Rounds::default());
        for round in 0..=ROUNDS {
            for (server, half, most) in
                [(door, &mut half, &mut most), (floor, &mut floor_half, &mut floor_most)]
            {
                let port = server.at.port();
                let tick = event(port, 0, MARK, "{}");
                let took = fan_out(server, readers, events, &Request::get(port, "/events/stream"), &tick)?;
                if round > 0 {
                    half.push(took[took.len() / 2]);
                    most.push(took[took.len() * 99 / 100]);
                }
            }
        }
        let what = format!("from POST to {readers} readers of the stream, p50, to a bare fan-out");
        table.ratio(&what, Unit::Milliseconds, &half, &floor_half)?;
        table.ratio("… p99", Unit::Milliseconds, &most, &floor_most)?;
    }
    Ok(())
}

fn memory(table: &mut Table, daemon: &Daemon, door: Server, idle: u64) -> Result<()> {
    let port = door.at.port();
    let before = resident_kib(daemon.pid())?;
    let magazine = |agent| (0..=MANY / 64).map(|_| event(port, agent, "bench.note", "{}")).collect();
    persistent(door, (0..64).map(magazine).collect())?;
    let after = resident_kib(daemon.pid())?;
    let held = run(async {
        let mut stalled = Vec::new();
        for _ in 0..STALLED {
            stalled.push(Line::to(door).await?.begin(&Request::get(port, "/events/stream")).await?);
        }
        let (count, bytes) = LARGE;
        let text = format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes));
        let mut line = Line::to(door).await?;
        for _ in 0..count {
            line.ask(&event(port, 0, "bench.large", &text)).await?;
        }
        resident_kib(daemon.pid())
    })?;
    table.note(&format!(
        "\nResident memory: {idle} KiB with 64 agents, {before} KiB after a thousand readers, {after} KiB after {MANY} \
         events more, {held} KiB with {STALLED} readers that have read nothing of {} MiB of events.\n",
        (LARGE.0 * LARGE.1) >> 20
    ))
}
