//! Finds the descendants of a process in `/proc`, and ends the last of them.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use super::sys;
use provost_base::limits::JAIL_END_MS_MAX;

/// Pause between two rounds of killing.
const PAUSE: Duration = Duration::from_micros(200);

/// One process, as `/proc/PID/stat` describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) is_zombie: bool,
    threads: u64,
    resident_pages: u64,
}

/// Returns every process that is visible.
pub(super) fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(look_at).collect()
}

fn look_at(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, so fields are counted from the last parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        threads: fields.get(17)?.parse().ok()?,
        resident_pages: fields.get(21)?.parse().ok()?,
    })
}

/// Returns all descendants of a process.
pub(super) fn descendants(of: i32, all: &[Process]) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let (mut found, mut open) = (Vec::new(), vec![of]);
    while let Some(next) = open.pop() {
        // Removing them from the map ends the loop even if pids were reused during the reading.
        for child in children.remove(&next).unwrap_or_default() {
            open.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// The sum over all descendants of this process.
pub(super) struct Usage {
    /// Memory, in bytes. Pages that several processes share count once for each, so that this is never too little.
    pub(super) resident_bytes: u64,
    /// The number of processes and threads.
    pub(super) tasks: u64,
}

/// Adds up the usage of all descendants of this process.
pub(super) fn usage() -> Usage {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let below = descendants(us, &processes());
    let page = sys::page_size();
    Usage {
        resident_bytes: below.iter().map(|process| process.resident_pages * page).sum(),
        tasks: below.iter().map(|process| process.threads.max(1)).sum(),
    }
}

/// Returns the memory of these processes, with shared pages divided among the processes that share them. Slower.
pub(super) fn proportional_bytes() -> u64 {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let page = sys::page_size();
    let own = |process: &Process| {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).ok()?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    let below = descendants(us, &processes());
    below.iter().map(|process| own(process).unwrap_or(process.resident_pages * page)).sum()
}

/// Counts the processes and threads of this user, over the whole host.
pub(super) fn tasks_of_this_user() -> io::Result<u64> {
    let uid = rustix::process::getuid().as_raw();
    let mut tasks = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // A process that has ended in the meantime does not count.
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        };
        if field("Uid:") == Some(u64::from(uid)) {
            tasks += field("Threads:").unwrap_or(1);
        }
    }
    Ok(tasks)
}

/// A worker without a process namespace, and all its descendants. Orphans become the supervisor's children.
pub(super) struct ProcessTree {
    worker: i32,
    status: Option<i32>,
    collected: u32,
}

impl ProcessTree {
    pub(super) fn new(worker: i32) -> Self {
        Self { worker, status: None, collected: 0 }
    }

    /// Returns the worker's raw status, once it has been collected.
    pub(super) fn workers_status(&self) -> Option<i32> {
        self.status
    }

    /// Returns the number of processes that were still there at the worker's end, without the worker.
    pub(super) fn swept(&self) -> u32 {
        self.collected
    }

    /// Collects ended children. False when no child is left.
    pub(super) fn collect(&mut self) -> bool {
        loop {
            match sys::collect(-1) {
                // The id of a collected worker may be reused by another process.
                Ok(Some((pid, status))) if pid == self.worker && self.status.is_none() => {
                    self.status = Some(status);
                }
                Ok(Some(_)) => self.collected += 1,
                Ok(None) => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Kills the remaining processes until none is left. Each round reaches every process in the signal scope at once,
    /// so that a process which forks faster than it can be looked up cannot escape.
    pub(super) fn end(&mut self) {
        self.collect();
        self.collected = 0;
        let limit = Instant::now() + Duration::from_millis(JAIL_END_MS_MAX);
        while Instant::now() < limit {
            sys::kill_everything_in_scope();
            if !self.collect() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}
