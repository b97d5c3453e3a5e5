//! Runs on one of several hosts: puts the results of another host's task where that host finds them, and ends the runs of a host that is
//! cut off from the store which it shares with others. They are over before another host takes this one for dead, so
//! that a second attempt there is the only one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::result::{End, Output};
use super::run::{Once, Over};
use super::worker::Workers;
use provost_base::limits::RUNS_CUT_OFF_MS;
use provost_domain::{HasOthers, Task};
use provost_jail::{Chunk, Page, Stream};

/// How often the time since the store's last answer is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Checks that time until the daemon stops. A host without other hosts beside it is never taken for dead.
pub(super) async fn look_on(workers: Arc<Workers>) {
    let mut has_others = false;
    loop {
        tokio::select! {
            () = workers.handle.shutdown.cancelled() => return,
            () = sleep(LOOK_EVERY) => {}
        }
        let Some(standing) = workers.handle.engine.standing() else { continue };
        if standing.looked < Duration::from_millis(RUNS_CUT_OFF_MS) {
            // Memory may not be read while the store is away.
            if let Ok(found) = workers.handle.engine.view(HasOthers).await {
                has_others = found;
            }
        } else if has_others {
            workers.end_all("this host is cut off from the others");
        }
    }
}

impl Once {
    /// Returns the end of a run that was ordered to stop.
    pub(super) fn stopped(&self) -> End {
        if self.order.cut_off.load(Ordering::Acquire) {
            return End::Lost("its host was cut off from the others");
        }
        End::Stopped(self.order.reason.get().cloned().unwrap_or_default())
    }

    /// Leaves the changes and the output of another host's task for that host, before the run's end is on record there. A host that
    /// may have been taken for dead leaves nothing: another one may have left the result of a later attempt.
    pub(super) async fn share(&self, task: &Arc<Task>, over: &Over) {
        let standing = self.workers.handle.engine.standing();
        let is_silent = standing.is_some_and(|it| it.looked >= Duration::from_millis(RUNS_CUT_OFF_MS));
        if task.commit_away().is_none() || matches!(over.end, End::NotStarted(_)) {
            return;
        }
        if is_silent || self.order.cut_off.load(Ordering::Acquire) {
            tracing::warn!(task = %task.id(), "what a run has left stays on this host, which was cut off from the others");
            return;
        }
        let (share, id, attempt) = (self.workers.share.clone(), task.id().clone(), task.attempt());
        // The offsets are those of the running time, so that a reader who has followed the run can go on behind the last one.
        let live = self.workers.outputs.get(&id);
        let output = live.map_or_else(|| in_order(&over.output), |it| it.whole());
        match tokio::task::spawn_blocking(move || share((&id, attempt), &output)).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::warn!(why, task = %task.id(), "what a run has left stays on this host"),
            Err(_) => tracing::warn!(task = %task.id(), "what a run has left stays on this host"),
        }
    }
}

/// Returns the output of a run that is no longer live: one stream behind the other.
fn in_order(output: &Output) -> Page {
    let (mut next, mut chunks) = (0, Vec::new());
    for (stream, text) in [(Stream::Out, &output.stdout), (Stream::Err, &output.stderr)] {
        chunks.push(Chunk { at: next, stream, bytes: text.clone().into_bytes() });
        next += text.len() as u64;
    }
    Page { chunks, next, finished: true }
}
