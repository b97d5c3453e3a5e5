//! One job, from its beginning to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::plan::{Order, Plan};
use crate::domain::command::{EndJob, MoveJob};
use crate::domain::{Job, JobKind, JobResult, JobState, PhaseName, PhaseState, Refusal};
use crate::service::Provost;

/// What ended a job before its time.
#[derive(Debug)]
pub(super) enum Stop {
    /// It failed, for this reason.
    Failed(String),
    /// Somebody has taken its task back.
    Cancelled,
    /// It is over already, or the daemon is.
    Over,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TaskFinished | Refusal::Unavailable { .. } => Stop::Over,
            refusal => Stop::Failed(refusal.to_string()),
        }
    }
}

/// A job that is being carried out.
pub(super) struct Drive {
    pub(super) provost: Provost,
    /// As it was when this began.
    pub(super) job: Arc<Job>,
    pub(super) order: Order,
    /// Runs that were begun.
    pub(super) runs: AtomicUsize,
    /// Whether one of them has come to run.
    pub(super) is_running: AtomicBool,
    /// What its workers have done, as far as they tell.
    pub(super) steps: AtomicU64,
    /// Which part of its phase the present run is, and of how many.
    pub(super) parts: AtomicU64,
}

impl Provost {
    /// Carries a job out, beside whoever asked for it.
    pub(super) fn drive(&self, job: Arc<Job>, order: Order) {
        tokio::spawn(Drive::new(self.clone(), job, order).carry_out());
    }
}

impl Drive {
    pub(super) fn new(provost: Provost, job: Arc<Job>, order: Order) -> Self {
        let (runs, is_running, steps) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicU64::new(0));
        Self { provost, job, order, runs, is_running, steps, parts: AtomicU64::new(1) }
    }

    pub(super) async fn carry_out(self) {
        let mut kept = JobResult::default();
        let (state, error) = match self.go(&mut kept).await {
            Ok(()) => (JobState::Completed, None),
            Err(Stop::Failed(why)) => (JobState::Failed, Some(why)),
            Err(Stop::Cancelled) => (JobState::Cancelled, Some("cancelled".into())),
            Err(Stop::Over) => return self.provost.pulses().end(&self.job.id),
        };
        if let Err(refusal) = self.end(state, error, kept).await
            && refusal != Refusal::TaskFinished
        {
            tracing::error!(%refusal, job = %self.job.id, "how a job ended is not on record");
        }
        let logs = self.provost.job_logs();
        drop(tokio::task::spawn_blocking(move || logs.remove_old()));
    }

    /// Puts on record how it has ended.
    pub(super) async fn end(
        &self,
        state: JobState,
        error: Option<String>,
        kept: JobResult,
    ) -> Result<(), Refusal> {
        let end = EndJob {
            job: self.job.id.clone(),
            state,
            error: error.map(Into::into),
            result: Some(Arc::new(kept)),
            steps: self.steps.load(Ordering::Relaxed),
        };
        let ended = self.provost.submit(self.provost.host(), end).await;
        self.provost.pulses().end(&self.job.id);
        ended.map(drop)
    }

    async fn go(&self, kept: &mut JobResult) -> Result<(), Stop> {
        match &self.order.plan {
            Plan::Phases(wanted) => self.phases(wanted, kept).await,
            Plan::Once => self.once(kept).await,
            Plan::Code(plan) => self.code(plan, kept).await,
            Plan::Scan => self.scan(kept).await,
            Plan::Workflow(flow) => self.workflow(flow, kept).await,
        }
    }

    /// Whether its parts are told.
    pub(super) fn has_phases(&self) -> bool {
        matches!(self.job.kind, JobKind::Execution | JobKind::Workflow)
    }

    /// A part has begun.
    pub(super) async fn begin(&self, phase: PhaseName) -> Result<(), Stop> {
        self.phase(phase, PhaseState::Running).await
    }

    /// A part is done.
    pub(super) async fn finish(&self, phase: PhaseName) -> Result<(), Stop> {
        self.phase(phase, PhaseState::Completed).await
    }

    async fn phase(&self, phase: PhaseName, state: PhaseState) -> Result<(), Stop> {
        if self.is_past(phase, state) {
            return Ok(());
        }
        let moved = Some((phase, state));
        let verb = MoveJob { job: self.job.id.clone(), phase: moved, task: None, runs: false };
        self.provost.submit(self.provost.host(), verb).await?;
        Ok(())
    }

    /// Whether an earlier daemon came further.
    fn is_past(&self, phase: PhaseName, state: PhaseState) -> bool {
        let known = self.job.phases.iter().find(|(name, _)| *name == phase).map(|(_, it)| it.state);
        known == Some(PhaseState::Completed) || known == Some(state)
    }
}

pub(super) fn failed(why: &impl ToString) -> Stop {
    Stop::Failed(why.to_string())
}
