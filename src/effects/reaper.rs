//! Releases locks that are bound to a process when the process has ended.

use std::time::Duration;

use tokio::time::sleep;

use super::engine_handle::EngineHandle;
use provost_domain::command::ReapLocks;
use provost_domain::view::BoundLocks;
use provost_domain::{Lock, ProcessMark};
use provost_system::process_began;

/// How often the processes are checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Checks the processes until the daemon stops.
pub(super) async fn look_on(handle: EngineHandle) {
    loop {
        tokio::select! {
            () = handle.shutdown.cancelled() => return,
            () = sleep(LOOK_EVERY) => {}
        }
        // An engine that is busy now is asked again.
        let Ok(bound) = handle.engine.view(BoundLocks).await else { continue };
        let ended = bound.iter().filter(|lock| has_ended(lock));
        let locks: Vec<_> = ended.map(|lock| (lock.at.clone(), lock.fence)).collect();
        if locks.is_empty() {
            continue;
        }
        let verb = ReapLocks { locks, why: "its process has ended".into() };
        match handle.engine.submit(&handle.system, verb).await {
            Ok(reaped) => {
                tracing::info!(count = reaped.count, "locks of processes that ended are free")
            }
            Err(why) => tracing::warn!(%why, "locks of processes that ended are not free yet"),
        }
    }
}

fn has_ended(lock: &Lock) -> bool {
    // If the process's state is unknown, the lock ends by its own time.
    let ended = |it: ProcessMark| process_began(it.pid).is_ok_and(|began| began != Some(it.started));
    lock.process.is_some_and(ended)
}
