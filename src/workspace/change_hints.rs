//! Hints that files in some directories have changed: from the system if it gives them, otherwise by the clock.
//!
//! A hint carries no other data. The scan that follows finds changes that a full queue has lost, or that happen in a
//! new directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use provost_base::limits::WATCH_DIRS_MAX;
use provost_system::folder_watch::{FolderWatcher, ONE_BY_ONE, Subscription};

/// The time between two scans if there are no hints, or not for every directory.
const TICK: Duration = Duration::from_secs(2);

/// The subscription to hints about directories. Blocking.
pub struct Wanted {
    root: PathBuf,
    subscription: Subscription,
}

/// The hints of one watch.
pub struct Hints {
    bell: Arc<Notify>,
    /// Whether hints come for every directory.
    pub cover_all: bool,
}

impl Hints {
    /// Begins without hints, which come after directories are named. `None` on systems that do not watch each folder by itself.
    pub fn begin(watcher: &FolderWatcher, root: &Path) -> (Self, Option<Wanted>) {
        let bell: Arc<Notify> = Arc::default();
        let rings = bell.clone();
        let wanted = ONE_BY_ONE.then(|| {
            // No path is remembered, so none waits.
            let subscription = watcher.subscribe(0, |_| true, move || rings.notify_one());
            Wanted { root: root.into(), subscription }
        });
        (Self { bell, cover_all: false }, wanted)
    }

    /// Waits until a file may have changed.
    pub async fn next(&mut self) {
        if self.cover_all {
            return self.bell.notified().await;
        }
        tokio::select! {
            () = self.bell.notified() => {}
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

impl Wanted {
    /// Asks for hints about these directories and no others. Returns whether some are new, so that a file
    /// may have changed there unseen, and whether all are covered.
    pub fn only(&mut self, directories: &[Vec<u8>]) -> (bool, bool) {
        let most = directories.len().min(WATCH_DIRS_MAX);
        let folders: BTreeSet<PathBuf> = directories[..most].iter().map(|it| self.at(it)).collect();
        let coverage = self.subscription.cover(&folders);
        (coverage.fresh, coverage.missing.is_none() && most == directories.len())
    }

    #[cfg(unix)]
    fn at(&self, directory: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        self.root.join(Path::new(std::ffi::OsStr::from_bytes(directory)))
    }

    #[cfg(not(unix))]
    fn at(&self, directory: &[u8]) -> PathBuf {
        self.root.join(String::from_utf8_lossy(directory).as_ref())
    }
}
