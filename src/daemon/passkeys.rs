//! Follows the list of passkeys: another repository's daemon, or any other program, may change it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use provost_auth::passkeys::PASSKEYS_FILE;
use provost_base::limits::{PASSKEY_WAIT_NOTE_S, WATCH_EVENTS_MAX};
use provost_domain::EventKind;
use provost_engine::Listener;
use provost_protocols::own::Own;
use provost_system::folder_watch::{FolderWatcher, ONE_BY_ONE, Subscription};

/// How often the daemon notes that it has run, while a reset waits.
const NOTE_EVERY: Duration = Duration::from_secs(PASSKEY_WAIT_NOTE_S);

/// Records changes of the list, from now on until the daemon stops.
pub(super) async fn follow(
    own: Own,
    mut heard: Listener,
    watcher: FolderWatcher,
    folder: PathBuf,
    stop: CancellationToken,
) {
    let changed = Arc::new(Notify::new());
    // The beginning counts as a change, so that earlier changes are not missed.
    changed.notify_one();
    let bell = Arc::clone(&changed);
    let wanted = |path: &Path| path.file_name().is_some_and(|it| it == PASSKEYS_FILE);
    let subscription = watcher.subscribe(WATCH_EVENTS_MAX, wanted, move || bell.notify_one());
    let Ok(subscription) = tokio::task::spawn_blocking(move || covering(subscription, &folder)).await else {
        return;
    };
    // While a reset waits, the running time of the daemon is subtracted from the wait. No clock that can be set plays a part in that.
    let (mut waits, mut since) = (false, Instant::now());
    let mut hears = true;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => {
                // The reports do not say what has changed, so the list is read completely.
                subscription.take();
                let waited = std::mem::replace(&mut waits, own.look_at_passkeys().await);
                if !waited {
                    since = Instant::now();
                }
            }
            event = heard.recv(), if hears => {
                hears = !matches!(event, Err(RecvError::Closed));
                if event.map_or(true, |it| ends_some(&it.kind)) {
                    own.passkeys_have_changed().await;
                }
            }
            () = tokio::time::sleep_until(since + NOTE_EVERY), if waits => {
                let ran = since.elapsed().min(NOTE_EVERY * 2);
                since = Instant::now();
                waits = own.ran_for(ran).await;
            }
        }
    }
}

/// Checks for events that end what a passkey has begun, also from another host. Each event that was missed may be one.
fn ends_some(kind: &EventKind) -> bool {
    matches!(kind, EventKind::PasskeyRevoked { .. } | EventKind::PasskeysReset { .. })
}

/// Covers the folder. Without reports, the list is read whenever a passkey is used, and rules learn of a first one at the next start.
fn covering(subscription: Subscription, folder: &Path) -> Subscription {
    let covered = if ONE_BY_ONE {
        subscription.add(folder).missing.map_or(Ok(()), Err)
    } else {
        subscription.tree(folder)
    };
    if let Err(why) = covered {
        tracing::warn!(why, "changes of the list of passkeys are not heard of");
    }
    subscription
}
