//! The most frequent message: a signed HEARTBEAT that finds nothing, against an echo that checks nothing.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::floor::ECHO_ROLE;
use crate::load::{Shot, connecting, persistent};
use crate::machine::processor_ns;
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, Helper, World};

const ROUNDS: usize = 9;

/// One way of sending, measured.
struct Cell {
    what: &'static str,
    connections: usize,
    messages: usize,
    send: fn(&Path, Vec<Vec<Shot>>) -> Result<Duration>,
}

const CELLS: [Cell; 5] = [
    Cell { what: "HEARTBEAT, 1 connection", connections: 1, messages: 8_000, send: persistent },
    Cell { what: "HEARTBEAT, 16 connections", connections: 16, messages: 24_000, send: persistent },
    Cell { what: "HEARTBEAT, 64 connections", connections: 64, messages: 24_000, send: persistent },
    Cell { what: "connection per message, 1 client", connections: 1, messages: 2_000, send: connecting },
    Cell { what: "connection per message, 16 clients", connections: 16, messages: 4_000, send: connecting },
];

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let (daemon, _) = world.start()?;
    let echo = world.path("echo.sock");
    let echo_process = Helper::listening(ECHO_ROLE, &echo)?;
    table.ratios(ROUNDS)?;
    for cell in CELLS {
        let (mut ours, mut floor) = (Both::default(), Both::default());
        // The first round finds every agent new and every buffer cold.
        for round in 0..=ROUNDS {
            let at_daemon = cell.round(&daemon.socket, daemon.pid(), &daemon)?;
            let at_echo = cell.round(&echo, echo_process.0.id(), &daemon)?;
            if round > 0 {
                ours.push(at_daemon);
                floor.push(at_echo);
            }
        }
        table.ratio(cell.what, Unit::PerSecond, &ours.rate, &floor.rate)?;
        table.ratio("… server's processor time a message", Unit::Microseconds, &ours.cost, &floor.cost)?;
    }
    Ok(())
}

/// Messages a second, and what one costs the server's processors in microseconds.
#[derive(Default)]
struct Both {
    rate: Rounds,
    cost: Rounds,
}

impl Both {
    fn push(&mut self, (rate, cost): (f64, f64)) {
        self.rate.push(rate);
        self.cost.push(cost);
    }
}

impl Cell {
    /// Rate and cost. Lines are signed anew for each round, before the clock runs.
    fn round(&self, socket: &Path, server: u32, daemon: &Daemon) -> Result<(f64, f64)> {
        let each = self.messages / self.connections;
        let magazine = |client: usize| {
            let from = format!("bench:{client}");
            (0..=each).map(|_| Shot::quiet(daemon.frame("HEARTBEAT", &from, "orchestrator", "{}"))).collect()
        };
        let magazines = (0..self.connections).map(magazine).collect();
        let before = processor_ns(server)?;
        let took = (self.send)(socket, magazines)?;
        let used = processor_ns(server)?.saturating_sub(before);
        let messages = (each * self.connections) as f64;
        Ok((messages / took.as_secs_f64(), used as f64 / 1_000.0 / messages))
    }
}
