//! Jobs: what editors ask for, carried out by tasks and followed to the end.
//!
//! A job is put on record before it is answered for, and its driver goes on whether anybody listens or not. A daemon
//! that starts goes on with jobs whose task waits still, and ends those that ran.

mod drive;
mod pulse;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

pub use pulse::Pulse;
pub(super) use pulse::Pulses;

use super::{Provost, unreadable};
use crate::base::{AgentId, Digest, JobId, Json};
use crate::domain::command::{CancelJob, EndJob, NoteFeedback, OpenJob};
use crate::domain::view::{JobsOf, OneJob, SameJob, UnfinishedJobs};
use crate::domain::{Answer, EventKind, Job, JobEvent, JobKind, JobResult, JobState, Principal, Refusal};

/// What is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobAsk {
    /// By which it will be known: one of [`fresh_job_id`]'s.
    pub id: JobId,
    /// What kind of question.
    pub kind: JobKind,
    /// The method that was called.
    pub method: &'static str,
    /// What is to be done, for lists.
    pub title: String,
    /// The agent, as asked for.
    pub agent: String,
    /// The worker that it is.
    pub worker: AgentId,
    /// What the worker is told.
    pub prompt: String,
    /// Where it works, within the workspace.
    pub working_dir: Option<String>,
    /// Whether the worker is an agent: it works in a private copy, and what it changes there is kept.
    pub by_agent: bool,
    /// By what the same question is recognised.
    pub key: Option<Digest>,
}

/// What carries a job out, kept with it for the next daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Order {
    prompt: Box<str>,
    working_dir: Option<Box<str>>,
    by_agent: bool,
}

/// What a job's tasks have said, as one text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobOutput {
    /// As far as it was kept, without escape sequences.
    pub text: String,
    /// How many bytes came before it.
    pub earlier: u64,
}

/// A job that ran when its daemon ended.
const RESTARTED: &str = "daemon restarted";

impl Provost {
    /// Puts a job on record and begins it.
    ///
    /// # Errors
    /// A [`Refusal`]; then there is none.
    pub async fn begin_job(&self, who: &Principal, ask: JobAsk) -> Result<Arc<Job>, Refusal> {
        let order = Order {
            prompt: ask.prompt.into(),
            working_dir: ask.working_dir.map(Into::into),
            by_agent: ask.by_agent,
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
        };
        let job = done(self.submit(who, verb).await?)?.job;
        self.drive(job.clone(), order);
        Ok(job)
    }

    /// Goes on with what an earlier daemon has left.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn resume_jobs(&self) -> Result<(), Refusal> {
        for job in self.view(UnfinishedJobs).await? {
            // One that waited may have begun by now.
            let waits = job.state == JobState::Queued
                && match job.tasks.last() {
                    None => true,
                    Some(task) => self.task(task).await.is_ok(),
                };
            let order = job.order.as_ref().and_then(|it| serde_json::from_str::<Order>(it.as_str()).ok());
            match order.filter(|_| waits) {
                Some(order) => self.drive(job, order),
                None => {
                    let (state, error) = (JobState::Failed, Some(RESTARTED.into()));
                    let end = EndJob { job: job.id.clone(), state, error, result: None };
                    self.submit(self.host(), end).await?;
                }
            }
        }
        Ok(())
    }

    /// A job.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`], [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn job(&self, id: &JobId) -> Result<Arc<Job>, Refusal> {
        self.view(OneJob(id.clone())).await?.ok_or(Refusal::TaskNotFound)
    }

    /// The jobs of these kinds, oldest first.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn jobs(&self, kinds: &'static [JobKind]) -> Result<Vec<Arc<Job>>, Refusal> {
        self.view(JobsOf(kinds)).await
    }

    /// The newest job that answers the same question.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn same_job(&self, key: Digest) -> Result<Option<Arc<Job>>, Refusal> {
        self.view(SameJob(key)).await
    }

    /// What a job has brought about; nothing while it is not over.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn job_result(&self, id: &JobId) -> Result<JobResult, Refusal> {
        let id = id.clone();
        let found = self.engine().read(move |reader| reader.job_result(&id)).await;
        Ok(found.map_err(|err| unreadable(&err))?.unwrap_or_default())
    }

    /// Waits until a job is over; `None` when it is not by then.
    ///
    /// # Errors
    /// As [`Provost::job`].
    pub async fn job_over(&self, id: &JobId, until: Instant) -> Result<Option<Arc<Job>>, Refusal> {
        let mut events = self.engine().subscribe();
        loop {
            let job = self.job(id).await?;
            if job.state.is_over() {
                return Ok(Some(job));
            }
            loop {
                match timeout_at(until, events.recv()).await {
                    Err(_) => return Ok(None),
                    Ok(Ok(event)) => match &event.kind {
                        EventKind::Job(JobEvent::JobEnded { job, .. }) if job == id => break,
                        _ => {}
                    },
                    Ok(Err(RecvError::Lagged(_))) => break,
                    Ok(Err(RecvError::Closed)) => {
                        return Err(Refusal::Unavailable { why: "it is shutting down".into() });
                    }
                }
            }
        }
    }

    /// Takes a job back. One that is over stays as it is.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn cancel_job(&self, who: &Principal, id: &JobId) -> Result<Arc<Job>, Refusal> {
        let verb = CancelJob { job: id.clone(), reason: "taken back by its editor".into() };
        Ok(done(self.submit(who, verb).await?)?.job)
    }

    /// Keeps what somebody thinks of a job's outcome.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn judge_job(&self, who: &Principal, verb: NoteFeedback) -> Result<(), Refusal> {
        done(self.submit(who, verb).await?).map(drop)
    }

    /// What a job's worker has said so far.
    ///
    /// # Errors
    /// As [`Provost::job`].
    pub async fn job_output(&self, id: &JobId) -> Result<JobOutput, Refusal> {
        let job = self.job(id).await?;
        if job.state.is_over() {
            let result = self.job_result(id).await?;
            return Ok(JobOutput { text: result.output.unwrap_or_default().into(), earlier: result.earlier });
        }
        let live = job.tasks.last().and_then(|task| self.outputs().get(task));
        Ok(live.map(|live| drive::said(&live)).unwrap_or_default())
    }

    /// How far jobs are, as they go on.
    pub fn pulses(&self) -> &Pulses {
        &self.0.pulses
    }
}

/// Jobs are not judged: what they consist of is.
fn done<R>(answer: Answer<R>) -> Result<R, Refusal> {
    match answer {
        Answer::Done(reply) => Ok(reply),
        Answer::Parked(id) => Err(Refusal::busy(format!("waits for approval {id}").as_str())),
        Answer::Denied(denial) => Err(Refusal::Denied { rule: denial.rule, reason: denial.reason }),
    }
}

/// Sixteen characters that nobody can guess.
///
/// # Errors
/// [`Refusal::Busy`] where the system has no random numbers.
pub fn fresh_job_id() -> Result<JobId, Refusal> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|err| Refusal::busy(format!("no random numbers: {err}").as_str()))?;
    let text: String = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    JobId::parse(&text).map_err(|err| Refusal::busy(err.to_string().as_str()))
}

/// How often a running job is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
