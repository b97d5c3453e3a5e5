//! Starts, follows and ends workers: the effects `SpawnWorker` and `StopWorker`.
//!
//! ```text
//!   [owed] --a place is free--> [prepared] --start on record--> [running] --> result on record
//!     |  |                          |                               |
//!     |  +-- daemon stops: stays owed, runs after the next start    +-- daemon stops or dies: lost
//!     +-- task is over meanwhile: settled                           +-- stopped: killed, then settled
//! ```
//! A start that is on record is not repeated: after a crash the task is reported lost. There is one exception, once for each run: an
//! agent that can go on with its session begins again in its private copy.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use super::acp::{Asker, Judge};
use super::agent_run::{Keep, WriteTree};
use super::door::OpenDoor;
use super::engine_handle::EngineHandle;
use super::interrupted_runs::{self, InterruptedRun};
use super::kept_sessions::KeptSessions;
use super::line::Line;
use super::prepare::RunEnvironment;
use super::read_only_paths::PlanPurpose;
use super::resume::lost;
use super::run::Once;
use super::shared_checkout::SharedCheckouts;
use super::tree_turns::TreeTurns;
use super::watcher::Watchers;
use super::work_tree_run::Withhold;
use provost_base::{AgentId, EffectId, TaskId};
use provost_domain::{PoolOf, Task, Turn};
use provost_jail::{ForbiddenPaths, OutputBoard, Page, Profile, Root, Supervisor};
use provost_system::folder_watch::FolderWatcher;
use provost_vault::Vault;
use provost_workspace::collect::ChangesRoom;
use provost_workspace::orphaned_copies;
use provost_workspace::work_trees::WorkTrees;

/// Finds a worker in the present configuration.
pub type Profiles = Arc<dyn Fn(&AgentId) -> Option<Arc<Profile>> + Send + Sync>;

/// The parts of the daemon that runs of workers need.
pub struct WorkerParts {
    /// The workers of the configuration.
    pub profiles: Profiles,
    /// The top directory of the workspace.
    pub root: Root,
    /// The paths that no worker ever sees.
    pub forbidden_paths: ForbiddenPaths,
    /// The folder for the private copies of workers; ours alone, cleaned up at start. It lies outside
    /// of the daemon's other folders, since a worker sees a part of it.
    pub copies: PathBuf,
    /// Opens a door for each run; without it workers cannot reach the daemon.
    pub doors: Option<OpenDoor>,
    /// Our own program, by which workers speak at their doors.
    pub program: Option<PathBuf>,
    /// The store of secrets for workers.
    pub vault: Vault,
    /// How jails are started.
    pub supervisor: Supervisor,
    /// The board on which a run's output can be followed.
    pub outputs: OutputBoard,
    /// Workers that may run at once; at least one. The others wait.
    pub concurrent: usize,
    /// The watcher of the folders of tasks whose files are watched.
    pub folders: FolderWatcher,
    /// Stores the changes of agents.
    pub keep: Keep,
    /// Returns how much of the changes is kept.
    pub room: RoomNow,
    /// Leaves the changes and the output of a run for other hosts.
    pub share: Share,
    /// The git work trees in which runs work.
    pub trees: Arc<WorkTrees>,
    /// Returns the changes that are not committed.
    pub withhold: Withhold,
    /// Writes the files of a commit, for runs that work on one.
    pub commits: WriteTree,
    /// Judges the permission requests of agents that are spoken to; without it they are denied.
    pub judge: Option<Judge>,
    /// Gets the questions of such agents answered; without it they are declined.
    pub asker: Option<Asker>,
    /// Returns the span of a task's run, for workers that trace; without it they get none.
    pub trace_parent: Option<TraceParent>,
}

/// The header `traceparent` of a task's run.
pub type TraceParent = Arc<dyn Fn(&Task) -> String + Send + Sync>;

/// Leaves the kept changes of a task, and the output of its run, for other hosts.
pub type Share = Arc<dyn Fn((&TaskId, u32), &Page) -> Result<(), String> + Send + Sync>;

/// Returns how much of a run's changes is kept.
pub type RoomNow = Arc<dyn Fn() -> ChangesRoom + Send + Sync>;

/// State that all runs share.
pub(super) struct Workers {
    pub(super) handle: EngineHandle,
    pub(super) profiles: Profiles,
    pub(super) place: Arc<RunEnvironment>,
    pub(super) supervisor: Supervisor,
    pub(super) outputs: OutputBoard,
    pub(super) line: Line,
    pub(super) watchers: Arc<Watchers>,
    pub(super) copies: Arc<SharedCheckouts>,
    pub(super) keep: Keep,
    pub(super) room: RoomNow,
    pub(super) share: Share,
    pub(super) withhold: Withhold,
    pub(super) judge: Option<Judge>,
    pub(super) asker: Option<Asker>,
    pub(super) tree_turns: TreeTurns,
    known: Mutex<HashMap<TaskId, Arc<RunControl>>>,
    /// The leftovers of runs whose end no daemon saw.
    unseen: Mutex<HashMap<TaskId, InterruptedRun>>,
}

/// The switch of one task's run.
#[derive(Default)]
pub(super) struct RunControl {
    pub(super) stop: CancellationToken,
    pub(super) reason: OnceLock<Box<str>>,
    /// Whether the run is lost, since its host was cut off from the others.
    pub(super) cut_off: AtomicBool,
    over: CancellationToken,
}

impl Workers {
    pub(super) fn new(handle: EngineHandle, parts: WorkerParts) -> Arc<Self> {
        let WorkerParts { root, forbidden_paths, copies, vault, doors, program, .. } = parts;
        let parts_copies = copies.clone();
        let place = RunEnvironment {
            root,
            forbidden_paths,
            copies,
            vault,
            doors,
            program,
            trees: Some(parts.trees.clone()),
            trace_parent: parts.trace_parent.clone(),
            commits: parts.commits.clone(),
            sessions: Some(KeptSessions::beside(&parts_copies)),
            trying: PlanPurpose::InEarnest,
        };
        let place = Arc::new(place);
        Arc::new(Self {
            watchers: Watchers::start(handle.clone(), place.clone(), parts.folders),
            copies: SharedCheckouts::start(handle.clone()),
            handle,
            profiles: parts.profiles,
            place,
            supervisor: parts.supervisor,
            outputs: parts.outputs,
            line: Line::new(parts.concurrent.max(1)),
            keep: parts.keep,
            room: parts.room,
            share: parts.share,
            withhold: parts.withhold,
            judge: parts.judge,
            asker: parts.asker,
            tree_turns: TreeTurns::default(),
            known: Mutex::default(),
            unseen: Mutex::default(),
        })
    }

    /// Removes the leftovers of an earlier daemon except the changes of lost runs, and disables the
    /// repositories that those have made. Runs before the first run.
    pub(super) async fn sweep(&self) {
        let place = self.place.clone();
        let work = move || {
            orphaned_copies::sort(&place.copies);
            place.sessions.iter().for_each(KeptSessions::tidy);
            place.trees.iter().for_each(|trees| trees.sweep());
            interrupted_runs::look_for(&place.copies)
        };
        // Only a shutdown of the runtime cancels it, and then nothing is copied either.
        let unseen = tokio::task::spawn_blocking(work).await.unwrap_or_default();
        *self.unseen() = unseen.into_iter().map(|it| (it.task.clone(), it)).collect();
    }

    /// Returns the leftovers of a lost run, if they are known.
    pub(super) fn left_unseen(&self, task: &TaskId) -> Option<InterruptedRun> {
        self.unseen().remove(task)
    }

    /// Begins a start that is owed; a start of an earlier daemon is resumed in its agent's session, or reported as lost.
    pub(super) fn spawn(self: &Arc<Self>, id: EffectId, task: TaskId, started: bool) {
        let order = Arc::new(RunControl::default());
        self.known().insert(task.clone(), order.clone());
        let once = Once { workers: self.clone(), effect: id, task, order };
        match started {
            true => self.handle.tracker.spawn(lost(once)),
            false => self.handle.tracker.spawn(once.carry_out()),
        };
    }

    /// Begins an end that is owed.
    pub(super) fn stop(self: &Arc<Self>, id: EffectId, task: &TaskId, reason: Box<str>) {
        let order = self.known().get(task).cloned();
        self.handle.tracker.spawn(self.clone().end(id, order, reason));
    }

    async fn end(self: Arc<Self>, id: EffectId, order: Option<Arc<RunControl>>, reason: Box<str>) {
        if let Some(order) = order {
            // Only the first reason counts.
            let _later = order.reason.set(reason);
            order.stop.cancel();
            order.over.cancelled().await;
        }
        self.handle.settle(id).await;
    }

    /// Ends all runs, since the other hosts may take this one for dead.
    pub(super) fn end_all(&self, why: &str) {
        for order in self.known().values() {
            let _later = order.reason.set(why.into());
            order.cut_off.store(true, Ordering::Release);
            order.stop.cancel();
        }
    }

    /// Forgets a run that needs nothing more.
    pub(super) fn done(&self, task: &TaskId, order: &Arc<RunControl>) {
        let mut known = self.known();
        if known.get(task).is_some_and(|it| Arc::ptr_eq(it, order)) {
            known.remove(task);
        }
        order.over.cancel();
    }

    /// Returns the turn of a task; the number of its worker's places is that of the present configuration.
    pub(super) async fn turn(&self, task: &Task) -> Turn {
        let profile = (self.profiles)(&task.order.worker);
        let places = profile.and_then(|it| Some(it.agent.as_ref()?.parallel));
        let pool = self.handle.look_at(PoolOf(task.order.worker.clone())).await.ok().flatten();
        Turn::of(task, places, pool)
    }

    fn unseen(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, InterruptedRun>> {
        // Replacing and removing leave it valid at every moment.
        self.unseen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, Arc<RunControl>>> {
        // Inserting and removing leave it valid at every moment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
