//! What a notification hook costs: its release by an ACK, and two hundred of them at once.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World, fresh};

/// ACKs, and crowds of hooks.
const ACKS: usize = 200;
const CROWDS: usize = 5;
const CROWD: usize = 200;
/// As many at once on both sides.
const AT_ONCE: usize = 64;
/// How long anything here may take.
const WAIT_MAX: Duration = Duration::from_secs(60);

const DELEGATE: &str = r#"{"return_to":"bench:0","task":{"action":"devit_delegate","goal":"notify"}}"#;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    fs::create_dir(world.path("out"))?;
    // Released by the marker, so that it ends; who is measured waits at the socket.
    let waits = "until [ -e \"$DEVIT_ACK_MARKER\" ]; do sleep 0.05; done";
    let script = format!(
        "[ \"$DEVIT_NOTIFY_STATUS\" = crowd ] && exec true > {0}/$PROVOST_EFFECT_ID\n\
         echo \"$DEVIT_ACK_SOCKET\" > {0}/new && mv {0}/new {0}/$DEVIT_NOTIFY_TASK_ID; {waits}\n",
        world.path("out").display()
    );
    fs::write(world.path("hook.sh"), script)?;
    let config = format!(
        "[hooks.notify]\ncommand = \". '{}'\"\n[limits]\nhooks = {AT_ONCE}\n",
        world.path("hook.sh").display()
    );
    let path = world.path("home/.config/provost/provost.toml");
    fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)?
        .write_all(config.as_bytes())?;
    let (daemon, _) = world.start()?;
    acks(table, &world, &daemon)?;
    crowds(table, &world, &daemon)?;
    daemon.stop()
}

/// From the first byte of the ACK's frame to the byte that releases, against a byte between two threads.
fn acks(table: &mut Table, world: &World, daemon: &Daemon) -> Result<()> {
    let mut line = UnixStream::connect(&daemon.socket)?;
    let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
    let (mut here, mut there) = UnixStream::pair()?;
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
    });
    for _ in 0..ACKS {
        let task = fresh("9c41e0b7-52d8-4f6e-a1b3");
        say(&mut line, &daemon.frame_named("DELEGATE", &task, "bench:0", "bench:w", DELEGATE))?;
        say(&mut line, &daemon.frame("NOTIFY", "bench:w", "orchestrator", &word(&task, "completed")))?;
        let told = world.path("out").join(&task);
        until(|| told.exists())?;
        let mut waits = UnixStream::connect(fs::read_to_string(&told)?.trim())?;
        let ack = daemon.frame("NOTIFY", "bench:0", "orchestrator", &word(&task, "ack"));
        let begun = Instant::now();
        line.write_all(&ack)?;
        let mut byte = [0];
        waits.read_exact(&mut byte)?;
        ours.push(begun.elapsed().as_secs_f64() * 1e6);
        ensure!(byte == [1], "released by {byte:?}");
        answered(&mut line)?;

        let begun = Instant::now();
        here.write_all(&byte)?;
        here.read_exact(&mut byte)?;
        floor.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    drop(here);
    echo.join().ok();
    table.ratios(ACKS)?;
    table.ratio(
        "ACK frame to released hook, to a byte there and back between threads",
        Unit::Microseconds,
        &ours,
        &floor,
    )
}

/// From the first word to the last hook's end, against as many plain children, of `true` and of the login shell.
fn crowds(table: &mut Table, world: &World, daemon: &Daemon) -> Result<()> {
    let mut line = UnixStream::connect(&daemon.socket)?;
    let task = fresh("9c41e0b7-52d8-4f6e-a1b3");
    say(&mut line, &daemon.frame_named("DELEGATE", &task, "bench:0", "bench:w", DELEGATE))?;
    let (mut ours, mut plain, mut shells) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..CROWDS {
        let before = count(&world.path("out"))?;
        let frames: Vec<_> = (0..CROWD)
            .map(|_| daemon.frame("NOTIFY", "bench:w", "orchestrator", &word(&task, "crowd")))
            .collect();
        let begun = Instant::now();
        for frame in &frames {
            say(&mut line, frame)?;
        }
        until(|| count(&world.path("out")).is_ok_and(|now| now >= before + CROWD))?;
        ours.push(begun.elapsed().as_secs_f64() * 1e3);
        plain.push(children(&["/bin/true"])?);
        shells.push(children(&["/bin/bash", "-lc", "true"])?);
    }
    table.ratios(CROWDS)?;
    let what = |floor| format!("{CROWD} hooks, to {CROWD} plain children, {floor}");
    table.ratio(&what("`true`"), Unit::Milliseconds, &ours, &plain)?;
    table.ratio(&what("`bash -lc true`"), Unit::Milliseconds, &ours, &shells)
}

/// Starts and collects as many children, no more at once than hooks.
fn children(line: &[&str]) -> Result<f64> {
    let begun = Instant::now();
    let mut left = CROWD;
    while left > 0 {
        let some = left.min(AT_ONCE);
        let spawn = |_| Command::new(line[0]).args(&line[1..]).stdin(Stdio::null()).spawn();
        let running: Vec<_> = (0..some).map(spawn).collect::<std::io::Result<_>>()?;
        for mut child in running {
            ensure!(child.wait()?.success(), "{line:?} fails");
        }
        left -= some;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

fn word(task: &str, status: &str) -> String {
    format!(r#"{{"artifacts":{{"summary":"bench"}},"status":"{status}","task_id":"{task}"}}"#)
}

fn say(line: &mut UnixStream, frame: &[u8]) -> Result<()> {
    line.write_all(frame)?;
    answered(line)
}

fn answered(line: &mut UnixStream) -> Result<()> {
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(b"\n") {
        let read = line.read(&mut buffer)?;
        ensure!(read > 0, "the daemon hung up");
        answer.extend_from_slice(&buffer[..read]);
    }
    let text = String::from_utf8_lossy(&answer);
    ensure!(text.contains("\"ACK\""), "{text}");
    Ok(())
}

fn count(folder: &Path) -> Result<usize> {
    Ok(fs::read_dir(folder)?.count())
}

fn until(condition: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !condition() {
        ensure!(begun.elapsed() < WAIT_MAX, "a hook did not come");
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(())
}
