//! Hears when the list of passkeys changes: another repository's daemon may have changed it, or something else.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use provost_auth::passkeys::PASSKEYS_FILE;
use provost_protocols::own::Own;
use provost_system::folder_watch::{FolderWatch, Heard};

/// Puts on record what changes in the list, from now on until the daemon stops.
pub(super) async fn follow(own: Own, folder: PathBuf, stop: CancellationToken) {
    let changed = Arc::new(Notify::new());
    // The beginning counts as a change, so that nothing of the time before is missed.
    changed.notify_one();
    let bell = Arc::clone(&changed);
    let concerns = |heard: &Heard| match heard {
        Heard::Change { paths, .. } => {
            paths.iter().any(|it| it.file_name().is_some_and(|it| it == PASSKEYS_FILE))
        }
        Heard::Lost => true,
    };
    let hear = move |heard: Heard| {
        if concerns(&heard) {
            bell.notify_one();
        }
    };
    let watch = FolderWatch::new(hear).and_then(|mut watch| {
        watch.tree(&folder)?;
        watch.change(&[], std::slice::from_ref(&folder))?;
        Ok(watch)
    });
    // Without it, the list is read whenever a passkey is used, and rules learn of a first one at the next start.
    let _watch =
        watch.inspect_err(|why| tracing::warn!(why, "changes of the list of passkeys are not heard of"));
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => own.look_at_passkeys().await,
        }
    }
}
