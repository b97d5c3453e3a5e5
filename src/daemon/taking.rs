//! Takes open tasks for this host, one after the other, while it has room for them.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Daemon;
use provost_config::Config;
use provost_domain::{Event, EventKind, NextOpen};
use provost_service::Provost;

/// Longer than any daemon lives.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Daemon {
    /// Begins to take open tasks, if there can be other hosts.
    pub(super) fn take_open_tasks(&self, config: &Config) {
        if config.store.url.is_some() {
            self.doors.spawn(take_open(self.provost.clone(), self.stop.clone()));
        }
    }
}

/// Takes the tasks that this host can do until the daemon stops.
async fn take_open(provost: Provost, stop: CancellationToken) {
    let engine = provost.engine();
    let look = || async { engine.insist(None, || provost.view(NextOpen)).await };
    loop {
        let found = tokio::select! {
            () = stop.cancelled() => return,
            found = engine.wait_for(Instant::now() + FOR_EVER, may_open, look) => found,
        };
        let (task, home) = match found {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            // The engine has stopped.
            Err(_) => return,
        };
        let id = task.id().clone();
        match provost.take_open(task, home).await {
            Ok(true) => tracing::info!(task = %id, "this host has taken a task"),
            Ok(false) => tracing::info!(task = %id, "this host leaves a task to others"),
            // Another host was first, or the task is over.
            Err(refusal) => tracing::debug!(%refusal, task = %id, "a task was not taken"),
        }
    }
}

/// Checks whether an event may bring a task, or room, or remove a host that would take a task.
fn may_open(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::Queue(_)
            | EventKind::TaskFinished { .. }
            | EventKind::WorkerSwitched { .. }
            | EventKind::Recorded { .. }
    )
}
