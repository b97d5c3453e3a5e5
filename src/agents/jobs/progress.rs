//! The progress of jobs: numbers that are not stored, reported as they change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, watch};

use provost_base::JobId;
use provost_base::limits::PROGRESS_BUFFERED;
use provost_domain::{Job, JobKind, PhaseName};

/// The progress of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobProgress {
    /// The id of the job.
    pub job: JobId,
    /// The kind of the job.
    pub kind: JobKind,
    /// The present part of the job, if it has parts.
    pub phase: Option<PhaseName>,
    /// The progress of the part, in percent; of the whole job if it has no parts.
    pub progress: u8,
}

/// The last progress of every running job.
#[derive(Clone, Debug)]
pub struct ProgressBoard {
    last: Arc<Mutex<HashMap<JobId, JobProgress>>>,
    told: broadcast::Sender<JobProgress>,
    /// The number of changes that readers of logs and of ends wait for: a job's log has grown, or a job runs no more.
    moved: watch::Sender<u64>,
}

impl Default for ProgressBoard {
    fn default() -> Self {
        Self {
            last: Arc::default(),
            told: broadcast::channel(PROGRESS_BUFFERED).0,
            moved: watch::Sender::new(0),
        }
    }
}

impl ProgressBoard {
    /// Returns the progress of a job, while it runs.
    pub fn of(&self, job: &JobId) -> Option<JobProgress> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).get(job).cloned()
    }

    /// Returns every change from now on. A slow listener misses some, and gets the next.
    pub fn follow(&self) -> broadcast::Receiver<JobProgress> {
        self.told.subscribe()
    }

    /// Reports a progress, which within a part never goes back.
    pub(super) fn tell(&self, job: &Job, phase: Option<PhaseName>, progress: u8) {
        let pulse = JobProgress { job: job.id.clone(), kind: job.kind, phase, progress };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.get(&job.id);
        if known.is_some_and(|known| known.phase == phase && known.progress >= progress) {
            return;
        }
        last.insert(job.id.clone(), pulse.clone());
        drop(last);
        // Without a listener, sending fails; that is no error.
        let _nobody = self.told.send(pulse);
    }

    pub(super) fn end(&self, job: &JobId) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).remove(job);
        self.has_moved();
    }

    /// Notes that a job's log has grown, or that a job has ended.
    pub(super) fn has_moved(&self) {
        self.moved.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns a receiver that changes when a job's log grows or a job ends.
    pub(super) fn moves(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }
}
