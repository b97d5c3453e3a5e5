//! What a daemon does to protect itself, and to end the processes of a jail whose supervisor was killed.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal};

use super::{process_tree, sys};
use crate::machine::{Facts, GroupFacts};
use provost_base::limits::JAIL_END_MS_MAX;

use super::groups;
use super::limits::NO_CORE;

/// Makes the daemon's memory, descriptors and environment unreadable for other processes of the same user, and
/// keeps them out of core files. Called once, at start.
///
/// # Errors
/// The system's, if it refuses; the daemon should not go on then.
pub fn harden_daemon() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // The jail of a worker can raise no limit that is lower here.
    let had = rustix::process::getrlimit(Resource::Core).maximum.unwrap_or(u64::MAX);
    let most = Some(NO_CORE.min(had));
    Ok(rustix::process::setrlimit(Resource::Core, Rlimit { current: most, maximum: most })?)
}

/// Lets what a killed supervisor leaves behind come to this process, where [`sweep_orphans`] finds it. Called
/// once, at start.
///
/// # Errors
/// The system's, if it refuses.
pub fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Kills what a killed supervisor of tier `ll` has left behind, and answers how many processes that were.
///
/// They are recognised by what they cannot take off: children of ours that have no way to new privileges and
/// obey the programs of a worker's system call filter. Supervisors do not, nor do other programs that the
/// daemon starts. Takes as long as
/// it takes until none is left, at most [`JAIL_END_MS_MAX`]; not to be called on a thread that others wait for.
pub fn sweep_orphans() -> u32 {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let Some((ours, _)) = bonds(us) else { return 0 };
    let limit = Instant::now() + Duration::from_millis(JAIL_END_MS_MAX);
    let mut swept = 0;
    while Instant::now() < limit {
        let all = process_tree::processes();
        let orphans: Vec<_> = all.iter().filter(|p| p.parent == us && is_jailed(p.pid, ours)).collect();
        if orphans.is_empty() {
            break;
        }
        for orphan in orphans {
            // First those below, which would otherwise come up as new orphans.
            for process in process_tree::descendants(orphan.pid, &all) {
                let _gone = sys::signal(process.pid, libc::SIGKILL);
            }
            if !orphan.is_zombie {
                let _gone = sys::signal(orphan.pid, libc::SIGKILL);
            }
            if let Ok(Some(_)) = sys::collect(orphan.pid) {
                swept += 1;
            }
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    swept
}

/// The process with which a jail ends, by a handle that never comes to mean another one.
#[derive(Debug)]
pub(crate) struct First {
    pid: Pid,
    handle: OwnedFd,
}

impl First {
    /// Takes hold of it. `None` when it has ended and was collected already.
    pub(crate) fn hold(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid, handle })
    }

    /// Kills it and waits until it has ended: the first process of a process namespace ends after all others in
    /// it. To be called when its supervisor is gone, so that it is ours to collect, or init's.
    pub(crate) fn end(self) {
        let _gone = rustix::process::pidfd_send_signal(&self.handle, Signal::KILL);
        let most = Timespec { tv_sec: (JAIL_END_MS_MAX / 1000).cast_signed(), tv_nsec: 0 };
        let _late = poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&most));
        let _not_ours = sys::collect(self.pid.as_raw_nonzero().get());
    }
}

/// Programs of the filter that a worker obeys, on top of those that it was born with.
const FILTERS_OF_A_WORKER: u64 = 3;

/// How many system call filters a process obeys, and whether it is kept from new privileges.
fn bonds(pid: i32) -> Option<(u64, bool)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((field("Seccomp_filters:")?, field("NoNewPrivs:")? == 1))
}

/// More filters than this process obeys itself. The daemon may live in a container that has some already, and
/// all that it starts has them, too.
fn is_jailed(pid: i32, ours: u64) -> bool {
    bonds(pid).is_some_and(|(filters, kept)| kept && filters >= ours + FILTERS_OF_A_WORKER)
}

/// What the running kernel says about itself.
pub(crate) fn host_facts() -> Facts {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_string()).ok();
    let groups = match groups::look() {
        Err(why) => GroupFacts::None(why),
        Ok(found) => match found.walls() {
            Some(walls) => GroupFacts::Walls(walls),
            None => GroupFacts::EndOnly(found.why_no_walls().into()),
        },
    };
    Facts {
        kernel: read("/proc/sys/kernel/osrelease"),
        landlock_abi: sys::landlock_abi(),
        seccomp_actions: read("/proc/sys/kernel/seccomp/actions_avail"),
        groups,
        inotify: Some(super::newcomers::has_room()),
        seatbelt: false,
        job: None,
    }
}
