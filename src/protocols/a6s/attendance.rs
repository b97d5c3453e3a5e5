//! The questions about code that connections wait for. A6s 6.4.
//!
//! A connection that waits for an answer gets no event about it. A connection that got the error about the delay
//! does, and where nobody is there any more who asked, everybody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::JobId;
use crate::base::limits::A6S_WATCHED_MAX;

/// Who waits for what. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Attendance(Arc<Mutex<BTreeMap<JobId, Attended>>>);

/// A question that is being answered.
#[derive(Default)]
struct Attended {
    /// So many requests wait for it.
    waiting: usize,
    /// Whether one of them has had its answer.
    answered: bool,
}

/// A request that waits. When it is dropped, it does not wait any more.
pub(super) struct Attending {
    attendance: Attendance,
    job: JobId,
}

impl Attendance {
    /// A request waits from now on.
    pub(super) fn attend(&self, job: &JobId) -> Attending {
        let mut all = self.all();
        if all.len() >= A6S_WATCHED_MAX {
            // Their ends were missed.
            all.retain(|_, it| it.waiting > 0);
        }
        all.entry(job.clone()).or_default().waiting += 1;
        Attending { attendance: self.clone(), job: job.clone() }
    }

    /// It is over; whether there is nobody who has its answer, or is about to.
    pub(super) fn end(&self, job: &JobId) -> bool {
        self.all().remove(job).is_none_or(|it| it.waiting == 0 && !it.answered)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<JobId, Attended>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attending {
    /// The answer is there.
    pub(super) fn answered(self) {
        if let Some(it) = self.attendance.all().get_mut(&self.job) {
            it.answered = true;
        }
    }

    /// It takes too long. Whether its end is still to be told; otherwise it is over by now.
    pub(super) fn gives_up(self) -> bool {
        self.attendance.all().contains_key(&self.job)
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        if let Some(it) = self.attendance.all().get_mut(&self.job) {
            it.waiting = it.waiting.saturating_sub(1);
        }
    }
}
