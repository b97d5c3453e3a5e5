//! What it takes to be let in over loopback HTTP: a connection, and the kernel's word on who is behind it.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use provost::auth::loopback::LoopbackPeer;

use crate::http::{Cell, PONG_ROLE, Request, Server, connecting, started};
use crate::table::{Rounds, Table, Unit};
use crate::world::World;

const ROUNDS: usize = 9;
/// Questions of one round.
const QUESTIONS: usize = 2_000;
/// Connections that are open while the kernel is asked about one of them.
const OPEN: [usize; 3] = [1, 100, 1_000];

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let (daemon, _) = world.start()?;
    let port = daemon.port("agent_protocol")?;
    let (_helper, pong) = started(PONG_ROLE, &world.path("pong.port"))?;
    table.ratios(ROUNDS)?;
    for (connections, requests) in [(1, 1_000), (16, 2_000)] {
        let what = "GET /status, a connection for each";
        let cell = Cell { what, connections, requests, rounds: ROUNDS, send: connecting };
        cell.measure(table, Server::new(port, daemon.pid()), pong, |_| Request::get(port, "/status"))?;
    }
    let mut first: Option<Rounds> = None;
    for open in OPEN {
        let rounds = questions(open)?;
        let alone = first.get_or_insert_with(|| rounds.clone()).clone();
        let what = format!("asking the kernel for a peer, connections open: {open}, to that with one");
        table.ratio(&what, Unit::Microseconds, &rounds, &alone)?;
    }
    Ok(())
}

/// What one question takes, asked as a door asks it.
fn questions(open: usize) -> Result<Rounds> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let at = listener.local_addr()?;
    let pair = |_| -> Result<_> { Ok((TcpStream::connect(at)?, listener.accept()?)) };
    let all = (0..open).map(pair).collect::<Result<Vec<_>>>()?;
    let (_, (_, peer)) = all.get(open / 2).context("there is no connection")?;
    let mut rounds = Rounds::default();
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        for _ in 0..QUESTIONS {
            LoopbackPeer::of(*peer, at).map_err(|_| anyhow!("the kernel does not say who has connected"))?;
        }
        if round > 0 {
            rounds.push(begun.elapsed().as_secs_f64() * 1e6 / QUESTIONS as f64);
        }
    }
    Ok(rounds)
}
