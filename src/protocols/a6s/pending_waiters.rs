//! Counts the connections that wait for the answer to a question about code. A6s 6.4.
//!
//! A connection that waits for an answer gets no event about it. The door sends `execution.complete` to the
//! connections that got the error about the delay. If every connection that asked has ended, it sends the
//! event to all clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_base::JobId;
use provost_base::limits::A6S_WATCHED_MAX;

/// Counts for each question the requests that wait for its answer. Clones share the counts.
#[derive(Clone, Default)]
pub(super) struct PendingWaiters(Arc<Mutex<BTreeMap<JobId, WaiterCount>>>);

/// A question that is being answered.
#[derive(Default)]
struct WaiterCount {
    /// The number of requests that wait for the answer.
    waiting: usize,
    /// Whether one of them has had its answer.
    answered: bool,
}

/// A request that waits for an answer; it stops waiting when this value is dropped.
pub(super) struct Waiter {
    waiters: PendingWaiters,
    job: JobId,
}

impl PendingWaiters {
    /// Counts a request that waits from now on.
    pub(super) fn attend(&self, job: &JobId) -> Waiter {
        let mut all = self.all();
        if all.len() >= A6S_WATCHED_MAX {
            // These questions have ended, but the events of their ends were missed.
            all.retain(|_, it| it.waiting > 0);
        }
        all.entry(job.clone()).or_default().waiting += 1;
        Waiter { waiters: self.clone(), job: job.clone() }
    }

    /// Removes a question that has ended. Returns whether no request has got its answer
    /// or still waits for it.
    pub(super) fn end(&self, job: &JobId) -> bool {
        self.all().remove(job).is_none_or(|it| it.waiting == 0 && !it.answered)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<JobId, WaiterCount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Notes that this request has got the answer.
    pub(super) fn answered(self) {
        if let Some(it) = self.waiters.all().get_mut(&self.job) {
            it.answered = true;
        }
    }

    /// Ends the wait without an answer. Returns whether the question still goes on, so that an event of its end
    /// will follow; otherwise it has ended in the meantime.
    pub(super) fn gives_up(self) -> bool {
        self.waiters.all().contains_key(&self.job)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(it) = self.waiters.all().get_mut(&self.job) {
            it.waiting = it.waiting.saturating_sub(1);
        }
    }
}
