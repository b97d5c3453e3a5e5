//! Listens to changes in folders, for the parts of the daemon that look for themselves at what has changed.
//!
//! A listener names the folders that it wants to hear of. A report does not say what has changed. A listener
//! without a report has no changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use provost_base::limits::WATCH_EVENTS_MAX;
use provost_system::folder_watch::{Changes, FolderWatcher, Subscription};

/// One listener.
pub(super) struct FileListener {
    subscription: Subscription,
    /// What the log calls the folders.
    place: PathBuf,
    /// Whether the log says already that the system does not report to it.
    is_unwatched: AtomicBool,
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

impl FileListener {
    /// Listens to nothing at first, and never to paths that are not `wanted`. `wakeup` is notified when there is
    /// something to be taken.
    pub(super) fn new(
        watcher: &FolderWatcher,
        place: &Path,
        wakeup: Arc<Notify>,
        wanted: impl Fn(&Path) -> bool + Send + Sync + 'static,
    ) -> Self {
        let subscription = watcher.subscribe(WATCH_EVENTS_MAX, wanted, move || wakeup.notify_one());
        Self { subscription, place: place.to_owned(), is_unwatched: AtomicBool::new(false) }
    }

    /// What was heard since the last time.
    pub(super) fn take(&self) -> Changes {
        self.subscription.take()
    }

    /// Listens to these folders, and to no others. Blocking.
    pub(super) fn cover(&self, folders: &BTreeSet<PathBuf>) -> Covered {
        let coverage = self.subscription.cover(folders);
        let Some(why) = coverage.missing else {
            return if coverage.fresh { Covered::Since } else { Covered::Before };
        };
        // Looked at at intervals from now on, and not heard of beside that.
        self.subscription.cover(&BTreeSet::new());
        if !self.is_unwatched.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the system does not report changes of files in {} ({why}); the daemon checks them at intervals",
                self.place.display()
            );
        }
        Covered::Not
    }
}
