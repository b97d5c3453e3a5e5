//! The progress of jobs: numbers that are not stored, reported as they change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, watch};

use provost_base::JobId;
use provost_base::limits::PULSES_BUFFERED;
use provost_domain::{Job, JobKind, PhaseName};

/// How far a job is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pulse {
    /// The id of the job.
    pub job: JobId,
    /// The kind of the job.
    pub kind: JobKind,
    /// Which part of it, if it has parts.
    pub phase: Option<PhaseName>,
    /// How far the part is, in percent; or the whole job, if it has no parts.
    pub progress: u8,
}

/// The last one of every job that runs.
#[derive(Clone, Debug)]
pub struct Pulses {
    last: Arc<Mutex<HashMap<JobId, Pulse>>>,
    told: broadcast::Sender<Pulse>,
    /// Counts what readers of logs and of ends wait for: a job's log that has grown, a job that runs no more.
    moved: watch::Sender<u64>,
}

impl Default for Pulses {
    fn default() -> Self {
        Self {
            last: Arc::default(),
            told: broadcast::channel(PULSES_BUFFERED).0,
            moved: watch::Sender::new(0),
        }
    }
}

impl Pulses {
    /// How far a job is, while it runs.
    pub fn of(&self, job: &JobId) -> Option<Pulse> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).get(job).cloned()
    }

    /// Every change from now on. A slow listener misses some, and sees the next.
    pub fn follow(&self) -> broadcast::Receiver<Pulse> {
        self.told.subscribe()
    }

    /// Goes forward within a part, never back.
    pub(super) fn tell(&self, job: &Job, phase: Option<PhaseName>, progress: u8) {
        let pulse = Pulse { job: job.id.clone(), kind: job.kind, phase, progress };
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

    /// A job's log has grown, or a job has ended.
    pub(super) fn has_moved(&self) {
        self.moved.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Changes from now on when a job's log grows or a job ends.
    pub(super) fn moves(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }
}
