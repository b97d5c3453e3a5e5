//! Checks the limits of a running worker for which the kernel has no wall of its own.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::growth::Growth;
use super::pipes::Pipes;
use super::process_tree;
use crate::bounds::Space;
use crate::control::Breach;
use crate::plan::{Plan, Tier};
use crate::root::ResolvedPath;

/// The number of ticks between two checks of all processes.
const TICKS_PER_LOOK: u32 = 10;

/// The part of every tick (a tenth of a second) that goes into walking directories.
const SHARE_OF_A_TICK: Duration = Duration::from_millis(5);

/// The same part if the kernel does not report new repositories.
const SHARE_OF_A_TICK_DEAF: Duration = Duration::from_millis(25);

/// The line about that case in the report of the layers.
const DEAF: &str =
    "new repositories are looked for by walks alone, since inotify has no room for all folders";

/// The watch of one worker.
pub(super) struct Watch<'a> {
    plan: &'a Plan,
    ceiling: u64,
    ticks: u32,
    workspace: Growth,
    temporary: Option<Growth>,
    processes_reached: bool,
}

impl<'a> Watch<'a> {
    /// Begins the watch, before the worker runs. `fixed` are directories that it cannot change; `scratch` is the folder for
    /// temporary files, if that is one of the host's.
    pub(super) fn new(
        plan: &'a Plan,
        ceiling: u64,
        fixed: BTreeSet<(u64, u64)>,
        scratch: Option<&Path>,
    ) -> io::Result<Self> {
        let limits = &plan.limits;
        let writable: Vec<PathBuf> = plan.writable.iter().map(|place| place.path().to_path_buf()).collect();
        // A directory inside of another one is walked with that one.
        let outermost =
            |path: &&PathBuf| !writable.iter().any(|other| *path != other && path.starts_with(other));
        let roots: Vec<PathBuf> = writable.iter().filter(outermost).cloned().collect();
        // A kept home has the bound of temporary files, to which other homes belong.
        let kept_home = plan.kept_home.as_ref().map(ResolvedPath::path);
        let temporary = scratch
            .or(kept_home)
            .map(|path| {
                let path = [path.to_path_buf()];
                Growth::of(path, BTreeSet::new(), limits.tmp_bytes, limits.growth_entries, (None, None))
            })
            .transpose()?;
        Ok(Self {
            plan,
            ceiling,
            ticks: 0,
            workspace: Growth::of(
                roots,
                fixed,
                limits.growth_bytes,
                limits.growth_entries,
                (plan.repositories.clone(), plan.repositories.as_ref().map(|_| Pipes::new(&plan.sockets))),
            )?,
            temporary,
            processes_reached: false,
        })
    }

    /// Checks the limits; must be called ten times a second. Returns the reason why the worker has to end, if it has to.
    pub(super) fn tick(&mut self) -> Option<Breach> {
        self.ticks = self.ticks.wrapping_add(1);
        self.workspace.hear();
        let share = if self.workspace.is_deaf() { SHARE_OF_A_TICK_DEAF } else { SHARE_OF_A_TICK };
        let until = Instant::now() + share;
        let space = self.workspace.look(until);
        if self.workspace.has_one_more_repository() {
            return Some(Breach::Repository);
        }
        if let Some(space) = space {
            return Some(Breach::Space(space));
        }
        if let Some(temporary) = &mut self.temporary
            && temporary.look(until).is_some()
        {
            return Some(Breach::Space(Space::Temporary));
        }
        if !self.ticks.is_multiple_of(TICKS_PER_LOOK) {
            return None;
        }
        let usage = process_tree::usage();
        self.processes_reached |= self.has_all_processes(usage.tasks);
        let most = self.plan.limits.resident_bytes;
        (usage.resident_bytes > most && process_tree::proportional_bytes() > most).then_some(Breach::Memory)
    }

    /// Returns the line about the watch for the report of the layers, if there is one.
    pub(super) fn layer(&self) -> Option<String> {
        self.workspace.is_deaf().then(|| DEAF.to_owned())
    }

    /// Checks the limits once more after the worker's end.
    pub(super) fn last_look(&mut self) -> Option<Breach> {
        let space = self.workspace.last_look();
        if self.workspace.has_one_more_repository() {
            return Some(Breach::Repository);
        }
        space.map(Breach::Space)
    }

    /// Checks whether the worker was seen with as many processes as it may have, so that it could not start more.
    pub(super) fn processes_reached(&self) -> bool {
        self.processes_reached
    }

    fn has_all_processes(&self, tasks: u64) -> bool {
        match self.plan.tier {
            Tier::Ns => tasks >= self.ceiling,
            // Other processes of this user count as well. They are counted only when the worker's own are many.
            Tier::Ll | Tier::Job => {
                tasks.saturating_mul(2) >= u64::from(self.plan.limits.processes)
                    && process_tree::tasks_of_this_user().is_ok_and(|all| all >= self.ceiling)
            }
        }
    }
}
