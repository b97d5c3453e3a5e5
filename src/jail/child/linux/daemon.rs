//! The daemon's own protection, and its means to end the processes of a jail whose supervisor was killed.
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
/// The system's error, if it refuses; the daemon should end then.
pub fn harden_daemon() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // The jail of a worker cannot raise a limit that is lower here.
    let had = rustix::process::getrlimit(Resource::Core).maximum.unwrap_or(u64::MAX);
    let most = Some(NO_CORE.min(had));
    Ok(rustix::process::setrlimit(Resource::Core, Rlimit { current: most, maximum: most })?)
}

/// Makes this process the parent of the orphans of a killed supervisor, so that [`sweep_orphans`] finds them. Called
/// once, at start.
///
/// # Errors
/// The system's error, if it refuses.
pub fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Kills the processes that a killed supervisor of tier `ll` has left behind, and returns their number.
///
/// They are recognised by two properties that they cannot lose: they are children of ours without a way to new privileges, and
/// they obey the programs of a worker's system call filter. Neither supervisors nor other programs of the
/// daemon have both. Blocks until none is left,
/// at most [`JAIL_END_MS_MAX`]; not to be called on a thread for which others wait.
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
            // Its descendants are killed first, since they would otherwise become new orphans.
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

/// The process with which a jail ends, by a handle that never comes to mean another process.
#[derive(Debug)]
pub(crate) struct First {
    pid: Pid,
    handle: OwnedFd,
}

impl First {
    /// Opens a handle for the process. `None` if it has ended and was collected already.
    pub(crate) fn hold(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { pid, handle })
    }

    /// Kills the process and waits until it has ended: the first process of a process namespace ends after all others in
    /// it. Must be called when its supervisor is gone, so that the daemon, or init, collects it.
    pub(crate) fn end(self) {
        let _gone = rustix::process::pidfd_send_signal(&self.handle, Signal::KILL);
        let most = Timespec { tv_sec: (JAIL_END_MS_MAX / 1000).cast_signed(), tv_nsec: 0 };
        let _late = poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&most));
        let _not_ours = sys::collect(self.pid.as_raw_nonzero().get());
    }
}

/// The number of filter programs that a worker obeys in addition to the inherited ones.
const FILTERS_OF_A_WORKER: u64 = 3;

/// Returns how many system call filters a process obeys, and whether it is kept from new privileges.
fn bonds(pid: i32) -> Option<(u64, bool)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some((field("Seccomp_filters:")?, field("NoNewPrivs:")? == 1))
}

/// Checks whether a process obeys a worker's filters in addition to this process's own. The daemon may live in a container that
/// has some already, and all its children have them, too.
fn is_jailed(pid: i32, ours: u64) -> bool {
    bonds(pid).is_some_and(|(filters, kept)| kept && filters >= ours + FILTERS_OF_A_WORKER)
}

/// Reads the running kernel's facts about itself.
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
