//! What the hook of a write costs a host: one program for each write, which takes a lease in a file of a thousand lines.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::table::{Rounds, Table, Unit};
use crate::world::{World, provost};

/// A list of writes. Each write changes a different function from the previous write.
const WRITES: usize = 300;
/// Functions of five lines in the file.
const FUNCTIONS: usize = 200;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let file = world.path("repo/long.ts");
    fs::write(&file, text())?;
    let (daemon, _) = world.start()?;
    let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
    // The first one finds a daemon that has read nothing yet.
    let cold = write(&world, 0)?;
    for round in 0..WRITES {
        ours.push(write(&world, round % FUNCTIONS)?);
        let begun = Instant::now();
        ensure!(Command::new("/bin/true").status()?.success(), "a program that does nothing fails");
        floor.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    table.ratios(WRITES)?;
    table.ratio("a write's hook, to a program that does nothing", Unit::Milliseconds, &ours, &floor)?;
    let mut sorted = ours.0.clone();
    sorted.sort_by(f64::total_cmp);
    let p99 = sorted.get(WRITES * 99 / 100).copied().unwrap_or_default();
    let longest = sorted.last().copied().unwrap_or_default().max(cold);
    table.note(&format!("p99 {p99:.1} ms, longest {longest:.1} ms, the first one {cold:.1} ms"))?;
    daemon.stop()?;
    among_others(table)
}

/// The same in a file in which other agents hold each other function: all of it is looked at for each write.
fn among_others(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    fs::write(world.path("repo/long.ts"), text())?;
    let (daemon, _) = world.start()?;
    for function in (1..FUNCTIONS).step_by(2) {
        lock(&world, function)?;
    }
    let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
    for round in 0..WRITES {
        ours.push(write(&world, round * 2 % FUNCTIONS)?);
        let begun = Instant::now();
        ensure!(Command::new("/bin/true").status()?.success(), "a program that does nothing fails");
        floor.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    table.ratios(WRITES)?;
    let what = format!(
        "the same where others hold {} functions of the file, to a program that does nothing",
        FUNCTIONS / 2
    );
    table.ratio(&what, Unit::Milliseconds, &ours, &floor)?;
    let mut sorted = ours.0.clone();
    sorted.sort_by(f64::total_cmp);
    let p99 = sorted.get(WRITES * 99 / 100).copied().unwrap_or_default();
    table.note(&format!("p99 {p99:.1} ms, longest {:.1} ms", sorted.last().copied().unwrap_or_default()))?;
    daemon.stop()
}

/// Has another agent lock a function.
fn lock(world: &World, function: usize) -> Result<()> {
    let mut lock = Command::new(provost());
    // An agent has no more locks than so many.
    let agent = format!("other-{}", function % 10);
    lock.args(["lock", "acquire", &format!("long.ts:f{function}"), "--as", &agent]);
    lock.current_dir(world.path("repo")).env_clear().env("HOME", world.path("home"));
    lock.env("PATH", "/usr/bin:/bin").env("XDG_RUNTIME_DIR", world.path("run"));
    let done = lock.stdin(Stdio::null()).output()?;
    ensure!(done.status.success(), "another agent gets no lock: {done:?}");
    Ok(())
}

fn text() -> String {
    let mut text = String::new();
    for number in 0..FUNCTIONS {
        let _never_fails = write!(
            text,
            "export function f{number}(a: number): number {{\n  const b = a + {number}\n  return b\n}}\n\n"
        );
    }
    text
}

/// Calls the hook as Claude Code does before an edit; how long that takes, in milliseconds.
fn write(world: &World, function: usize) -> Result<f64> {
    let told = serde_json::json!({
        "session_id": "5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c001", "cwd": world.path("repo"),
        "hook_event_name": "PreToolUse", "tool_name": "Edit",
        "tool_input": {
            "file_path": world.path("repo/long.ts"),
            "old_string": format!("  const b = a + {function}\n"), "new_string": format!("  const b = {function}\n"),
        },
    });
    let mut hook = Command::new(provost());
    hook.args(["hook", "run", "claude", "pre-tool-use"]).current_dir(world.path("repo"));
    hook.env_clear().env("HOME", world.path("home")).env("PATH", "/usr/bin:/bin");
    hook.env("XDG_RUNTIME_DIR", world.path("run"));
    let begun = Instant::now();
    let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut to) = hook.stdin.take() {
        to.write_all(told.to_string().as_bytes())?;
    }
    let said = hook.wait_with_output()?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    ensure!(said.status.success() && said.stdout.is_empty(), "the hook objects: {said:?}");
    Ok(took)
}
