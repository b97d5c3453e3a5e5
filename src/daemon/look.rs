//! What the daemon checks at intervals: whether it is still needed, and whether its workspace is there.

use std::io::ErrorKind;
use std::time::Duration;

use super::Daemon;
use provost_domain::view::{HooksOwed, KnownAgents, TaskCounts, Waiting};

/// How long the look at the repository's folder is waited for.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// What is known of the folder that the daemon serves.
#[derive(Default)]
pub(super) struct Root {
    /// Whether it was not there at the last look.
    is_gone: bool,
    /// The look that goes on.
    look: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
}

impl Daemon {
    /// Whether an agent is there, or any work is under way.
    pub(super) async fn is_busy(&self) -> bool {
        let agents = self.provost.view(KnownAgents).await.is_ok_and(|it| it.iter().any(|it| it.alive));
        let tasks = self.provost.view(TaskCounts).await.is_ok_and(|it| it.live > 0);
        let waiting = self.provost.view(Waiting).await.is_ok_and(|it| !it.is_empty());
        let hooks = self.provost.view(HooksOwed).await.is_ok_and(|owed| owed > 0);
        agents || tasks || waiting || hooks
    }

    /// Whether the folder that the daemon serves is not there any more. One that cannot be looked at is there.
    /// The file system may take for ever, as one over a network does whose server is gone: meanwhile signals are served,
    /// and no second look is begun.
    pub(super) async fn is_without_its_repository(&mut self) -> bool {
        let root = &self.start.places.root;
        let look = self.root.look.get_or_insert_with(|| {
            let root = root.clone();
            tokio::task::spawn_blocking(move || std::fs::symlink_metadata(root).map(drop))
        });
        let Ok(looked) = tokio::time::timeout(LOOK_WITHIN, look).await else { return false };
        self.root.look = None;
        let Ok(Err(err)) = looked else {
            self.root.is_gone = false;
            return false;
        };
        let is_gone = matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
        // Twice, since some programs put a folder aside for a moment.
        let ends = is_gone && self.root.is_gone;
        self.root.is_gone = is_gone;
        if ends {
            tracing::error!(root = %root.display(), "the repository is gone, and the daemon ends");
        }
        ends
    }
}
