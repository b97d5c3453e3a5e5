//! The runner of a job: carries out its plan, and records its end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::plan::{JobRecord, Plan};
use crate::AgentService;
use provost_base::limits::JOB_ERROR_BYTES_MAX;
use provost_domain::command::{EndJob, KeepResult, MoveJob};
use provost_domain::{Job, JobKind, JobResult, JobState, PhaseName, PhaseState, Refusal, Task, Usage};

/// What ended a job before its time.
#[derive(Debug)]
pub(super) enum Stop {
    /// It failed, for this reason.
    Failed(String),
    /// Its task was cancelled.
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
pub(super) struct JobRunner {
    pub(super) service: AgentService,
    /// As it was when this began.
    pub(super) job: Arc<Job>,
    pub(super) order: JobRecord,
    /// Runs that were begun.
    pub(super) runs: AtomicUsize,
    /// Whether one of them has come to run.
    pub(super) is_running: AtomicBool,
    /// What its workers have done, as far as they tell.
    pub(super) steps: AtomicU64,
    /// What they say that they have used.
    pub(super) used: Mutex<Usage>,
    /// Which part of its phase the present run is, and of how many.
    pub(super) parts: AtomicU64,
}

impl AgentService {
    /// Carries a job out, beside its asker.
    pub(super) fn run_job(&self, job: Arc<Job>, order: JobRecord) {
        tokio::spawn(JobRunner::new(self.clone(), job, order).carry_out());
    }
}

impl JobRunner {
    pub(super) fn new(service: AgentService, job: Arc<Job>, order: JobRecord) -> Self {
        let (runs, is_running, steps) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let used = Mutex::default();
        Self { service, job, order, runs, is_running, steps, used, parts: AtomicU64::new(1) }
    }

    pub(super) async fn carry_out(self) {
        let mut kept = JobResult::default();
        let went = self.go(&mut kept).await;
        self.name_what_is_missing(&mut kept);
        kept.usage = self.has_used();
        let (state, error) = match went {
            Ok(()) => match a_part_only(&kept) {
                Some(why) => (JobState::Failed, Some(why)),
                None => (JobState::Completed, None),
            },
            Err(Stop::Failed(why)) => (JobState::Failed, Some(why)),
            Err(Stop::Cancelled) => (JobState::Cancelled, Some("cancelled".into())),
            Err(Stop::Over) => return self.keep_late(kept).await,
        };
        match self.end(state, error, kept.clone()).await {
            Ok(()) => {}
            Err(Refusal::TaskFinished) => self.keep_late(kept).await,
            Err(refusal) => {
                tracing::error!(%refusal, job = %self.job.id, "how a job ended is not on record");
            }
        }
        let logs = self.service.job_logs();
        drop(tokio::task::spawn_blocking(move || logs.remove_old()));
    }

    /// A job that was over before its last run was, taken back say: what it had brought about until then.
    async fn keep_late(&self, kept: JobResult) {
        let keep = KeepResult { job: self.job.id.clone(), result: Arc::new(kept) };
        // Where the daemon is what is over, nothing is kept any more, and a job that is not goes on with the next one.
        if let Err(refusal) = self.service.provost().submit(self.service.provost().system(), keep).await {
            tracing::debug!(%refusal, job = %self.job.id, "what a job had brought about is not on record");
        }
        self.service.pulses().end(&self.job.id);
    }

    /// Lists what is not offered in a file among the artifacts: editors show files, but have no
    /// list of what is missing.
    fn name_what_is_missing(&self, kept: &mut JobResult) {
        // The answer to a question about code is the files that were asked for, and nothing beside them.
        if let Some(left_out) = kept.left_out.as_ref().filter(|_| self.job.kind != JobKind::Code) {
            let text =
                format!("# Not offered\n\n{}\n", left_out.replace("; ", "\n- ").replacen(": ", ":\n\n- ", 1));
            kept.artifacts.push(self.log("left_out", &text));
        }
    }

    /// What its runs have used so far, where they say so.
    pub(super) fn has_used(&self) -> Option<Usage> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (used != Usage::default()).then_some(used)
    }

    /// A run is over: what it says that it has used counts for its job.
    pub(super) fn count(&self, task: &Task) {
        let metadata = task.notes.last().and_then(|note| note.report.metadata.as_ref());
        if let Some(usage) = Usage::of_metadata(metadata) {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).add(&usage);
            self.service.count_used(&task.order.worker, &usage);
        }
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
        let ended = self.service.provost().submit(self.service.provost().system(), end).await;
        let goes_on = matches!(ended, Err(Refusal::TaskFinished)) && self.job.step.is_none();
        if !goes_on {
            self.service.pulses().end(&self.job.id);
        }
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
        self.service.provost().submit(self.service.provost().system(), verb).await?;
        Ok(())
    }

    /// Whether an earlier daemon came further.
    fn is_past(&self, phase: PhaseName, state: PhaseState) -> bool {
        let known = self.job.phases.iter().find(|(name, _)| *name == phase).map(|(_, it)| it.state);
        known == Some(PhaseState::Completed) || known == Some(state)
    }
}

/// Why what is offered is no whole, where that is so: to apply it would leave a change half done.
fn a_part_only(kept: &JobResult) -> Option<String> {
    let left_out = kept.left_out.as_deref().filter(|_| kept.incomplete)?;
    let files = kept.artifacts.iter().filter(|it| &*it.kind != "log").count();
    let said = format!("what has changed is offered in part, {files} files of it; {left_out}");
    Some(said[..said.floor_char_boundary(JOB_ERROR_BYTES_MAX.min(said.len()))].to_owned())
}

pub(super) fn failed(why: &impl ToString) -> Stop {
    Stop::Failed(why.to_string())
}
