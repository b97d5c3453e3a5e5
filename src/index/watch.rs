//! Watches for changes: the system's own watching of folders, reduced to the folders with changes.
//!
//! A scan finds the exact changes. On systems that watch folder by folder (Linux), ignored folders are not watched;
//! on others a whole tree is, and this module drops superfluous reports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use provost_base::RepoPath;
use provost_base::limits::{WATCH_EVENTS_MAX, WATCH_FOLDERS_MAX};

/// The changes since the last request for them.
#[derive(Default, Debug)]
pub(super) struct IndexChanges {
    /// Folders with something in them that has changed.
    pub(super) folders: BTreeSet<RepoPath>,
    /// Folders below which what is ignored has changed.
    pub(super) rules: BTreeSet<RepoPath>,
    /// Something was missed: everything is to be looked at.
    pub(super) everything: bool,
}

/// A wish to be looked at, for the thread that looks.
pub(super) struct Bell {
    news: Mutex<IndexChanges>,
    wake: SyncSender<()>,
    /// Whether the index is to end.
    pub(super) stop: AtomicBool,
}

impl Bell {
    pub(super) fn new(wake: SyncSender<()>) -> Self {
        Self { news: Mutex::default(), wake, stop: AtomicBool::new(false) }
    }

    pub(super) fn ring(&self, change: impl FnOnce(&mut IndexChanges)) {
        {
            let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut news);
            if news.folders.len() + news.rules.len() > WATCH_EVENTS_MAX {
                *news = IndexChanges { everything: true, ..IndexChanges::default() };
            }
        }
        match self.wake.try_send(()) {
            // Full: it has been told and has not looked yet. Gone: it has ended.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }

    pub(super) fn take(&self) -> IndexChanges {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ring(|_| {});
    }
}

/// Watches folders of one tree.
pub(super) struct Watch {
    watcher: RecommendedWatcher,
    root: PathBuf,
    folders: BTreeSet<RepoPath>,
    /// Why it watches no more.
    pub(super) broken: Option<String>,
}

/// Whether each folder is watched for itself.
const ONE_BY_ONE: bool = cfg!(target_os = "linux");

impl Watch {
    pub(super) fn begin(root: &Path, bell: &Arc<Bell>) -> Result<Self, String> {
        let (bell, from) = (bell.clone(), root.to_owned());
        let hear = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => bell.ring(|news| news.everything = true),
            Ok(event) if is_change(event.kind) => bell.ring(|news| {
                event.paths.iter().for_each(|path| note(news, &from, path));
            }),
            Ok(_) => {}
            Err(_) => bell.ring(|news| news.everything = true),
        };
        // Links out of the tree are none of ours.
        let config = notify::Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(hear, config).map_err(|err| err.to_string())?;
        if !ONE_BY_ONE {
            watcher.watch(root, RecursiveMode::Recursive).map_err(|err| err.to_string())?;
        }
        Ok(Self { watcher, root: root.to_owned(), folders: BTreeSet::new(), broken: None })
    }

    /// Watches a folder, also if it was watched before.
    pub(super) fn add(&mut self, folder: &RepoPath) {
        if !ONE_BY_ONE || self.broken.is_some() {
            return;
        }
        self.folders.insert(folder.clone());
        if self.folders.len() > WATCH_FOLDERS_MAX {
            self.broken = Some(format!("there are more than {WATCH_FOLDERS_MAX} folders"));
            return;
        }
        let at = if folder.is_root() { self.root.clone() } else { self.root.join(folder.as_str()) };
        match self.watcher.watch(&at, RecursiveMode::NonRecursive) {
            Ok(()) => {}
            // Gone already; the folder that it was in has been told.
            Err(err) if is_gone(&err) => {
                self.folders.remove(folder);
            }
            Err(err) => self.broken = Some(err.to_string()),
        }
    }

    /// Watches a folder no more.
    pub(super) fn remove(&mut self, folder: &RepoPath) {
        if ONE_BY_ONE && self.folders.remove(folder) {
            // The system has let go of one that is gone.
            let _gone = self.watcher.unwatch(&self.root.join(folder.as_str()));
        }
    }
}

fn is_gone(err: &notify::Error) -> bool {
    match &err.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(err) => {
            matches!(err.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
        }
        _ => false,
    }
}

/// Reading is none, or our own would be heard without end.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn note(news: &mut IndexChanges, root: &Path, path: &Path) {
    // A name that is no text is no source file's.
    let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) else { return };
    let Ok(path) = RepoPath::parse(path) else { return };
    let (folder, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    let Ok(folder) = RepoPath::parse(folder) else { return };
    if name == ".gitignore" || path.as_str() == ".git/info/exclude" {
        news.rules.insert(folder.clone());
    }
    news.folders.insert(folder);
    // It may be a folder itself, with a change that does not concern the folder around it.
    news.folders.insert(path);
}
