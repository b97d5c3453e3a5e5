//! Attempts to use up what others need. Each asks for a little more than the jail of this suite allows and
//! gives it back at once, so that all of them can be tried without a jail too.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use provost::jail::Tier;

use super::calls::{self, address, c, call, signed, text};
use super::intruder::{Attempt, Facts, Outcome, Own, by, open, shut};

/// The limits of the jails of this suite: see `stand_in`.
pub(super) const OPEN_FILES: u32 = 128;
pub(super) const FILE_BYTES: u64 = 64 << 20;
pub(super) const DATA_BYTES: u64 = 512 << 20;
pub(super) const TMP_BYTES: u64 = 8 << 20;
pub(super) const CPU_SECONDS: u64 = 60;

/// Among how many workers of a daemon they share what the kernel counts for a whole user.
pub(super) const WORKERS: u32 = 32;

/// The part of it that one of them has: half is left to the user.
const SHARE: u64 = 2 * WORKERS as u64;

/// Signals that may wait in a jail, where the user's part is not less.
const PENDING_SIGNALS: usize = 1_024;

/// Terminals that a jail has.
const TERMINALS: usize = 32;

/// Descriptors that one message carries.
const PER_MESSAGE: usize = 253;

/// Most processes. In `ll` the kernel counts what else this user runs, which other tests start and end
/// meanwhile.
pub(super) fn processes(tier: Tier) -> u32 {
    match tier {
        Tier::Ns => 48,
        Tier::Ll | Tier::Job => 160,
    }
}

/// Processes to start where a limit is expected: more than others of this user could end meanwhile.
pub(super) const FORKS_LIMITED: u32 = 2_000;

/// Processes to start where none is.
pub(super) const FORKS_UNLIMITED: u32 = 100;

/// In the order in which they are tried.
pub(super) const ATTEMPTS: &[Attempt] = &[
    ("res.file_size", file_size),
    ("res.tmp_fill", tmp_fill),
    ("res.fds", |_, _| {
        let held = (0..2 * OPEN_FILES).map_while(|_| call(libc::SYS_dup, [0]).ok()).count();
        more_than(held, OPEN_FILES as usize, "descriptors")
    }),
    ("res.fork_bomb", fork_bomb),
    ("res.memory", |_, _| {
        // Never touched, so that it costs nothing where it is given.
        let how = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
        let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        by(call(libc::SYS_mmap, [0, 2 * DATA_BYTES as usize, access, how, signed(-1), 0]), "given")
    }),
    // Not in the table of the first suite.
    ("res.locked_memory", |_, _| {
        let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let how = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let len = 1 << 20;
        let locked = call(libc::SYS_mmap, [0, len, access, how, signed(-1), 0])
            .and_then(|at| call(libc::SYS_mlock, [at, len]));
        by(locked, "locked")
    }),
    ("res.raise_limits", |_, _| {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let more = rustix::process::Rlimit { maximum: files.maximum.map(|most| most + 1), ..files };
        by(rustix::process::setrlimit(rustix::process::Resource::Nofile, more), "raised")
    }),
    ("res.cpu_time", |_, _| match rustix::process::getrlimit(rustix::process::Resource::Cpu).maximum {
        Some(seconds) if seconds <= CPU_SECONDS + 1 => shut(format!("{seconds} seconds")),
        _ => open("without end"),
    }),
    ("res.realtime", |_, _| {
        let mut priority = 1_i32;
        let (fifo, priority) = (libc::SCHED_FIFO as usize, calls::address(&mut priority));
        by(call(libc::SYS_sched_setscheduler, [0, fifo, priority]), "before everybody else")
    }),
    // What the kernel counts for a user, wherever the user's processes run.
    ("res.inotify_instances", |_, _| {
        let allowed = per_user("fs/inotify/max_user_instances") / SHARE;
        let held: Vec<OwnedFd> = (0..=allowed).map_while(|_| inotify().ok()).collect();
        more_than(held.len(), allowed as usize, "instances of inotify")
    }),
    ("res.inotify_watches", inotify_watches),
    ("res.pending_signals", |_, _| {
        let signal = libc::SIGRTMIN();
        calls::block(signal);
        let mut info = [0_i32; 32];
        // From this process, by sigqueue.
        (info[0], info[2]) = (signal, libc::SI_QUEUE);
        let queue = |_| {
            let to = std::process::id() as usize;
            call(libc::SYS_rt_sigqueueinfo, [to, signal as usize, address(&mut info)]).ok()
        };
        more_than((0..=PENDING_SIGNALS).map_while(queue).count(), PENDING_SIGNALS, "signals that wait")
    }),
    ("res.terminals", |_, _| {
        let make = |_| fs::OpenOptions::new().read(true).write(true).open("/dev/ptmx").ok();
        let held: Vec<File> = (0..2 * TERMINALS).map_while(make).collect();
        more_than(held.len(), TERMINALS, "terminals")
    }),
    ("res.descriptors_in_flight", |_, _| match in_flight(2 * (OPEN_FILES as usize + PER_MESSAGE)) {
        Ok(sent) => open(format!("{sent} descriptors that nobody has received")),
        Err(error) => shut(error),
    }),
];

/// A limit of the user's, as the host has it.
fn per_user(name: &str) -> u64 {
    fs::read_to_string(format!("/proc/sys/{name}")).unwrap().trim().parse().unwrap()
}

fn inotify() -> io::Result<OwnedFd> {
    call(libc::SYS_inotify_init1, [0]).map(calls::owned)
}

/// Each of its own file: two watches of one are one.
fn inotify_watches(f: &Facts, _: &Own) -> Outcome {
    let allowed = per_user("fs/inotify/max_user_watches") / SHARE;
    let folder = f.workspace.join("watched");
    let watch = || -> io::Result<usize> {
        let watcher = inotify()?;
        fs::create_dir_all(&folder)?;
        let one = |number: u64| {
            let path = folder.join(number.to_string());
            File::create(&path).ok()?;
            let (watcher, path) = (watcher.as_raw_fd() as usize, c(&path));
            call(libc::SYS_inotify_add_watch, [watcher, text(&path), libc::IN_ALL_EVENTS as usize]).ok()
        };
        Ok((0..=allowed).map_while(one).count())
    };
    let watched = watch();
    let _removed = fs::remove_dir_all(&folder);
    match watched {
        Ok(watched) => more_than(watched, allowed as usize, "watches"),
        Err(error) => shut(error),
    }
}

/// Sends descriptors to oneself and receives none of them.
fn in_flight(wanted: usize) -> io::Result<usize> {
    let mut sent = 0;
    let mut kept = Vec::new();
    while sent < wanted {
        let (here, there) = UnixStream::pair()?;
        sent += calls::send_descriptors(&here, PER_MESSAGE)?;
        kept.push((here, there));
    }
    Ok(sent)
}

fn more_than(got: usize, allowed: usize, what: &str) -> Outcome {
    if got > allowed { open(format!("{got} {what}")) } else { shut(format!("stopped at {got} {what}")) }
}

/// Nothing is written: a file with a hole of that size is as long.
fn file_size(f: &Facts, _: &Own) -> Outcome {
    calls::ignore(libc::SIGXFSZ);
    let path = f.workspace.join("large");
    let made = File::create(&path).and_then(|file| file.set_len(8 << 30));
    let _removed = fs::remove_file(path);
    by(made, "eight gigabytes")
}

fn tmp_fill(f: &Facts, _: &Own) -> Outcome {
    let block = vec![1; 1 << 20];
    let names: Vec<String> = (0..2).map(|n| format!("/tmp/fill-{}-{n}", f.daemon)).collect();
    let mut written = 0_u64;
    for name in &names {
        let Ok(mut file) = File::create(name) else { continue };
        written += (0..TMP_BYTES >> 20).map_while(|_| file.write_all(&block).ok()).count() as u64;
    }
    names.iter().for_each(|name| drop(fs::remove_file(name)));
    more_than(written as usize, (TMP_BYTES >> 20) as usize, "megabytes")
}

fn fork_bomb(f: &Facts, _: &Own) -> Outcome {
    let wait = || {
        calls::end_after(30);
        // Until it is killed.
        let _woken = call(libc::SYS_pause, []);
        0
    };
    let children: Vec<i32> = (0..f.forks).map_while(|_| calls::fork(wait).ok()).collect();
    for child in &children {
        let _gone = call(libc::SYS_kill, [signed(*child), libc::SIGKILL as usize]);
        calls::collect(*child);
    }
    more_than(children.len(), f.forks as usize - 1, "processes")
}
