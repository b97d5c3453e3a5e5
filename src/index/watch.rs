//! Watches for changes: the system's own watching of folders, reduced to the folders with changes.
//!
//! A scan finds the exact changes. On systems that watch folder by folder (Linux), ignored folders are not watched;
//! on others the whole tree is watched, and this module drops superfluous reports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use provost_base::RepoPath;
use provost_base::limits::WATCH_EVENTS_MAX;
use provost_system::folder_watch::{FolderWatcher, ONE_BY_ONE, Subscription};

/// The changes since the last request for them.
#[derive(Default, Debug)]
pub(super) struct IndexChanges {
    /// Folders with changes in them.
    pub(super) folders: BTreeSet<RepoPath>,
    /// Folders below which the set of ignored files has changed.
    pub(super) rules: BTreeSet<RepoPath>,
    /// Whether changes were missed, so that everything has to be scanned.
    pub(super) everything: bool,
}

/// A request for a scan, for the thread that scans.
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
            // Full: the thread was woken and has not scanned yet. Disconnected: the thread has ended.
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

/// The watch of one tree's folders.
pub(super) struct Watch {
    subscription: Subscription,
    root: PathBuf,
    /// The reason why the folders are not watched any more.
    pub(super) broken: Option<String>,
}

impl Watch {
    pub(super) fn begin(watcher: &FolderWatcher, root: &Path, bell: &Arc<Bell>) -> Result<Self, String> {
        let bell = bell.clone();
        let subscription = watcher.subscribe(WATCH_EVENTS_MAX, |_| true, move || bell.ring(|_| {}));
        subscription.tree(root)?;
        Ok(Self { subscription, root: root.to_owned(), broken: None })
    }

    /// Adds the changes since the last time.
    pub(super) fn take(&self, news: &mut IndexChanges) {
        let heard = self.subscription.take();
        news.everything |= heard.lost;
        heard.paths.keys().for_each(|path| note(news, &self.root, path));
    }

    /// Watches a folder, again if it may be another one than before.
    pub(super) fn add(&mut self, folder: &RepoPath) {
        if ONE_BY_ONE && self.broken.is_none() {
            self.broken = self.subscription.add(&self.at(folder)).missing;
        }
    }

    /// Stops watching a folder.
    pub(super) fn remove(&mut self, folder: &RepoPath) {
        if ONE_BY_ONE {
            self.subscription.leave(&self.at(folder));
        }
    }

    fn at(&self, folder: &RepoPath) -> PathBuf {
        if folder.is_root() { self.root.clone() } else { self.root.join(folder.as_str()) }
    }
}

fn note(news: &mut IndexChanges, root: &Path, path: &Path) {
    // A name that is no text belongs to no source file.
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
