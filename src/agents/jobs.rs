//! Jobs: editors' requests, carried out by tasks and followed to the end.
//!
//! A job is on record before its asker has an answer, and with it the effect that carries it out: the job's runner goes on
//! without a listener. After a crash the effect is still owed. A job whose task still waits then goes on, and a job that ran
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
pub use progress::JobProgress;
pub(super) use progress::ProgressBoard;
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
    /// The id of the job: one of [`fresh_job_id`]'s.
    pub id: JobId,
    /// The kind of job, which decides how editors see it.
    pub kind: JobKind,
    /// The method that was called.
    pub method: &'static str,
    /// A title of the work, for lists.
    pub title: String,
    /// The agent, as the asker named it.
    pub agent: String,
    /// The worker behind that name.
    pub worker: AgentId,
    /// The prompt of the worker.
    pub prompt: String,
    /// The directory where the worker works, relative to the workspace.
    pub working_dir: Option<String>,
    /// Whether the worker is an agent: it works in a private copy, and its changes there are kept.
    pub by_agent: bool,
    /// The digest by which the same question is recognised; `None` if each request is a job of its own.
    pub key: Option<Digest>,
    /// The plan by which the job is carried out.
    pub plan: Plan,
}

/// The error of a job that ran when its daemon died.
const RESTARTED: &str = "daemon restarted";

/// The error of a job that ran when its daemon was stopped.
const STOPPED: &str = "daemon stopped";

/// How long a daemon that stops waits for the results of its jobs.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

impl AgentService {
    /// Records a job, which is owed then; or returns the job that answers the same question already.
    ///
    /// # Errors
    /// A [`Refusal`]; there is no new job then.
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

    /// Takes up a job that is owed: begins it, or goes on if its runs have not begun. If its runs had begun under an
    /// earlier daemon, they are lost, and the job ends. Returns as soon as the job is under way.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`]; it is still owed then.
    pub async fn take_up_job(&self, id: JobId, had_begun: bool) -> Result<(), Refusal> {
        let Some(job) = self.provost().view(OneJob(id)).await?.filter(|job| !job.state.is_over()) else {
            // The job was cancelled meanwhile.
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

    /// Ends the running jobs, since the daemon stops; jobs that wait go on with the next one. Returns the ended jobs.
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

    /// Waits for a moment until the results of these jobs are on record, after their runs have ended.
    pub async fn settle_jobs(&self, ended: &[JobId]) {
        let until = Instant::now() + SETTLED_WITHIN;
        let mut moves = self.pulses().moves();
        while ended.iter().any(|job| self.pulses().of(job).is_some()) {
            if !matches!(timeout_at(until, moves.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Returns the stored plan of a job that is not over, if it can be read.
    async fn job_order(&self, id: &JobId) -> Result<Option<JobRecord>, Refusal> {
        let id = id.clone();
        let found = self.provost().engine().read(move |reader| reader.job_order(&id)).await;
        let order = found.map_err(|err| unreadable(&err))?;
        Ok(order.and_then(|it| serde_json::from_str::<JobRecord>(it.as_str()).ok()))
    }

    /// Returns the steps of a workflow, in their order.
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

    /// Returns the jobs of these kinds, oldest first.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn jobs(&self, kinds: &'static [JobKind]) -> Result<Vec<Arc<Job>>, Refusal> {
        self.provost().view(JobsOf(kinds)).await
    }

    /// Returns the newest job that answers the same question.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn same_job(&self, key: Digest) -> Result<Option<Arc<Job>>, Refusal> {
        self.provost().view(SameJob(key)).await
    }

    /// Returns the results of a job; empty while it is not over.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn job_result(&self, id: &JobId) -> Result<JobResult, Refusal> {
        let id = id.clone();
        let found = self.provost().engine().read(move |reader| reader.job_result(&id)).await;
        Ok(found.map_err(|err| unreadable(&err))?.unwrap_or_default())
    }

    /// Waits until a job is over; `None` if it is not over at that moment.
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

    /// Cancels a job. A job that is over does not change.
    ///
    /// # Errors
    /// A [`Refusal`]; nothing has changed then.
    pub async fn cancel_job(&self, who: &Principal, id: &JobId) -> Result<Arc<Job>, Refusal> {
        let verb = CancelJob { job: id.clone(), reason: "taken back by its editor".into() };
        Ok(self.provost().submit(who, verb).await?.job)
    }

    /// Stores the feedback on a job's outcome.
    ///
    /// # Errors
    /// A [`Refusal`]; nothing has changed then.
    pub async fn judge_job(&self, who: &Principal, verb: NoteFeedback) -> Result<(), Refusal> {
        self.provost().submit(who, verb).await.map(drop)
    }

    /// Returns the end of the output of a job's workers so far.
    ///
    /// # Errors
    /// As [`AgentService::job`], and [`Refusal::NotReady`] if its log cannot be read.
    pub async fn job_output(&self, id: &JobId) -> Result<LogPart, Refusal> {
        let (job, logs) = (self.job(id).await?, self.job_logs());
        in_log(move || logs.tail(&job.id, JOB_OUTPUT_BYTES_MAX)).await
    }

    /// Returns a piece of the output of a job's workers from an offset on, and whether the output is complete.
    /// Waits until the given moment for new output.
    ///
    /// # Errors
    /// As for [`AgentService::job_output`].
    pub async fn job_log(&self, id: &JobId, from: u64, until: Instant) -> Result<(LogPart, bool), Refusal> {
        let mut moves = self.pulses().moves();
        loop {
            // The job is read before its log: the output is written down before a job ends by itself.
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

    /// Returns the progress of jobs, with its changes.
    pub fn pulses(&self) -> &ProgressBoard {
        &self.0.pulses
    }
}

/// Reads a log on a thread that may block.
async fn in_log(
    read: impl FnOnce() -> Result<LogPart, StoreError> + Send + 'static,
) -> Result<LogPart, Refusal> {
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.map_err(|err| Refusal::NotReady { why: err.to_string().into() })?;
    read.map_err(|err| unreadable(&err))
}

/// Makes an id of sixteen characters that a client cannot guess.
///
/// # Errors
/// [`Refusal::NotReady`] if the system has no random numbers.
pub fn fresh_job_id() -> Result<JobId, Refusal> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|err| Refusal::NotReady {
        why: format!("the system has no random numbers: {err}").into(),
    })?;
    let text: String = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    Ok(JobId::parse(&text).expect("sixteen letters and digits are an id"))
}
