//! Private copies that the runs of one job share.
//!
//! ```text
//!   [nothing] --first run--> [made] --lent--> a run has it --given back--> [made] --job is over--> removed
//! ```
//! One run at a time has the copy; a second one waits, without keeping other runs from starting. The copy holds the
//! changes of the run before; the record of the original files stays unchanged. The end of the job or of the daemon
//! removes it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast::error::RecvError;

use super::engine_handle::EngineHandle;
use super::prepare::jail_refused;
use provost_base::JobId;
use provost_domain::view::OneJob;
use provost_domain::{Event, EventKind, Failure, JobEvent};
use provost_engine::Listener;
use provost_workspace::size_quota::Size;
use provost_workspace::snapshot::Snapshot;

/// A copy, and its size when it was made.
#[derive(Debug)]
pub(super) struct SharedCheckout {
    pub(super) apart: Snapshot,
    pub(super) began: Size,
}

type CheckoutSlot = Arc<tokio::sync::Mutex<Option<SharedCheckout>>>;

/// A job's copy, lent for the time of one run; `None` in it before the first run.
pub(super) type CheckoutLease = tokio::sync::OwnedMutexGuard<Option<SharedCheckout>>;

/// The copies of all jobs that are not over.
pub(super) struct SharedCheckouts {
    handle: EngineHandle,
    known: Mutex<HashMap<JobId, CheckoutSlot>>,
}

impl SharedCheckouts {
    /// Begins to follow the ends of jobs. Must be called within a runtime.
    pub(super) fn start(handle: EngineHandle) -> Arc<Self> {
        let copies = Arc::new(Self { handle, known: Mutex::default() });
        // The subscription comes before the first loan, so that no end is missed.
        let events = copies.handle.engine.subscribe_beside_posts();
        copies.handle.tracker.spawn(copies.clone().mind_ends(events));
        copies
    }

    /// Waits until no other run has the copy of a job.
    ///
    /// # Errors
    /// When that job is over.
    pub(super) async fn lend(self: &Arc<Self>, job: &JobId) -> Result<CheckoutLease, Failure> {
        let over = || jail_refused(format!("the job {job}, in whose copy it was to work, is over"));
        let slot = self.known().entry(job.clone()).or_default().clone();
        // This check comes after the slot is made: a later end finds the slot.
        if self.is_over(job).await {
            self.forget(job);
            return Err(over());
        }
        let lent = slot.clone().lock_owned().await;
        let is_known = self.known().get(job).is_some_and(|known| Arc::ptr_eq(known, &slot));
        if is_known { Ok(lent) } else { Err(over()) }
    }

    /// Checks whether a job is over. A job that the core does not know has been over for long.
    async fn is_over(&self, job: &JobId) -> bool {
        let found = self.handle.look_at(OneJob(job.clone())).await;
        found.is_ok_and(|job| job.is_none_or(|job| job.state.is_over()))
    }

    /// Removes the copies of jobs that are over, and, when the daemon stops, all others.
    async fn mind_ends(self: Arc<Self>, mut events: Listener) {
        loop {
            let event = tokio::select! {
                () = self.handle.shutdown.cancelled() => break,
                event = events.recv() => event,
            };
            match event.as_deref() {
                Ok(Event { kind: EventKind::Job(JobEvent::JobEnded { job, .. }), .. }) => self.forget(job),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.look_for_ends().await,
                Err(RecvError::Closed) => break,
            }
        }
        let all: Vec<CheckoutSlot> = self.known().drain().map(|(_, slot)| slot).collect();
        for slot in all {
            remove(slot).await;
        }
    }

    /// Checks all known jobs after events were missed.
    async fn look_for_ends(self: &Arc<Self>) {
        let jobs: Vec<JobId> = self.known().keys().cloned().collect();
        for job in jobs {
            if self.is_over(&job).await {
                self.forget(&job);
            }
        }
    }

    /// Forgets the copy of a job that is over, and removes it as soon as no run has it.
    /// Does not wait for that.
    fn forget(self: &Arc<Self>, job: &JobId) {
        if let Some(slot) = self.known().remove(job) {
            self.handle.tracker.spawn(remove(slot));
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<JobId, CheckoutSlot>> {
        // Inserting and removing leave it valid at every moment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a copy, once no run has it any more.
async fn remove(slot: CheckoutSlot) {
    let shared = slot.lock_owned().await.take();
    // Only a shutdown of the runtime cancels it, and the next start removes what is left.
    let _removed = tokio::task::spawn_blocking(move || drop(shared)).await;
}
