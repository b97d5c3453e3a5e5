//! Systems other than Linux, with the library `notify`: one watcher for all folders.
//!
//! The library calls back on a thread that it also needs to begin and end a watch, so this module puts its reports
//! into a queue, and passes them on by a thread of its own. The library follows a link in a folder's place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RemoveKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{TableLink, Unwatched, lock};
use provost_base::limits::WATCH_EVENTS_MAX;

/// The watched folders. Its thread ends when it is dropped.
pub(super) struct System {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    trees: BTreeSet<PathBuf>,
}

/// A change: the paths, and whether folders may have appeared, moved or vanished.
type Change = (Vec<PathBuf>, bool);

impl System {
    pub(super) fn begin(table: TableLink) -> Result<Self, String> {
        let (tell, told) = sync_channel(WATCH_EVENTS_MAX);
        let lost: Arc<AtomicBool> = Arc::default();
        let hears = lost.clone();
        let on_event = move |event: notify::Result<notify::Event>| {
            let change = match event {
                Ok(event) if event.need_rescan() => None,
                Ok(event) if is_change(event.kind) => Some((event.paths, may_move_folders(event.kind))),
                Ok(_) => return,
                Err(_) => None,
            };
            // A lost change is reported with the next one; an empty one takes its place in the queue.
            hears.fetch_or(change.is_none(), Ordering::Relaxed);
            if tell.try_send(change.unwrap_or_default()).is_err() {
                hears.store(true, Ordering::Relaxed);
            }
        };
        let config = notify::Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(on_event, config).map_err(|err| err.to_string())?;
        let thread = std::thread::Builder::new().name("folder-watch".into());
        thread.spawn(move || hear(&told, &lost, &table)).map_err(|it| it.to_string())?;
        Ok(Self { watcher, folders: BTreeSet::new(), trees: BTreeSet::new() })
    }

    /// Watches a folder, again if it is watched already. Returns whether it may be another folder than before.
    pub(super) fn watch(&mut self, folder: &Path) -> Result<bool, Unwatched> {
        if !self.trees.iter().any(|top| folder.starts_with(top)) {
            self.begin_watch(folder, RecursiveMode::NonRecursive)?;
            self.folders.insert(folder.to_owned());
        }
        Ok(true)
    }

    /// Watches a folder with all folders below it.
    pub(super) fn tree(&mut self, top: &Path) -> Result<(), Unwatched> {
        self.begin_watch(top, RecursiveMode::Recursive)?;
        self.trees.insert(top.to_owned());
        Ok(())
    }

    pub(super) fn unwatch(&mut self, folder: &Path) {
        if self.folders.remove(folder) || self.trees.remove(folder) {
            // The system has released a watch of a folder that is gone.
            let _gone = self.watcher.unwatch(folder);
        }
    }

    fn begin_watch(&mut self, folder: &Path, how: RecursiveMode) -> Result<(), Unwatched> {
        self.watcher.watch(folder, how).map_err(|err| match &err.kind {
            _ if is_gone(&err) => Unwatched::Gone,
            notify::ErrorKind::MaxFilesWatch => Unwatched::Full(err.to_string()),
            _ => Unwatched::Failed(err.to_string()),
        })
    }
}

/// Passes on the reports until no folder is watched any more.
fn hear(told: &Receiver<Change>, lost: &AtomicBool, table: &TableLink) {
    while let Ok((paths, moves_folders)) = told.recv() {
        let Some(shared) = table.upgrade() else { return };
        let subscribers = {
            let (mut table, mut woken) = (lock(&shared.0), BTreeSet::new());
            paths.iter().for_each(|path| table.tell(path, moves_folders, &mut woken));
            if lost.swap(false, Ordering::Relaxed) { table.tell_all_lost() } else { table.named(&woken) }
        };
        subscribers.iter().for_each(|it| (it.wake)());
    }
}

fn is_gone(err: &notify::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match &err.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(err) => matches!(err.kind(), NotFound | NotADirectory),
        _ => false,
    }
}

fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn may_move_folders(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(kind) => kind != CreateKind::File,
        EventKind::Remove(kind) => kind != RemoveKind::File,
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_) | ModifyKind::Any | ModifyKind::Other),
        EventKind::Any | EventKind::Other => true,
        EventKind::Access(_) => false,
    }
}
