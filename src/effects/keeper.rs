//! The process between the daemon and a hook, so that nothing of a hook outlives it.
//!
//! ```text
//!   daemon --pipe--> keeper --> hook --> whatever it starts
//! ```
//! What a hook starts and leaves behind becomes the keeper's child; when the hook ends, or the pipe does (its time
//! is over, or the daemon was killed), the keeper kills all of it and ends with the hook's exit code. Elsewhere than
//! on Linux, where orphans cannot be kept, the hook's process group is what is killed.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, setsid, wait};

use crate::base::limits::HOOK_END_MS_MAX;

/// The hidden command under which this executable is a keeper; the hook's own command line follows.
pub(super) const ARGUMENT: &str = "__hook";

/// Where programs are, for a daemon that was not told.
pub(super) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Names that hooks get from the daemon's environment, beside those that they get everywhere.
pub(super) const TAKEN_OVER_TOO: &[&str] = &[];

/// The shells that can be had, the better one first. DevIt 1.9: `bash -lc`.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// The command that carries out a hook's line.
pub(super) fn shell(line: &str) -> Vec<OsString> {
    let shell = SHELLS.iter().find(|shell| std::path::Path::new(shell).exists()).unwrap_or(&SHELLS[1]);
    vec![shell.into(), "-lc".into(), line.into()]
}

/// As shells count a program that cannot be started.
const NOT_STARTED: i32 = 127;

/// Becomes a keeper if the daemon has started this process as one; does not come back then.
pub fn keep_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == ARGUMENT) {
        let line: Vec<OsString> = args.collect();
        std::process::exit(keep(&line));
    }
}

fn keep(line: &[OsString]) -> i32 {
    let Some((program, args)) = line.split_first() else { return NOT_STARTED };
    // Fails only for one that leads a session already. Without a terminal, nothing in it can pass for a person.
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
    std::thread::spawn(move || {
        // Nothing is ever sent; the end of it is the order.
        let _ended = std::io::stdin().read(&mut [0]);
        end_all(group);
        std::process::exit(128 + Signal::KILL.as_raw());
    });
    let code = hook.wait().map_or(NOT_STARTED, code_of);
    end_all(group);
    code
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Kills until nothing is left, at most so long.
fn end_all(group: Pid) {
    let until = Instant::now() + Duration::from_millis(HOOK_END_MS_MAX);
    while Instant::now() < until {
        // Its number is not given away as long as anything in it lives.
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

/// Processes whose parent we are, or have become.
#[cfg(target_os = "linux")]
fn children() -> Vec<Pid> {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let parent_of = |pid: i32| {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may contain anything; the last one closes it, state and parent follow.
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        String::from_utf8_lossy(&text[after..]).split_ascii_whitespace().nth(1)?.parse::<i32>().ok()
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(us)).filter_map(Pid::from_raw).collect()
}

/// Standard error is the daemon's to read.
fn complain(text: &str) {
    use std::io::Write as _;
    let _nobody_reads = writeln!(std::io::stderr(), "{text}");
}
