//! What the daemon looks at now and then: whether anybody needs it, and whether what it serves is there.

use std::io::ErrorKind;

use super::Daemon;
use crate::domain::view::{HooksOwed, KnownAgents, LiveTasks, Waiting};

impl Daemon {
    /// Whether somebody is there, or something is under way.
    pub(super) async fn is_busy(&self) -> bool {
        let agents = self.provost.view(KnownAgents).await.is_ok_and(|it| it.iter().any(|it| it.alive));
        let tasks = self.provost.view(LiveTasks).await.is_ok_and(|it| !it.tasks.is_empty());
        let waiting = self.provost.view(Waiting).await.is_ok_and(|it| !it.is_empty());
        let hooks = self.provost.view(HooksOwed).await.is_ok_and(|owed| owed > 0);
        agents || tasks || waiting || hooks
    }

    /// Whether the folder that the daemon serves is not there any more. One that cannot be looked at is there.
    pub(super) fn is_without_its_repository(&mut self) -> bool {
        let root = &self.start.places.root;
        let looked = std::fs::symlink_metadata(root);
        let is_gone =
            looked.is_err_and(|err| matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory));
        // Twice, since some programs put a folder aside for a moment.
        let ends = is_gone && self.root_is_gone;
        self.root_is_gone = is_gone;
        if ends {
            tracing::error!(root = %root.display(), "the repository is gone, and the daemon ends");
        }
        ends
    }
}
