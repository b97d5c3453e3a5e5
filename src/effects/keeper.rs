//! The process between the daemon and a hook, which makes sure that no process of a hook outlives it.
//!
//! ```text
//!   daemon --pipe--> keeper --> hook --> whatever it starts
//! ```
//! Orphans of a hook become the keeper's children. When the hook ends, or the pipe closes (its time is over, or the
//! daemon was killed), the keeper kills all of them and ends with the hook's exit code. When the keeper itself is
//! killed, the daemon kills them. Systems other than Linux cannot keep orphans; there the keeper kills the hook's
//! process group.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::process::waitpid;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, setsid, wait};

use provost_base::limits::HOOK_END_MS_MAX;

/// The hidden command under which this executable is a keeper; the hook's own command line follows.
pub(super) const ARGUMENT: &str = "__hook";

/// The default `PATH`, for a daemon that has none.
pub(super) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that hooks get from the daemon's environment, in addition to those of every system.
pub(super) const TAKEN_OVER_TOO: &[&str] = &[];

/// The possible shells, the preferred one first. DevIt 1.9: `bash -lc`.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// Returns the command that carries out a hook's line.
pub(super) fn shell(line: &str) -> Vec<OsString> {
    let shell = SHELLS.iter().find(|shell| std::path::Path::new(shell).exists()).unwrap_or(&SHELLS[1]);
    vec![shell.into(), "-lc".into(), line.into()]
}

/// The exit code by which shells report a program that cannot be started.
const NOT_STARTED: i32 = 127;

/// Becomes a keeper if the daemon has started this process as one; does not return then.
pub fn keep_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == ARGUMENT) {
        let line: Vec<OsString> = args.collect();
        std::process::exit(keep(&line));
    }
}

fn keep(line: &[OsString]) -> i32 {
    let Some((program, args)) = line.split_first() else { return NOT_STARTED };
    // This fails only for a process that leads a session already. Without a terminal, no process in it can pass for a person.
    let _leads = setsid();
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
        return NOT_STARTED;
    }
    let spawned = Command::new(program).args(args).stdin(Stdio::null()).process_group(0).spawn();
    let mut hook = match spawned {
        Ok(hook) => hook,
        Err(err) => {
            complain(&format!("{}: {err}", program.display()));
            return NOT_STARTED;
        }
    };
    let group = Pid::from_child(&hook);
    let minds = std::thread::Builder::new().name("orders".into()).spawn(move || {
        // The daemon never sends anything; the end of the pipe is the order.
        let _ended = std::io::stdin().read(&mut [0]);
        end_all(group);
        std::process::exit(128 + Signal::KILL.as_raw());
    });
    if let Err(err) = minds {
        // Without this thread, the daemon could not order the hook's end.
        complain(&format!("{}: {err}", program.display()));
        end_all(group);
        let _ended = hook.wait();
        return NOT_STARTED;
    }
    let code = hook.wait().map_or(NOT_STARTED, code_of);
    end_all(group);
    code
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Kills until no process is left, for at most [`HOOK_END_MS_MAX`].
fn end_all(group: Pid) {
    let until = Instant::now() + Duration::from_millis(HOOK_END_MS_MAX);
    while Instant::now() < until {
        // The group's number is not given away as long as a process in it lives.
        let _none_left = kill_process_group(group, Signal::KILL);
        #[cfg(target_os = "linux")]
        for child in children() {
            let _gone = rustix::process::kill_process(child, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the processes whose parent the keeper is, or has become.
#[cfg(target_os = "linux")]
fn children() -> Vec<Pid> {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    processes().filter(|it| it.parent == us).filter_map(|it| Pid::from_raw(it.pid)).collect()
}

#[cfg(target_os = "linux")]
struct Process {
    pid: i32,
    parent: i32,
    session: i32,
}

#[cfg(target_os = "linux")]
fn processes() -> impl Iterator<Item = Process> {
    let look_at = |pid: i32| {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may contain anything; the last one closes it. Behind it stand state,
        // parent, group and session.
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        let after = String::from_utf8_lossy(&text[after..]);
        let mut numbers = after.split_ascii_whitespace().skip(1).map(str::parse);
        let (parent, session) = (numbers.next()?.ok()?, numbers.nth(1)?.ok()?);
        Some(Process { pid, parent, session })
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(look_at)
}

/// Ends the processes that a killed keeper has left. Its orphans are the daemon's then. They are recognised by the keeper's
/// session, whose number no other process gets as long as one of them lives. The processes that they have started in other sessions
/// end after them. Blocks, at most for [`HOOK_END_MS_MAX`].
#[cfg(target_os = "linux")]
pub(super) fn end_orphans(keeper: u32) {
    let Ok(keeper) = i32::try_from(keeper) else { return };
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let until = Instant::now() + Duration::from_millis(HOOK_END_MS_MAX);
    let mut known = BTreeSet::new();
    while Instant::now() < until {
        let all: Vec<Process> = processes().collect();
        known.retain(|known| all.iter().any(|it| it.pid == *known));
        let left = |it: &&Process| it.parent == us && it.session == keeper && it.pid != keeper;
        known.extend(all.iter().filter(left).map(|it| it.pid));
        // Their children count in any session; with the end of their parents they become the daemon's, too.
        let below: Vec<i32> = all.iter().filter(|it| known.contains(&it.parent)).map(|it| it.pid).collect();
        known.extend(below);
        if known.is_empty() {
            return;
        }
        for pid in known.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _gone = rustix::process::kill_process(pid, Signal::KILL);
            // A process that is not the daemon's child yet will be in a later round.
            let _collected = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Does nothing: on other systems orphans never become children of the daemon.
#[cfg(not(target_os = "linux"))]
pub(super) fn end_orphans(_keeper: u32) {}

/// Writes to standard error, which the daemon reads.
fn complain(text: &str) {
    use std::io::Write as _;
    let _nobody_reads = writeln!(std::io::stderr(), "{text}");
}
