//! Follows files that change or are renamed, so that intents and locks in them stay right.

use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::Daemon;
use provost_domain::command::FollowLocks;
use provost_domain::view::LiveLocks;
use provost_domain::{Principal, Refusal};
use provost_index::Moved;
use provost_service::Provost;

impl Daemon {
    /// Follows files from now on, until the daemon stops.
    pub(super) fn follow_files(&self) {
        let (provost, stop) = (self.provost.clone(), self.stop.clone());
        self.doors.spawn(changed_files(provost.clone(), stop.clone()));
        self.doors.spawn(renamed_files(provost, self.system.clone(), stop));
    }
}

/// Updates intents in changed files until the daemon stops.
async fn changed_files(provost: Provost, stop: CancellationToken) {
    let mut changes = provost.index().changes();
    loop {
        let changed = tokio::select! {
            () = stop.cancelled() => return,
            changed = changes.recv() => changed,
        };
        match changed {
            Ok(files) => {
                if let Err(err) = provost.refresh_files(&files).await {
                    tracing::debug!(%err, "intents in changed files are followed at the next request for them");
                }
            }
            // Each query about intents updates them as well.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Moves locks along with renamed files until the daemon stops.
async fn renamed_files(provost: Provost, system: Principal, stop: CancellationToken) {
    let mut moves = provost.index().moves();
    loop {
        let moved = tokio::select! {
            () = stop.cancelled() => return,
            moved = moves.recv() => moved,
        };
        match moved {
            Ok(moved) => {
                if let Err(err) = follow(&provost, &system, &moved).await {
                    tracing::warn!(%err, "locks could not follow files that were renamed");
                }
            }
            Err(RecvError::Lagged(_)) => {
                tracing::warn!("more files were renamed at once than locks follow");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Moves the locks of renamed files. Renames of files without locks are not recorded.
async fn follow(provost: &Provost, system: &Principal, moved: &Arc<[Moved]>) -> Result<(), Refusal> {
    let files = moved.iter().map(|it| it.from.clone()).collect();
    let (held, _) = provost.view(LiveLocks { holder: None, files }).await?;
    let is_locked = |it: &&Moved| held.iter().any(|lock| *lock.it.at.file() == it.from);
    let moves: Vec<_> = moved.iter().filter(is_locked).map(|it| (it.from.clone(), it.to.clone())).collect();
    match moves.is_empty() {
        true => Ok(()),
        false => provost.submit(system, FollowLocks { moves }).await.map(drop),
    }
}
