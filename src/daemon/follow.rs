//! Files change, and what is coordinated in them is followed.

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::service::Provost;

/// Until the daemon stops: brings intents up to date in files that have changed.
pub(super) async fn changed_files(provost: Provost, stop: CancellationToken) {
    let mut changes = provost.index().changes();
    loop {
        let changed = tokio::select! {
            () = stop.cancelled() => return,
            changed = changes.recv() => changed,
        };
        match changed {
            Ok(files) => {
                if let Err(err) = provost.refresh_files(&files).await {
                    tracing::debug!(%err, "intents in changed files are followed when they are asked for");
                }
            }
            // Whoever asks for intents has them brought up to date then.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
