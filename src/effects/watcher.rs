//! Watches files during a task, and reports their changes to the agents that wait for it.
//!
//! ```text
//!   [first look] --> [waiting] --hint--> [resting] --> [look] --news--> told, rests longer
//!                        ^                                |
//!                        +--------------------------------+        the task is over: [last look]
//! ```
//! A burst becomes one report, scans take a small part of the time between them, and the number of reports is
//! bounded; the last scan finds everything. A task in the jail is watched by its run; a task of a collecting worker is
//! watched for as long as that worker has it: [`Effect::WatchFiles`](provost_domain::Effect::WatchFiles).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::engine_handle::EngineHandle;
use super::prepare::RunEnvironment;
use provost_base::limits::{WATCH_REPORTS_MAX, WATCHED_TASKS_MAX};
use provost_base::{EffectId, TaskId, WatchPatterns};
use provost_domain::command::NoteFiles;
use provost_domain::{Event, EventKind, FileChange, Task, Watched, WatchedFile};
use provost_engine::Listener;
use provost_jail as jail;
use provost_system::folder_watch::FolderWatcher;
use provost_workspace::change_hints::{Hints, Wanted};
use provost_workspace::file_watch::{Watch, WatchedFiles, changes, listed};

/// The first pause between a hint and the scan that follows; it doubles with every report.
const REST_FIRST: Duration = Duration::from_millis(100);
const REST_LAST: Duration = Duration::from_secs(60);
/// The pause after a scan takes this many times as long as the scan, so that large directories cost at most a twentieth
/// of one processor.
const REST_PER_LOOK: u32 = 20;

/// The watches of all tasks.
pub(super) struct Watchers {
    handle: EngineHandle,
    place: Arc<RunEnvironment>,
    slots: Arc<Semaphore>,
    folders: FolderWatcher,
    known: Mutex<HashMap<TaskId, CancellationToken>>,
}

/// The watch of one task.
pub(super) struct Watching {
    over: CancellationToken,
    done: JoinHandle<Watched>,
}

impl Watching {
    /// Scans for the last time, and returns the changes of the files.
    pub(super) async fn end(self) -> Watched {
        self.over.cancel();
        self.done.await.unwrap_or_else(|_| without("the watch failed; the daemon's log has the cause"))
    }
}

fn without(why: &str) -> Watched {
    Watched { incomplete: Some(why.into()), ..Watched::default() }
}

impl Watchers {
    /// Begins to follow the ends of tasks. Must be called within a runtime.
    pub(super) fn start(
        handle: EngineHandle,
        place: Arc<RunEnvironment>,
        folders: FolderWatcher,
    ) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(WATCHED_TASKS_MAX));
        let watchers = Arc::new(Self { handle, place, slots, folders, known: Mutex::default() });
        // The subscription comes before the first watch, so that no end is missed.
        let events = watchers.handle.engine.subscribe_beside_posts();
        watchers.handle.tracker.spawn(watchers.clone().mind_ends(events));
        watchers
    }

    /// Begins to watch the files that the task's asker named; `None` if it named none. Files that exist when this
    /// returns count as having existed before.
    pub(super) async fn begin(&self, task: &Task, place: jail::ResolvedPath) -> Option<Watching> {
        if task.order.watch_patterns.is_empty() {
            return None;
        }
        let over = CancellationToken::new();
        let done = match self.session(task, place).await {
            Ok(session) => self.handle.tracker.spawn(session.follow(over.clone())),
            Err(why) => tokio::spawn(async move { without(&why) }),
        };
        Some(Watching { over, done })
    }

    async fn session(&self, task: &Task, place: jail::ResolvedPath) -> Result<Session, String> {
        let full = |_| format!("not watched: {WATCHED_TASKS_MAX} tasks were watched already");
        let slot = self.slots.clone().try_acquire_owned().map_err(full)?;
        let patterns = WatchPatterns::parse(&task.order.watch_patterns).map_err(|err| err.to_string())?;
        let (hints, wanted) = Hints::begin(&self.folders, place.path());
        let mut session = Session {
            handle: self.handle.clone(),
            task: task.id().clone(),
            earlier: task.watched.clone(),
            watch: Arc::new(Watch { place, patterns }),
            hints,
            wanted,
            first: WatchedFiles::default(),
            told: WatchedFiles::default(),
            _slot: slot,
        };
        let (first, _) = session.look().await;
        (session.told, session.first) = (first.clone(), first);
        Ok(session)
    }

    /// Begins to watch the files of a task that a collecting worker has taken.
    pub(super) fn take_up(self: &Arc<Self>, id: EffectId, task: TaskId) {
        self.handle.tracker.spawn(self.clone().watch_collected(id, task));
    }

    async fn watch_collected(self: Arc<Self>, id: EffectId, task: TaskId) {
        let over = CancellationToken::new();
        self.known().insert(task.clone(), over.clone());
        let goes_on = match self.handle.look(&task).await {
            Ok(Some((task, _))) => self.until_it_is_over(&task, &over).await,
            Ok(None) => false,
            // The core takes no commands at present; the effect stays owed.
            Err(_) => true,
        };
        self.known().remove(&task);
        // If the daemon stops, the next one goes on with the watch.
        if !goes_on {
            self.handle.settle(id).await;
        }
    }

    /// Watches until the task is over. Returns whether the effect stays owed.
    async fn until_it_is_over(&self, task: &Arc<Task>, over: &CancellationToken) -> bool {
        let (place, known) = (self.place.clone(), task.directory.clone());
        let found = tokio::task::spawn_blocking(move || {
            let relative = known.map(|it| it.relative).unwrap_or_default();
            place.root.resolve_dir(&relative).map(|found| found.place().clone())
        });
        let watched = match found.await {
            Ok(Ok(place)) => match self.begin(task, place).await {
                Some(watching) => {
                    tokio::select! {
                        () = over.cancelled() => {}
                        () = self.handle.shutdown.cancelled() => {}
                    }
                    watching.end().await
                }
                None => return false,
            },
            Ok(Err(why)) => without(&format!("not watched: {why}")),
            // The runtime is shutting down.
            Err(_) => return true,
        };
        let note = NoteFiles { task: task.id().clone(), handoff: None, watched: Some(watched), news: None };
        self.handle.tell(note).await.ok();
        !over.is_cancelled() && self.handle.shutdown.is_cancelled()
    }

    /// Ends the watch of every task that has ended.
    async fn mind_ends(self: Arc<Self>, mut events: Listener) {
        loop {
            let event = tokio::select! {
                () = self.handle.shutdown.cancelled() => return,
                event = events.recv() => event,
            };
            match event.as_deref() {
                Ok(Event { kind: EventKind::TaskFinished { task, .. }, .. }) => {
                    if let Some(over) = self.known().get(task) {
                        over.cancel();
                    }
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.look_for_ends().await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Checks all watched tasks after events were missed.
    async fn look_for_ends(&self) {
        let known: Vec<_> = self.known().iter().map(|(task, over)| (task.clone(), over.clone())).collect();
        for (task, over) in known {
            if let Ok(None) = self.handle.look(&task).await {
                over.cancel();
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TaskId, CancellationToken>> {
        // Inserting and removing leave it valid at every moment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One watch from its first scan to its last.
struct Session {
    handle: EngineHandle,
    task: TaskId,
    /// The changes that an earlier daemon had seen.
    earlier: Option<Watched>,
    watch: Arc<Watch>,
    hints: Hints,
    wanted: Option<Wanted>,
    first: WatchedFiles,
    told: WatchedFiles,
    _slot: OwnedSemaphorePermit,
}

impl Session {
    async fn follow(mut self, over: CancellationToken) -> Watched {
        let (mut rest, mut pause, mut reports, mut again) = (REST_FIRST, REST_FIRST, 0, true);
        loop {
            let wait = async {
                if !again {
                    self.hints.next().await;
                }
                tokio::time::sleep(rest).await;
            };
            tokio::select! {
                biased;
                () = over.cancelled() => break,
                () = wait => {}
            }
            let (now, new) = self.look().await;
            again = new;
            let news = changes(&self.told, &now);
            if !news.files.is_empty() && reports < WATCH_REPORTS_MAX {
                reports += 1;
                pause = (pause * 2).min(REST_LAST);
                let (task, watched) = (self.task.clone(), Some(self.total(&now)));
                let note = NoteFiles { task, handoff: None, watched, news: Some(news) };
                self.handle.tell(note).await.ok();
            }
            // A look at a large tree takes long; the rest after it keeps the share of looking small.
            rest = pause.max(now.took * REST_PER_LOOK);
            self.told = now;
        }
        let (last, _) = self.look().await;
        self.total(&last)
    }

    /// Scans the files. Returns them, and whether something may have changed since in a folder that was not watched yet.
    async fn look(&mut self) -> (WatchedFiles, bool) {
        let (watch, mut wanted) = (self.watch.clone(), self.wanted.take());
        let looked = tokio::task::spawn_blocking(move || {
            let look = watch.look();
            let covered = wanted.as_mut().map(|it| it.only(&look.directories));
            (look, wanted, covered)
        });
        match looked.await {
            Ok((look, wanted, covered)) => {
                self.wanted = wanted;
                let (new, all) = covered.unwrap_or((false, false));
                self.hints.cover_all = all;
                (look, new)
            }
            Err(_) => {
                self.hints.cover_all = false;
                (
                    WatchedFiles::failed("a look at the directory failed; the daemon's log has the cause"),
                    false,
                )
            }
        }
    }

    /// Returns the changes of the files since the task began.
    fn total(&self, now: &WatchedFiles) -> Watched {
        let total = changes(&self.first, now);
        let Some(earlier) = &self.earlier else { return total };
        let mut files: BTreeMap<_, WatchedFile> =
            earlier.files.iter().map(|it| (it.path.clone(), it.clone())).collect();
        for file in total.files {
            let was_new = files.get(&file.path).is_some_and(|it| it.change == FileChange::New);
            match file.change {
                FileChange::Changed if was_new => {}
                _ => drop(files.insert(file.path.clone(), file)),
            }
        }
        let why = "some changes may be missing: the daemon was not there all the time";
        listed(files.into_values().collect(), earlier.more.saturating_add(total.more), Some(why.into()))
    }
}
