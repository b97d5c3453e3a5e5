//! Verbs about jobs, the requests of editors. A6s.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Job, JobKind, JobResult, JobState, PhaseName, PhaseState, StepOf};
use provost_base::{AgentId, Digest, JobId, Json, TaskId};

/// Ask for a job. Nothing runs by itself: the tasks that carry it out are delegated, and
/// judged, as any other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenJob {
    /// The service chooses it.
    pub job: JobId,
    /// The kind of job.
    pub kind: JobKind,
    /// The method of the protocol that was called.
    pub method: Box<str>,
    /// What is to be done, in a line for lists.
    pub title: Box<str>,
    /// The agent as the client named it.
    pub agent: Box<str>,
    /// The worker that this agent is.
    pub worker: AgentId,
    /// The whole request, for the runner that carries it out, also after a restart.
    pub order: Json,
    /// By what the same question is recognised: while one is being answered, no other one is opened.
    pub key: Option<Digest>,
    /// The workflow and step that it carries out; `None` for a job of its own.
    pub step: Option<StepOf>,
}

/// The job is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobOpened {
    /// The job as it is now; the one that answers the same question already, if there is one.
    pub job: Arc<Job>,
}

/// A part of a job has begun or ended, or a task carries it out from now on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveJob {
    /// The job that goes on.
    pub job: JobId,
    /// The part that has begun or ended, and its state now.
    pub phase: Option<(PhaseName, PhaseState)>,
    /// The task that carries the job out from now on.
    pub task: Option<TaskId>,
    /// Whether something runs for it from now on.
    pub runs: bool,
}

/// The job's progress is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobMoved {
    /// The job as it is now.
    pub job: Arc<Job>,
}

/// A job is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndJob {
    /// The job that is over.
    pub job: JobId,
    /// How it has ended: completed, failed or cancelled.
    pub state: JobState,
    /// Why it failed; `None` where it did not.
    pub error: Option<Box<str>>,
    /// What it has brought about, if anything.
    pub result: Option<Arc<JobResult>>,
    /// How many messages and calls of tools its workers have reported.
    pub steps: u64,
}

/// The end of the job is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobEnded {
    /// The job as it is now.
    pub job: Arc<Job>,
}

/// Keep the result of a job that was over before its last run was: taken back, or ended with its daemon.
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

/// Take a job back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CancelJob {
    /// The job to take back.
    pub job: JobId,
    /// The reason, for the log and for the job's tasks.
    pub reason: Box<str>,
}

/// The job is over, and its tasks are being cancelled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobCancelled {
    /// As it is now; it may have been over before.
    pub job: Arc<Job>,
}

/// Give feedback on a job's outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteFeedback {
    /// The job that the feedback is about.
    pub job: JobId,
    /// `accept` or `reject`.
    pub signal: Box<str>,
    /// The reason for it, in the client's words; `None` if it gave none.
    pub reason: Option<Box<str>>,
}

/// The feedback is kept with the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedbackNoted;
