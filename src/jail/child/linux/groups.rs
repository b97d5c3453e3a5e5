//! Control groups: walls around all processes of a worker together, if the system has delegated groups to us.
//!
//! Every worker gets a group of its own below the daemon's: `job-` and the number of its supervisor. Processes
//! are born into it and cannot leave. If the controllers for memory and numbers of processes are delegated,
//! the worker's limits are walls; in any case its processes are ended as one. If a promised group
//! cannot be made, the worker does not start.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, CWD, Mode, OFlags};

use super::about;
use crate::launch::{GROUPS_VARIABLE, Groups};
use crate::plan::{Plan, Tier};
use provost_base::limits::JAIL_END_MS_MAX;

/// The subgroup of the daemon itself, since a group that hands on controllers may hold no processes itself.
const OF_THE_DAEMON: &str = "daemon";

/// The prefix of the names of workers' groups.
const PREFIX: &str = "job-";

/// The controllers that the daemon uses.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The available delegation, found without changing anything.
pub(crate) struct Delegation {
    own: PathBuf,
    /// The controllers of [`CONTROLLERS`] that may be handed on.
    controllers: Vec<&'static str>,
    /// Whether only this process is in the group.
    alone: bool,
}

/// Examines the group of this process.
///
/// # Errors
/// A sentence with the reason why no groups can be made in it.
pub(crate) fn look() -> Result<Delegation, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (groups, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        after.starts_with("cgroup2 ").then_some((root, at))
    });
    let (Some(group), Some((root, at))) = (group, mount) else {
        return Err("this host has no control groups of the second version".into());
    };
    // A mount in a container may show only a part of the tree.
    let inside = group.strip_prefix(root.trim_end_matches('/')).unwrap_or(group);
    if inside.trim_matches('/').is_empty() {
        return Err("this process is in the system's own group, and none was delegated to this user".into());
    }
    Delegation::of(&Path::new(at).join(inside.trim_matches('/')))
}

impl Delegation {
    fn of(own: &Path) -> Result<Self, String> {
        let may_write = |name: &str| rustix::fs::access(own.join(name), Access::WRITE_OK).is_ok();
        if rustix::fs::access(own, Access::WRITE_OK).is_err() || !may_write("cgroup.procs") {
            return Err(format!("{} is not delegated to this user", own.display()));
        }
        if !own.join("cgroup.kill").exists() {
            return Err("the kernel cannot end a group as one; Linux 5.14 can".into());
        }
        let has = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
        let there = |wanted: &&str| has.split_whitespace().any(|controller| controller == *wanted);
        let controllers = match may_write("cgroup.subtree_control") {
            true => CONTROLLERS.into_iter().filter(|it| there(it)).collect(),
            false => Vec::new(),
        };
        let members = fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default();
        let us = std::process::id().to_string();
        let alone = members.split_whitespace().all(|member| member == us);
        Ok(Self { own: own.into(), controllers, alone })
    }

    /// Returns the names of the walls, for people; `None` if there will be no walls.
    pub(crate) fn walls(&self) -> Option<String> {
        (self.alone && !self.controllers.is_empty()).then(|| self.controllers.join(" and "))
    }

    /// Returns the reason why there will be no walls.
    pub(crate) fn why_no_walls(&self) -> &'static str {
        match self.controllers.is_empty() {
            true => "no controller for memory or processes is delegated to this user",
            false => "other processes are in the same group",
        }
    }

    /// Prepares for groups of workers. Called once, by a daemon, at its start: it may move the daemon into another group.
    fn prepare(self) -> io::Result<Groups> {
        sweep(&self.own);
        let mut handed_on = Vec::new();
        if self.alone && !self.controllers.is_empty() {
            let place = self.own.join(OF_THE_DAEMON);
            match fs::create_dir(&place) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(about(&place)(e)),
                _ => {}
            }
            tell(&place.join("cgroup.procs"), &std::process::id().to_string())?;
            let wanted: Vec<String> = self.controllers.iter().map(|it| format!("+{it}")).collect();
            tell(&self.own.join("cgroup.subtree_control"), &wanted.join(" "))?;
            handed_on = self.controllers;
        }
        let has = |name| handed_on.contains(&name);
        Ok(Groups { memory: has("memory"), processes: has("pids"), base: self.own })
    }
}

/// Prepares for groups of workers, if they are available.
pub(crate) fn prepare() -> Option<Groups> {
    let prepared = look().map_err(io::Error::other).and_then(Delegation::prepare);
    prepared.inspect_err(|why| tracing::info!(%why, "workers get no control groups")).ok()
}

/// Removes groups whose supervisors are gone.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let of = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if of.is_some_and(|supervisor| !Path::new(&format!("/proc/{supervisor}")).exists()) {
            remove(&entry.path());
        }
    }
}

/// Ends the processes that a killed supervisor has left in its group.
pub(crate) fn clear(groups: &Groups, supervisor: u32) {
    let path = groups.base.join(format!("{PREFIX}{supervisor}"));
    if path.exists() {
        remove(&path);
    }
}

/// Kills every process in a group and removes it, waiting at most [`JAIL_END_MS_MAX`].
fn remove(path: &Path) {
    let _empty = tell(&path.join("cgroup.kill"), "1");
    let until = Instant::now() + Duration::from_millis(JAIL_END_MS_MAX);
    while fs::remove_dir(path).is_err() && path.join("cgroup.procs").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn tell(path: &Path, word: &str) -> io::Result<()> {
    fs::write(path, word).map_err(about(path))
}

/// The group of one worker. Dropping it ends all processes in it and removes it.
pub(super) struct Group {
    path: PathBuf,
    walls: bool,
}

impl Group {
    /// Makes the group of a plan's worker and sets its limits, if the daemon has named a place for it.
    pub(super) fn of(plan: &Plan) -> io::Result<Option<Self>> {
        let Some(said) = std::env::var_os(GROUPS_VARIABLE) else { return Ok(None) };
        let groups: Groups = serde_json::from_slice(said.as_bytes())?;
        let path = groups.base.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(about(&path))?;
        let group = Self { path, walls: groups.memory || groups.processes };
        if groups.memory {
            tell(&group.path.join("memory.max"), &plan.limits.resident_bytes.to_string())?;
            tell(&group.path.join("memory.oom.group"), "1")?;
            // A kernel may count memory without swap; then there is no swap to forbid.
            let swap = group.path.join("memory.swap.max");
            if swap.exists() {
                tell(&swap, "0")?;
            }
        }
        if groups.processes {
            // The first process of the namespaces is in the group, too.
            let first = u64::from(plan.tier == Tier::Ns);
            tell(&group.path.join("pids.max"), &(u64::from(plan.limits.processes) + first).to_string())?;
        }
        Ok(Some(group))
    }

    /// Opens the group, so that a process can be born into it.
    pub(super) fn entrance(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, &self.path, flags, Mode::empty()).map_err(|e| about(&self.path)(e.into()))
    }

    /// Returns the group's line in the report of the layers.
    pub(super) fn layer(&self) -> String {
        if self.walls { "control group with walls" } else { "control group" }.into()
    }

    /// Checks whether the kernel has ended the worker for its memory.
    pub(super) fn was_over_memory(&self) -> bool {
        self.count("memory.events", "oom_kill") > 0
    }

    /// Checks whether the worker was kept from starting a process.
    pub(super) fn processes_reached(&self) -> bool {
        self.count("pids.events", "max") > 0
    }

    fn count(&self, file: &str, name: &str) -> u64 {
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        line.unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.path);
    }
}
