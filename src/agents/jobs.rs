//! Jobs: editors' requests, carried out by tasks and followed to the end.
//!
//! A job is on record before its asker has an answer, and with it the effect that carries it out: the job's runner goes on
//! without a listener. After a crash the effect is still owed. A job whose task still waits then goes on, and one that ran
//! ends.

mod checks;
mod code;
mod follow;
mod orchestration;
mod output_reader;
mod phases;
mod plan;
mod progress;
mod runner;
mod runs;
mod scan;
mod workflow_run;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

pub use phases::Wanted;
use plan::JobRecord;
pub use plan::Plan;
pub use progress::Pulse;
pub(super) use progress::Pulses;
pub use runs::KEPT_WITHIN;

use super::AgentService;
use provost_base::limits::JOB_OUTPUT_BYTES_MAX;
use provost_base::{AgentId, Digest, JobId, Json};
use provost_domain::command::{CancelJob, EndJob, NoteFeedback, OpenJob};
use provost_domain::view::{JobsOf, OneJob, SameJob, StepsOf, UnfinishedJobs};
use provost_domain::{
    Event, EventKind, Job, JobEvent, JobKind, JobResult, JobState, Principal, Refusal, StepOf,
};
use provost_service::unreadable;
use provost_store::{LogPart, StoreError};

/// A request for a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobAsk {
    /// By which it will be known: one of [`fresh_job_id`]'s.
    pub id: JobId,
    /// The kind of job, which decides how editors see it.
    pub kind: JobKind,
    /// The method that was called.
    pub method: &'static str,
    /// What is to be done, for lists.
    pub title: String,
    /// The agent, as asked for.
    pub agent: String,
    /// The worker that it is.
    pub worker: AgentId,
    /// The prompt of the worker.
    pub prompt: String,
    /// The directory where it works, relative to the workspace.
    pub working_dir: Option<String>,
    /// Whether the worker is an agent: it works in a private copy, and what it changes there is kept.
    pub by_agent: bool,
    /// Digest by which the same question is recognised; `None` where each request is a job of its own.
    pub key: Option<Digest>,
    /// How it is carried out.
    pub plan: Plan,
}

/// A job that ran when its daemon ended.
const RESTARTED: &str = "daemon restarted";

/// A job that ran when its daemon was stopped.
const STOPPED: &str = "daemon stopped";

/// How long a daemon that stops waits for what its jobs had brought about.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

impl AgentService {
    /// Puts a job on record, by which it is owed; or answers with the one that does the same already.
    ///
    /// # Errors
    /// A [`Refusal`]; then there is none.
    pub async fn begin_job(&self, who: &Principal, ask: JobAsk) -> Result<Arc<Job>, Refusal> {
        Ok(self.record_job(who, ask, None).await?.0)
    }

    /// Records a job.
    async fn record_job(
        &self,
        who: &Principal,
        ask: JobAsk,
        step: Option<StepOf>,
    ) -> Result<(Arc<Job>, JobRecord), Refusal> {
        let order = JobRecord {
            prompt: ask.prompt.into(),
            working_dir: ask.working_dir.map(Into::into),
            by_agent: ask.by_agent,
            plan: ask.plan,
        };
        let verb = OpenJob {
            job: ask.id,
            kind: ask.kind,
            method: ask.method.into(),
            title: ask.title.into(),
            agent: ask.agent.into(),
            worker: ask.worker,
            order: Json::from_value(&serde_json::to_value(&order).unwrap_or_default()),
            key: ask.key,
            step,
        };
        let job = self.provost().submit(who, verb).await?.job;
        Ok((job, order))
    }

    /// Takes up a job that is owed: begins it, or goes on with one whose runs have not begun. One whose runs had begun under an
    /// earlier daemon has lost them, and ends. Returns as soon as the job is under way.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`]; then it is still owed.
    pub async fn take_up_job(&self, id: JobId, had_begun: bool) -> Result<(), Refusal> {
        let Some(job) = self.provost().view(OneJob(id)).await?.filter(|job| !job.state.is_over()) else {
            // Taken back meanwhile.
            return Ok(());
        };
        let order = if had_begun { None } else { self.job_order(&job.id).await? };
        let Some(order) = order else {
            let (state, error) = (JobState::Failed, Some(RESTARTED.into()));
            let end = EndJob { job: job.id.clone(), state, error, result: None, steps: 0 };
            return match self.provost().submit(self.provost().system(), end).await {
                Ok(_) | Err(Refusal::TaskFinished) => Ok(()),
                Err(refusal) => Err(refusal),
            };
        };
        self.run_job(job, order);
        Ok(())
    }

    /// Ends what runs, since the daemon stops; what waits goes on with the next one. Which those are.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn end_running_jobs(&self) -> Result<Vec<JobId>, Refusal> {
        let mut ended = Vec::new();
        for job in self.provost().view(UnfinishedJobs).await? {
            if job.state != JobState::Running || job.step.is_some() {
                continue;
            }
            let (state, error) = (JobState::Failed, Some(STOPPED.into()));
            let end = EndJob { job: job.id.clone(), state, error, result: None, steps: job.steps };
            if self.provost().submit(self.provost().system(), end).await.is_ok() {
                ended.push(job.id.clone());
            }
        }
        Ok(ended)
    }

    /// Waits for a moment until what these had brought about is on record, after their runs have ended.
    pub async fn settle_jobs(&self, ended: &[JobId]) {
        let until = Instant::now() + SETTLED_WITHIN;
        let mut moves = self.pulses().moves();
        while ended.iter().any(|job| self.pulses().of(job).is_some()) {
            if !matches!(timeout_at(until, moves.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// What was asked of a job that is not over, where it can be read.
    async fn job_order(&self, id: &JobId) -> Result<Option<JobRecord>, Refusal> {
        let id = id.clone();
        let found = self.provost().engine().read(move |reader| reader.job_order(&id)).await;
        let order = found.map_err(|err| unreadable(&err))?;
        Ok(order.and_then(|it| serde_json::from_str::<JobRecord>(it.as_str()).ok()))
    }

    /// The steps of a workflow, in their order.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn job_steps(&self, workflow: &JobId) -> Result<Vec<Arc<Job>>, Refusal> {
        self.provost().view(StepsOf(workflow.clone())).await
    }

    /// Finds a job, also one that is over.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`], [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn job(&self, id: &JobId) -> Result<Arc<Job>, Refusal> {
        self.provost().view(OneJob(id.clone())).await?.ok_or(Refusal::TaskNotFound)
    }

    /// The jobs of these kinds, oldest first.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn jobs(&self, kinds: &'static [JobKind]) -> Result<Vec<Arc<Job>>, Refusal> {
        self.provost().view(JobsOf(kinds)).await
    }

    /// The newest job that answers the same question.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn same_job(&self, key: Digest) -> Result<Option<Arc<Job>>, Refusal> {
        self.provost().view(SameJob(key)).await
    }

    /// What a job has brought about; nothing while it is not over.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn job_result(&self, id: &JobId) -> Result<JobResult, Refusal> {
        let id = id.clone();
        let found = self.provost().engine().read(move |reader| reader.job_result(&id)).await;
        Ok(found.map_err(|err| unreadable(&err))?.unwrap_or_default())
    }

    /// Waits until a job is over; `None` when it is not by then.
    ///
    /// # Errors
    /// As [`AgentService::job`].
    pub async fn job_over(&self, id: &JobId, until: Instant) -> Result<Option<Arc<Job>>, Refusal> {
        let ended = |event: &Event| matches!(&event.kind, EventKind::Job(JobEvent::JobEnded { job, .. }) if job == id);
        let over = || async {
            let job = self.job(id).await?;
            Ok(job.state.is_over().then_some(job))
        };
        self.provost().engine().wait_for(until, ended, over).await
    }

    /// Takes a job back. One that is over stays as it is.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn cancel_job(&self, who: &Principal, id: &JobId) -> Result<Arc<Job>, Refusal> {
        let verb = CancelJob { job: id.clone(), reason: "taken back by its editor".into() };
        Ok(self.provost().submit(who, verb).await?.job)
    }

    /// Keeps the feedback on a job's outcome.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn judge_job(&self, who: &Principal, verb: NoteFeedback) -> Result<(), Refusal> {
        self.provost().submit(who, verb).await.map(drop)
    }

    /// The end of what a job's workers have said, so far.
    ///
    /// # Errors
    /// As [`AgentService::job`], and [`Refusal::Unavailable`] when its log cannot be read.
    pub async fn job_output(&self, id: &JobId) -> Result<LogPart, Refusal> {
        let (job, logs) = (self.job(id).await?, self.job_logs());
        in_log(move || logs.tail(&job.id, JOB_OUTPUT_BYTES_MAX)).await
    }

    /// What a job's workers have said, from a byte on, a piece at a time, and whether nothing more will come.
    /// Waits until then for something to come.
    ///
    /// # Errors
    /// As for [`AgentService::job_output`].
    pub async fn job_log(&self, id: &JobId, from: u64, until: Instant) -> Result<(LogPart, bool), Refusal> {
        let mut moves = self.pulses().moves();
        loop {
            // Looked at before the log is: what is said is written down before a job ends by itself.
            let (job, logs) = (self.job(id).await?, self.job_logs());
            let log_of = job.id.clone();
            let part = in_log(move || logs.from(&log_of, from, JOB_OUTPUT_BYTES_MAX)).await?;
            let nothing = part.text.is_empty();
            if !nothing || job.state.is_over() || Instant::now() >= until {
                return Ok((part, nothing && job.state.is_over()));
            }
            tokio::select! {
                over = self.job_over(id, until) => { over?; }
                _grown = moves.changed() => {}
            }
        }
    }

    /// How far jobs are, as they go on.
    pub fn pulses(&self) -> &Pulses {
        &self.0.pulses
    }
}

/// Reads a log on a thread that may block.
async fn in_log(
    read: impl FnOnce() -> Result<LogPart, StoreError> + Send + 'static,
) -> Result<LogPart, Refusal> {
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.map_err(|err| Refusal::Unavailable { why: err.to_string().into() })?;
    read.map_err(|err| unreadable(&err))
}

/// Makes an id of sixteen characters that no client can guess.
///
/// # Errors
/// [`Refusal::NotReady`] where the system has no random numbers.
pub fn fresh_job_id() -> Result<JobId, Refusal> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|err| Refusal::NotReady {
        why: format!("the system has no random numbers: {err}").into(),
    })?;
    let text: String = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    Ok(JobId::parse(&text).expect("sixteen letters and digits are an id"))
}
