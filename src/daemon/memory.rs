//! Returns memory to the system when the work that took it is over: reading a large file or a large body.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use provost_base::limits::{MEMORY_SLACK_BYTES, SOURCE_READ_MS_MAX};
use provost_system as system;

/// How often the memory is checked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How many times freeing is tried again after memory has grown, and the pause before each: within twice the time that reading
/// a file may take, the work that made memory grow is over on a busy machine, too.
const TRIES: u32 = 8;
const AGAIN_AFTER: Duration = Duration::from_millis(SOURCE_READ_MS_MAX * 2 / TRIES as u64);

/// Returns free memory until the daemon stops, each time that memory has grown by [`MEMORY_SLACK_BYTES`], and some more times until
/// the work that made it grow must be over.
pub(super) async fn give_back(stop: CancellationToken) {
    let mut held = system::own_memory().unwrap_or(0);
    let (mut again, mut tries) = (None, 0);
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = look.tick() => {}
        }
        let Some(now) = system::own_memory() else { return };
        let grown = now >= held.saturating_add(MEMORY_SLACK_BYTES);
        if !grown && again.is_none_or(|at| at > Instant::now()) {
            held = held.min(now);
            continue;
        }
        // This runs on a thread of its own, since it takes milliseconds; it fails only when the runtime shuts down.
        let _ = tokio::task::spawn_blocking(system::give_memory_back).await;
        held = system::own_memory().unwrap_or(now);
        let gave = now.saturating_sub(held) >= MEMORY_SLACK_BYTES;
        tries = if grown || gave { TRIES } else { tries - 1 };
        again = (tries > 0).then(|| Instant::now() + AGAIN_AFTER);
    }
}
