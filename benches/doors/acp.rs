//! `provost acp` between an editor and its agent: a message there and back, through it to an agent that says everything again, and
//! to the same agent over plain pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::table::{Rounds, Table, Unit};
use crate::world::{World, provost};

/// Messages there and back, one at a time, on each side by turns.
const MESSAGES: usize = 3_000;
/// Those of them that do not count, with everything cold.
const COLD: usize = 100;

/// What says everything again.
const AGENT: &str = "/bin/cat";

struct Pipe {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Pipe {
    fn begun(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let to = child.stdin.take().context("a pipe to it")?;
        let from = BufReader::new(child.stdout.take().context("a pipe from it")?);
        Ok(Self { child, to, from, line: Vec::new() })
    }

    /// How long a line takes there and back, in microseconds.
    fn there_and_back(&mut self, line: &[u8]) -> Result<f64> {
        let begun = Instant::now();
        self.to.write_all(line)?;
        self.line.clear();
        self.from.read_until(b'\n', &mut self.line)?;
        let took = begun.elapsed().as_secs_f64() * 1e6;
        ensure!(self.line == line, "it came back as another one");
        Ok(took)
    }

    fn end(mut self) -> Result<()> {
        drop(self.to);
        self.child.wait()?;
        Ok(())
    }
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let mut command = Command::new(provost());
    command.args(["acp", "--", AGENT]).current_dir(world.path("repo")).env_clear();
    command.env("HOME", world.path("home")).env("XDG_RUNTIME_DIR", world.path("run")).env("USER", "bench");
    let mut ours = Pipe::begun(&mut command)?;
    let mut floor = Pipe::begun(&mut Command::new(AGENT))?;
    table.ratios(MESSAGES)?;
    let text = "a line of what an agent says to its person\n".repeat(20);
    let call = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "kind": "edit", "rawInput": { "text": text } });
    let words = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a few words" } });
    let mut added = Vec::new();
    for (what, update) in [("a few words of an agent", words), ("an update of a call, 1 KB", call)] {
        let params = json!({ "sessionId": "9c41e0b7-52d8-4f6e-a1b3-000000000000", "update": update });
        let message = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        let line = format!("{message}\n").into_bytes();
        let (mut through, mut plain) = (Rounds::default(), Rounds::default());
        for at in 0..MESSAGES + COLD {
            let (one, other) = (ours.there_and_back(&line)?, floor.there_and_back(&line)?);
            if at >= COLD {
                through.push(one);
                plain.push(other);
            }
        }
        let added_us = (through.median() - plain.median()) / 2.0;
        added.push(format!("{added_us:.0} µs to {what}"));
        table.ratio(
            &format!("{what}, there and back, to plain pipes"),
            Unit::Microseconds,
            &through,
            &plain,
        )?;
    }
    table.note(&format!("\nAdded to one message by `provost acp`, median: {}.", added.join(", ")))?;
    ours.end()?;
    floor.end()
}
