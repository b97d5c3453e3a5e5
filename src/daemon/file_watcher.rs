//! Listens to changes in folders, for the parts of the daemon that then scan for the changes themselves.
//!
//! A listener names its folders. A report does not say what has changed. A listener
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
    /// The name of the folders in the log.
    place: PathBuf,
    /// Whether the log says already that the system does not report to this listener.
    is_unwatched: AtomicBool,
}

/// How many of a listener's folders the system watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Covered {
    /// All folders, and it did before.
    Before,
    /// All folders, some only from now on: earlier changes in these were not reported.
    Since,
    /// Not all: the system does not report so many, or none at all.
    Not,
}

impl FileListener {
    /// Makes a listener without folders, which never hears of paths that are not `wanted`. `wakeup` is notified when changes
    /// can be taken.
    pub(super) fn new(
        watcher: &FolderWatcher,
        place: &Path,
        wakeup: Arc<Notify>,
        wanted: impl Fn(&Path) -> bool + Send + Sync + 'static,
    ) -> Self {
        let subscription = watcher.subscribe(WATCH_EVENTS_MAX, wanted, move || wakeup.notify_one());
        Self { subscription, place: place.to_owned(), is_unwatched: AtomicBool::new(false) }
    }

    /// Takes the changes since the last time.
    pub(super) fn take(&self) -> Changes {
        self.subscription.take()
    }

    /// Listens to these folders, and to no others. Blocking.
    pub(super) fn cover(&self, folders: &BTreeSet<PathBuf>) -> Covered {
        let coverage = self.subscription.cover(folders);
        let Some(why) = coverage.missing else {
            return if coverage.fresh { Covered::Since } else { Covered::Before };
        };
        // The folders are scanned at intervals from now on, and no longer watched.
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
