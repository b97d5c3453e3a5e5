//! Verbs about jobs, the requests of editors. A6s.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Job, JobKind, JobResult, JobState, PhaseName, PhaseState, StepOf};
use provost_base::{AgentId, Digest, JobId, Json, TaskId};

/// Ask for a job. This alone runs nothing: the tasks that carry the job out are delegated, and judged, as any
/// others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenJob {
    /// The id of the job, which the service chooses.
    pub job: JobId,
    /// The kind of job.
    pub kind: JobKind,
    /// The method of the protocol that was called.
    pub method: Box<str>,
    /// The work to do, in a line for lists.
    pub title: Box<str>,
    /// The agent as the client named it.
    pub agent: Box<str>,
    /// The worker that carries out this agent's tasks.
    pub worker: AgentId,
    /// The whole request, for the runner that carries it out, even after a restart.
    pub order: Json,
    /// The digest by which the same question is recognised: while one is being answered, no other one is opened.
    pub key: Option<Digest>,
    /// The workflow and step that the job carries out; `None` for a job of its own.
    pub step: Option<StepOf>,
}

/// The job is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobOpened {
    /// The new job; or the job that already answers the same question, if it exists.
    pub job: Arc<Job>,
}

/// Report that a part of a job has begun or ended, or that a task carries it out from now on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveJob {
    /// The job to update.
    pub job: JobId,
    /// The part that has begun or ended, and its state now.
    pub phase: Option<(PhaseName, PhaseState)>,
    /// The task that carries the job out from now on.
    pub task: Option<TaskId>,
    /// Whether a run works for the job from now on.
    pub runs: bool,
}

/// The job's progress is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobMoved {
    /// The job as it is now.
    pub job: Arc<Job>,
}

/// Report that a job is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndJob {
    /// The job that is over.
    pub job: JobId,
    /// The end state of the job: completed, failed or cancelled.
    pub state: JobState,
    /// The reason for the failure; `None` if the job did not fail.
    pub error: Option<Box<str>>,
    /// The result of the job, if it has one.
    pub result: Option<Arc<JobResult>>,
    /// The number of messages and calls of tools that its workers have reported.
    pub steps: u64,
}

/// The end of the job is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobEnded {
    /// The job as it is now.
    pub job: Arc<Job>,
}

/// Keep the result of a job that was over before its last run was: it was cancelled, or ended with its daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeepResult {
    /// The job whose result it is.
    pub job: JobId,
    /// The result as it was collected after the end.
    pub result: Arc<JobResult>,
}

/// The result is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultKept;

/// Cancel a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CancelJob {
    /// The job to cancel.
    pub job: JobId,
    /// The reason, for the log and for the job's tasks.
    pub reason: Box<str>,
}

/// The job is over, and its tasks are being cancelled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobCancelled {
    /// The job as it is now; it may have been over before.
    pub job: Arc<Job>,
}

/// Give feedback on a job's outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteFeedback {
    /// The job that the feedback is about.
    pub job: JobId,
    /// `accept` or `reject`.
    pub signal: Box<str>,
    /// The reason, in the client's words; `None` if the client gave none.
    pub reason: Option<Box<str>>,
}

/// The feedback is kept with the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedbackNoted;
