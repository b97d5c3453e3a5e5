//! Receives changes in folders from the system, once for all parts of a daemon that need them.
//!
//! ```text
//!   the system --> [one table of folders] --filter--> [queue of a subscriber] --wake--> the subscriber takes it, and looks
//! ```
//! Promises: a folder is watched once, however many subscribers cover it, and on Linux one instance of
//! inotify watches all of them. There is a bound of folders for a subscriber, and one for all. A queue has a
//! bound, too: a subscriber that takes nothing delays no other, and finds a notice that it has to scan
//! again. It finds the same notice if the system has lost events, and if the watching itself has broken and
//! begins again. A folder that has vanished is no error, since the folder around it reports that; one that was
//! replaced is watched again when a subscriber covers it the next time. Reading is no change, or a
//! subscriber's own reading would be reported without end. On Linux no link is followed.
//!
//! A change does not contain the file's content. If the system has no room for another watch, `cover` says so, and the
//! subscriber decides what to do.

#[cfg_attr(not(target_os = "linux"), path = "folder_watch/elsewhere.rs")]
#[cfg_attr(target_os = "linux", path = "folder_watch/linux.rs")]
mod system;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use provost_base::limits::{WATCH_FOLDERS_ALL_MAX, WATCH_FOLDERS_MAX};
use system::System;

/// Whether this system watches each folder by itself. On others [`Subscription::tree`] watches all folders
/// below one.
pub const ONE_BY_ONE: bool = cfg!(target_os = "linux");

/// The watching of folders in one daemon. Cheap to clone. It asks the system for nothing before a folder is
/// covered.
#[derive(Clone, Default)]
pub struct FolderWatcher(Arc<Shared>);

/// One subscriber's share of the watching. Dropping it releases its folders.
pub struct Subscription {
    shared: Arc<Shared>,
    subscriber: Arc<Subscriber>,
    id: u64,
    /// The folders that the subscriber covers.
    folders: Mutex<BTreeSet<PathBuf>>,
}

/// The changes since a subscriber last took them.
#[derive(Default, Debug)]
pub struct Changes {
    /// Paths at which something has changed, each with whether folders may have appeared, moved or vanished there.
    pub paths: BTreeMap<PathBuf, bool>,
    /// Whether changes are missing: anything may have changed.
    pub lost: bool,
}

/// How much of a subscriber's folders the system reports.
#[derive(Default, Debug)]
pub struct Coverage {
    /// Whether some folders are watched only from now on: earlier changes in them were not reported.
    pub fresh: bool,
    /// The reason why not all folders are watched, if there is one.
    pub missing: Option<String>,
}

#[derive(Default)]
struct Shared(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: u64,
    subscribers: BTreeMap<u64, Arc<Subscriber>>,
    folders: BTreeMap<PathBuf, Folder>,
    /// Subscribers to everything below a folder, on systems that can report it.
    trees: BTreeSet<(PathBuf, u64)>,
    /// The system's watcher; `None` before the first folder, and after the watching has broken.
    system: Option<System>,
}

/// A folder that a subscriber covers.
#[derive(Default)]
struct Folder {
    /// The subscribers, each with the number of the watch that it has got.
    subscribers: BTreeMap<u64, u64>,
    /// Increases whenever the system watches a new folder under this path, such as one that replaced another.
    watch: u64,
    /// Whether another folder, which nothing watches, may be at this path by now.
    is_stale: bool,
}

struct Subscriber {
    wanted: Box<dyn Fn(&Path) -> bool + Send + Sync>,
    wake: Box<dyn Fn() + Send + Sync>,
    /// The most paths that wait.
    paths_max: usize,
    pending: Mutex<Changes>,
}

/// The reason why a folder is not watched.
enum Unwatched {
    /// The path is no folder any more.
    Gone,
    /// There is no room for another watch, in words.
    Full(String),
    /// Another reason, which concerns this folder alone.
    Failed(String),
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values in these mutexes are complete between any two of their operations.
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FolderWatcher {
    /// Makes a subscriber that covers no folder at first. `wake` is called when changes wait for it; the thread that
    /// receives all changes calls both functions, which must not block. At most `paths_max`
    /// paths wait; beyond that, or with a `paths_max` of 0, the changes are [lost](Changes::lost).
    pub fn subscribe(
        &self,
        paths_max: usize,
        wanted: impl Fn(&Path) -> bool + Send + Sync + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Subscription {
        let (wanted, wake) = (Box::new(wanted), Box::new(wake));
        let subscriber = Arc::new(Subscriber { wanted, wake, paths_max, pending: Mutex::default() });
        let mut table = lock(&self.0.0);
        table.last += 1;
        let id = table.last;
        table.subscribers.insert(id, subscriber.clone());
        Subscription { shared: self.0.clone(), subscriber, id, folders: Mutex::default() }
    }
}

impl Subscription {
    /// Takes the changes since the last time.
    pub fn take(&self) -> Changes {
        std::mem::take(&mut *lock(&self.subscriber.pending))
    }

    /// Covers these folders and no others. Blocking.
    pub fn cover(&self, folders: &BTreeSet<PathBuf>) -> Coverage {
        let gone: Vec<PathBuf> = lock(&self.folders).difference(folders).cloned().collect();
        gone.iter().for_each(|it| self.leave(it));
        self.enter(folders.iter().map(PathBuf::as_path))
    }

    /// Covers one more folder. Blocking.
    pub fn add(&self, folder: &Path) -> Coverage {
        self.enter(std::iter::once(folder))
    }

    /// Covers a folder no more. Blocking.
    pub fn leave(&self, folder: &Path) {
        if lock(&self.folders).remove(folder) {
            lock(&self.shared.0).leave(self.id, folder);
        }
    }

    /// Subscribes to everything below a folder, on systems that can report it. On others, cover each folder.
    ///
    /// # Errors
    /// The reason why the folder is not watched, in words.
    pub fn tree(&self, top: &Path) -> Result<(), String> {
        if ONE_BY_ONE {
            return Ok(());
        }
        let mut table = lock(&self.shared.0);
        table.trees.insert((top.to_owned(), self.id));
        match table.system(&self.shared)?.tree(top) {
            Ok(()) | Err(Unwatched::Gone) => Ok(()),
            Err(Unwatched::Full(why) | Unwatched::Failed(why)) => Err(why),
        }
    }

    fn enter<'a>(&self, folders: impl Iterator<Item = &'a Path>) -> Coverage {
        let (mut coverage, mut mine) = (Coverage::default(), lock(&self.folders));
        for folder in folders {
            if mine.len() >= WATCH_FOLDERS_MAX && !mine.contains(folder) {
                coverage.missing = Some(format!("there are more than {WATCH_FOLDERS_MAX} folders"));
                break;
            }
            // The lock is released after each folder, so that changes are passed on meanwhile.
            let entered = lock(&self.shared.0).enter(&self.shared, self.id, folder);
            match entered {
                Ok(fresh) => {
                    coverage.fresh |= fresh;
                    mine.insert(folder.to_owned());
                }
                // The folder around it reports that.
                Err(Unwatched::Gone) => {}
                Err(Unwatched::Failed(why)) => coverage.missing = Some(why),
                Err(Unwatched::Full(why)) => {
                    coverage.missing = Some(why);
                    break;
                }
            }
        }
        coverage
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut table = lock(&self.shared.0);
        table.subscribers.remove(&self.id);
        let folders = std::mem::take(&mut *lock(&self.folders));
        folders.iter().for_each(|it| table.leave(self.id, it));
        let trees: Vec<PathBuf> =
            table.trees.iter().filter(|it| it.1 == self.id).map(|it| it.0.clone()).collect();
        trees.iter().for_each(|top| table.fell(self.id, top));
    }
}

impl Subscriber {
    /// Puts a change into the queue, if it is wanted. Returns whether it was.
    fn record(&self, path: &Path, moves_folders: bool) -> bool {
        if !(self.wanted)(path) {
            return false;
        }
        let mut pending = lock(&self.pending);
        if pending.lost {
            return true;
        }
        if pending.paths.len() >= self.paths_max && !pending.paths.contains_key(path) {
            *pending = Changes { lost: true, ..Changes::default() };
        } else {
            *pending.paths.entry(path.to_owned()).or_default() |= moves_folders;
        }
        true
    }
}

impl Table {
    /// Returns the system's watcher, and starts it if there is none.
    fn system(&mut self, shared: &Arc<Shared>) -> Result<&mut System, String> {
        match &mut self.system {
            Some(system) => Ok(system),
            none => Ok(none.insert(System::begin(Arc::downgrade(shared))?)),
        }
    }

    /// Adds a subscriber to a folder. Returns whether the folder is watched for it only from now on.
    fn enter(&mut self, shared: &Arc<Shared>, id: u64, folder: &Path) -> Result<bool, Unwatched> {
        let known = self.folders.get(folder);
        if known.is_none() && self.folders.len() >= WATCH_FOLDERS_ALL_MAX {
            return Err(Unwatched::Full(format!("more than {WATCH_FOLDERS_ALL_MAX} folders are watched")));
        }
        if known.is_none_or(|it| it.is_stale) {
            // This happens under the lock, or changes of the folder before it is in the table would reach no
            // subscriber. The system answers at once: it looks up a path.
            let is_new = self.system(shared).map_err(Unwatched::Full)?.watch(folder)?;
            let it = self.folders.entry(folder.to_owned()).or_default();
            it.is_stale = false;
            it.watch += u64::from(is_new);
        }
        let Some(it) = self.folders.get_mut(folder) else { return Err(Unwatched::Gone) };
        Ok(it.subscribers.insert(id, it.watch) != Some(it.watch))
    }

    /// Removes a subscriber from a folder.
    fn leave(&mut self, id: u64, folder: &Path) {
        let Some(it) = self.folders.get_mut(folder) else { return };
        it.subscribers.remove(&id);
        if it.subscribers.is_empty() {
            self.folders.remove(folder);
            if let Some(system) = &mut self.system {
                system.unwatch(folder);
            }
        }
    }

    /// Removes a subscriber from a tree.
    fn fell(&mut self, id: u64, top: &Path) {
        self.trees.remove(&(top.to_owned(), id));
        if !self.trees.iter().any(|it| it.0 == top) {
            if let Some(system) = &mut self.system {
                system.unwatch(top);
            }
            // Folders in the tree may have been watched only with it.
            self.doubt(top);
            self.tell_all_lost().iter().for_each(|it| (it.wake)());
        }
    }

    /// Notes that the folders that the system watched at this path, and below it, may be elsewhere now.
    fn doubt(&mut self, path: &Path) {
        let below = self.folders.range_mut(path.to_owned()..).take_while(|it| it.0.starts_with(path));
        below.for_each(|(_, it)| it.is_stale = true);
    }

    /// Puts a change into the queues of the subscribers that cover its folder, or the changed folder itself.
    /// Adds them to `woken`.
    fn tell(&mut self, path: &Path, moves_folders: bool, woken: &mut BTreeSet<u64>) {
        if moves_folders {
            self.doubt(path);
        }
        let around = path.parent().into_iter().chain([path]).filter_map(|it| self.folders.get(it));
        let trees = self.trees.iter().filter(|it| path.starts_with(&it.0)).map(|it| it.1);
        for id in around.flat_map(|it| it.subscribers.keys().copied()).chain(trees) {
            if self.subscribers.get(&id).is_some_and(|it| it.record(path, moves_folders)) {
                woken.insert(id);
            }
        }
    }

    /// Tells every subscriber to scan again, since changes were missed. Returns all of them.
    fn tell_all_lost(&mut self) -> Vec<Arc<Subscriber>> {
        self.folders.values_mut().for_each(|it| it.is_stale = true);
        for it in self.subscribers.values() {
            *lock(&it.pending) = Changes { lost: true, ..Changes::default() };
        }
        self.subscribers.values().cloned().collect()
    }

    fn named(&self, ids: &BTreeSet<u64>) -> Vec<Arc<Subscriber>> {
        ids.iter().filter_map(|id| self.subscribers.get(id).cloned()).collect()
    }
}

impl Shared {
    /// Handles the end of the watching by itself. It begins again with the next folder that is covered, and each
    /// subscriber that scans again covers its folders.
    #[cfg(target_os = "linux")]
    fn broke(&self) {
        let all = {
            let mut table = lock(&self.0);
            table.system = None;
            table.tell_all_lost()
        };
        all.iter().for_each(|it| (it.wake)());
    }
}

/// The watcher's link to the table, which may be gone.
type TableLink = Weak<Shared>;
