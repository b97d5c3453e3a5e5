//! The daemon's checks at intervals: whether it is still needed, and whether its workspace exists.

use std::io::ErrorKind;
use std::time::Duration;

use super::Daemon;
use provost_domain::view::{HooksOwed, KnownAgents, TaskCounts, Waiting};

/// How long a check waits for the repository's folder.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// The numbers of a folder's file system and of the folder in it.
type FolderNumber = (u64, u64);
/// The result of examining a folder: its number, if numbers are stable on this system.
type Looked = std::io::Result<Option<FolderNumber>>;

/// The state of the folder that the daemon serves.
#[derive(Default)]
pub(super) struct Root {
    /// Whether the folder was missing at the last check.
    is_gone: bool,
    /// The folder's number in its file system; `None` before the first check, and on systems without stable numbers.
    number: Option<FolderNumber>,
    /// The check that is under way.
    look: Option<tokio::task::JoinHandle<Looked>>,
}

impl Daemon {
    /// Checks whether an agent is present, or any work is under way.
    pub(super) async fn is_busy(&self) -> bool {
        let agents = self
            .provost
            .view(KnownAgents)
            .await
            .is_ok_and(|it| it.iter().any(|it| it.alive && !it.elsewhere));
        let tasks = self.provost.view(TaskCounts).await.is_ok_and(|it| it.live > 0);
        let waiting = self.provost.view(Waiting).await.is_ok_and(|it| !it.is_empty());
        let hooks = self.provost.view(HooksOwed).await.is_ok_and(|owed| owed > 0);
        agents || tasks || waiting || hooks || self.has_sessions().await
    }

    /// Checks whether a host's session is present, however long its model has been thinking.
    async fn has_sessions(&self) -> bool {
        let runtime = self.start.places.runtime.clone();
        let look = tokio::task::spawn_blocking(move || provost_mcp::sessions_there(&runtime));
        look.await.is_ok_and(|it| !it.is_empty())
    }

    /// Checks whether the folder that the daemon serves is gone, or is another one now. A folder that cannot be examined counts as
    /// present. The file system may never return, as a network file system whose server is gone: meanwhile the daemon serves
    /// signals, and begins no second check.
    pub(super) async fn is_without_its_repository(&mut self) -> bool {
        let root = &self.start.places.root;
        let look = self.root.look.get_or_insert_with(|| {
            let root = root.clone();
            tokio::task::spawn_blocking(move || number_of(&root))
        });
        let Ok(looked) = tokio::time::timeout(LOOK_WITHIN, look).await else { return false };
        self.root.look = None;
        let is_gone = match looked {
            // A clone, or a copy from elsewhere, has another number: the files that this daemon has open are not in it.
            Ok(Ok(Some(now))) => is_another(*self.root.number.get_or_insert(now), now),
            Ok(Ok(None)) => false,
            Ok(Err(err)) => matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
            Err(_) => false,
        };
        // Only two failed checks in a row count, since some programs move a folder away for a moment.
        let ends = is_gone && self.root.is_gone;
        self.root.is_gone = is_gone;
        if ends {
            tracing::error!(root = %root.display(), "the repository is gone, or another one is in its place, and the daemon ends");
        }
        ends
    }
}

/// Checks whether a number is that of another folder. In another file system, as after a mount, that is unknown.
fn is_another((device, before): FolderNumber, now: FolderNumber) -> bool {
    device == now.0 && before != now.1
}

/// Returns the numbers of a folder's file system and of the folder in it, which no other folder has while this one
/// exists. Programs that serve a file system (FUSE) may give a folder another number at any time.
#[cfg(unix)]
fn number_of(folder: &std::path::Path) -> Looked {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::symlink_metadata(folder)?;
    Ok(lasts(folder).then(|| (found.dev(), found.ino())))
}

#[cfg(target_os = "linux")]
fn lasts(folder: &std::path::Path) -> bool {
    const FUSE: rustix::fs::FsWord = 0x6573_5546;
    rustix::fs::statfs(folder).is_ok_and(|it| it.f_type != FUSE)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn lasts(_folder: &std::path::Path) -> bool {
    true
}

/// Returns no number: the system gives none without opening the folder.
#[cfg(not(unix))]
fn number_of(folder: &std::path::Path) -> Looked {
    std::fs::symlink_metadata(folder).map(|_| None)
}
