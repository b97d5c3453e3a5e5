//! The runner of a job: carries out its plan, and records its end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::plan::{JobRecord, Plan};
use crate::AgentService;
use provost_base::limits::JOB_ERROR_BYTES_MAX;
use provost_domain::command::{EndJob, KeepResult, MoveJob};
use provost_domain::{Job, JobKind, JobResult, JobState, PhaseName, PhaseState, Refusal, Task, Usage};

/// The reason why a job ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The job failed, for this reason.
    Failed(String),
    /// The job's task was cancelled.
    Cancelled,
    /// The job is over already, or the daemon stops.
    Over,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TaskFinished | Refusal::Unavailable { .. } | Refusal::Stopping => Stop::Over,
            refusal => Stop::Failed(refusal.to_string()),
        }
    }
}

/// A job that is being carried out.
pub(super) struct JobRunner {
    pub(super) service: AgentService,
    /// The job as it was when its runner began.
    pub(super) job: Arc<Job>,
    pub(super) order: JobRecord,
    /// The number of runs that were begun.
    pub(super) runs: AtomicUsize,
    /// Whether one of them has run.
    pub(super) is_running: AtomicBool,
    /// The number of the workers' steps, as far as the workers report them.
    pub(super) steps: AtomicU64,
    /// The use that the workers report.
    pub(super) used: Mutex<Usage>,
    /// Which part of the phase the present run is, and the number of parts.
    pub(super) parts: AtomicU64,
}

impl AgentService {
    /// Carries out a job independently of its asker.
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

    /// Keeps the results of a job that was over before its last run was, for instance cancelled.
    async fn keep_late(&self, kept: JobResult) {
        let keep = KeepResult { job: self.job.id.clone(), result: Arc::new(kept) };
        // If the daemon stops, nothing is kept any more, and a job that is not over goes on with the next one.
        if let Err(refusal) = self.service.provost().submit(self.service.provost().system(), keep).await {
            tracing::debug!(%refusal, job = %self.job.id, "what a job had brought about is not on record");
        }
        self.service.pulses().end(&self.job.id);
    }

    /// Lists the changes that are not offered in a file among the artifacts: editors show files, but have no
    /// list for missing changes.
    fn name_what_is_missing(&self, kept: &mut JobResult) {
        // The answer to a question about code contains only the files that were asked for.
        if let Some(left_out) = kept.left_out.as_ref().filter(|_| self.job.kind != JobKind::Code) {
            let text =
                format!("# Not offered\n\n{}\n", left_out.replace("; ", "\n- ").replacen(": ", ":\n\n- ", 1));
            kept.artifacts.push(self.log("left_out", &text));
        }
    }

    /// Returns the use that the job's runs have reported so far, if they have.
    pub(super) fn has_used(&self) -> Option<Usage> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (used != Usage::default()).then_some(used)
    }

    /// Adds the use that a finished run reports.
    pub(super) fn count(&self, task: &Task) {
        let metadata = task.notes.last().and_then(|note| note.report.metadata.as_ref());
        if let Some(usage) = Usage::of_metadata(metadata) {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).add(&usage);
            self.service.count_used(&task.order.worker, &usage);
        }
    }

    /// Records the job's end.
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

    /// Checks whether the job's parts are reported.
    pub(super) fn has_phases(&self) -> bool {
        matches!(self.job.kind, JobKind::Execution | JobKind::Workflow)
    }

    /// Reports that a part has begun.
    pub(super) async fn begin(&self, phase: PhaseName) -> Result<(), Stop> {
        self.phase(phase, PhaseState::Running).await
    }

    /// Reports that a part is done.
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

    /// Checks whether an earlier daemon came further.
    fn is_past(&self, phase: PhaseName, state: PhaseState) -> bool {
        let known = self.job.phases.iter().find(|(name, _)| *name == phase).map(|(_, it)| it.state);
        known == Some(PhaseState::Completed) || known == Some(state)
    }
}

/// Returns the reason why the offered changes are incomplete, if they are: applying them would leave a change half done.
fn a_part_only(kept: &JobResult) -> Option<String> {
    let left_out = kept.left_out.as_deref().filter(|_| kept.incomplete)?;
    let files = kept.artifacts.iter().filter(|it| &*it.kind != "log").count();
    let said = format!("what has changed is offered in part, {files} files of it; {left_out}");
    Some(said[..said.floor_char_boundary(JOB_ERROR_BYTES_MAX.min(said.len()))].to_owned())
}

pub(super) fn failed(why: &impl ToString) -> Stop {
    Stop::Failed(why.to_string())
}
