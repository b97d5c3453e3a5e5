//! Reports changes in folders, as the system tells of them.
//!
//! A listener has a name, and names the folders that it wants to hear of; the reports go by these
//! names. A report does not say what has changed: the listener looks for itself. A listener without a
//! report has no changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use provost_base::limits::WATCH_EVENTS_MAX;
use provost_system::folder_watch::{FolderWatch, Heard};

/// Watches folders, each for the listeners that want it.
pub(super) struct FileWatcher {
    queue: Arc<ChangeQueue>,
    folders: Mutex<Folders>,
    /// Why there is none, where there is none.
    watcher: Mutex<Result<FolderWatch, String>>,
}

#[derive(Default)]
struct ChangeQueue {
    pending: Mutex<PendingChanges>,
    wakeup: Notify,
}

/// What the system has reported since the last `take`.
#[derive(Default)]
struct PendingChanges {
    /// Paths at which something has changed, and whether there may be other folders now.
    paths: BTreeMap<PathBuf, bool>,
    everything: bool,
}

/// Folders that are listened to, each with the names for which.
#[derive(Default)]
struct Folders {
    names: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Folders that may have been replaced under the same path: the system has to watch them again.
    stale: BTreeSet<PathBuf>,
    /// Paths of which a listener, by its name, does not want to hear.
    ignored: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The listeners about which the log says already that the system does not report to them.
    unwatched: BTreeSet<PathBuf>,
}

/// What was heard since the last time.
#[derive(Default)]
pub(super) struct ChangeReports {
    /// The listeners for which something has changed, and whether there may be other folders now.
    pub(super) of: BTreeMap<PathBuf, bool>,
    /// Something was missed: anything may have changed.
    pub(super) everything: bool,
}

/// How many of a listener's folders the system watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Covered {
    /// All of them, and they were before.
    Before,
    /// All of them, some only from now on: what has changed in these until now was not heard.
    Since,
    /// Not all: the system does not tell of so many, or of any.
    Not,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileWatcher {
    /// Listens to nothing at first, and never to paths that are not `wanted`.
    pub(super) fn new(wanted: impl Fn(&Path) -> bool + Send + 'static) -> Self {
        let queue: Arc<ChangeQueue> = Arc::default();
        let recorder = queue.clone();
        let watcher = FolderWatch::new(move |heard| match heard {
            Heard::Change { paths, moves_folders } => {
                let paths: Vec<PathBuf> = paths.into_iter().filter(|it| wanted(it)).collect();
                if !paths.is_empty() {
                    recorder.record(|pending| {
                        paths.into_iter().for_each(|path| pending.add(path, moves_folders));
                    });
                }
            }
            Heard::Lost => recorder.record(|pending| pending.everything = true),
        });
        Self { queue, folders: Mutex::default(), watcher: Mutex::new(watcher) }
    }

    /// Waits until there is something to be taken.
    pub(super) async fn changed(&self) {
        self.queue.wakeup.notified().await;
    }

    /// What was heard since the last time.
    pub(super) fn take(&self) -> ChangeReports {
        let pending = std::mem::take(&mut *lock(&self.queue.pending));
        let mut reports = ChangeReports { everything: pending.everything, ..ChangeReports::default() };
        let mut folders = lock(&self.folders);
        for (path, moved) in pending.paths {
            if moved && folders.names.contains_key(&path) {
                folders.stale.insert(path.clone());
            }
            let around = path.parent().into_iter().chain([path.as_path()]);
            let names = around.filter_map(|it| folders.names.get(it)).flatten();
            for name in names.filter(|it| !folders.ignored.get(*it).is_some_and(|it| it.contains(&path))) {
                *reports.of.entry(name.clone()).or_default() |= moved;
            }
        }
        if reports.everything {
            folders.stale = folders.names.keys().cloned().collect();
        }
        reports
    }

    /// Stops reports about these paths, which are in folders of the listener `name`.
    #[cfg(unix)]
    pub(super) fn ignore(&self, name: &Path, paths: BTreeSet<PathBuf>) {
        lock(&self.folders).ignored.insert(name.to_owned(), paths);
    }

    /// Watches these folders for the listener `name`, and no others for it. Blocking.
    pub(super) fn cover(&self, name: &Path, wanted: &BTreeSet<PathBuf>) -> Covered {
        let (new, gone, more) = {
            let mut folders = lock(&self.folders);
            let gone = folders.leave(name, wanted);
            let (new, more) = folders.enter(name, wanted);
            (new, gone, more)
        };
        match self.watch(&gone, &new) {
            Ok(()) if more => Covered::Since,
            Ok(()) => Covered::Before,
            Err(why) => {
                self.give_up(name, &why);
                Covered::Not
            }
        }
    }

    /// Watches nothing for this listener any more.
    fn give_up(&self, name: &Path, why: &str) {
        let (gone, fresh) = {
            let mut folders = lock(&self.folders);
            (folders.leave(name, &BTreeSet::new()), folders.unwatched.insert(name.to_owned()))
        };
        if fresh {
            tracing::warn!(
                "the system does not report changes of files in {} ({why}); the daemon checks them at intervals",
                name.display()
            );
        }
        // Nothing is listened to any more, so nothing can fail to be.
        let _silent = self.watch(&gone, &[]);
    }

    fn watch(&self, gone: &[PathBuf], new: &[PathBuf]) -> Result<(), String> {
        lock(&self.watcher).as_mut().map_err(|why| why.clone())?.change(gone, new)
    }
}

impl ChangeQueue {
    fn record(&self, change: impl FnOnce(&mut PendingChanges)) {
        {
            let mut pending = lock(&self.pending);
            change(&mut pending);
            if pending.paths.len() > WATCH_EVENTS_MAX {
                *pending = PendingChanges { everything: true, ..PendingChanges::default() };
            }
        }
        self.wakeup.notify_one();
    }
}

impl PendingChanges {
    fn add(&mut self, path: PathBuf, moves_folders: bool) {
        let rules = path.file_name().is_some_and(|it| it == ".gitignore" || it == "exclude");
        *self.paths.entry(path).or_default() |= rules || moves_folders;
    }
}

impl Folders {
    /// Takes a listener's name off folders that it does not want; returns the folders that no
    /// listener wants any more.
    fn leave(&mut self, name: &Path, wanted: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let mut gone = Vec::new();
        self.names.retain(|folder, names| {
            if !wanted.contains(folder) && names.remove(name) && names.is_empty() {
                gone.push(folder.clone());
            }
            !names.is_empty()
        });
        for folder in &gone {
            self.stale.remove(folder);
        }
        if wanted.is_empty() {
            self.ignored.remove(name);
        }
        gone
    }

    /// Puts a name on folders; answers with those that are to be listened to now, and whether any are new to this name.
    fn enter(&mut self, name: &Path, wanted: &BTreeSet<PathBuf>) -> (Vec<PathBuf>, bool) {
        let (mut new, mut more) = (Vec::new(), false);
        for folder in wanted {
            let names = self.names.entry(folder.clone()).or_default();
            let fresh = names.is_empty();
            more |= names.insert(name.to_owned());
            if self.stale.remove(folder) || fresh {
                new.push(folder.clone());
            }
        }
        let more = more || !new.is_empty();
        (new, more)
    }
}
