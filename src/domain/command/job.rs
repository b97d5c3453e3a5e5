//! Verbs about jobs, the requests of editors. A6s.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::{AgentId, Digest, JobId, Json, TaskId};
use crate::domain::{Job, JobKind, JobResult, JobState, PhaseName, PhaseState, StepOf};

/// Ask for something. Nothing runs by itself: the tasks that carry it out are delegated, and judged, as any other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenJob {
    /// Its id.
    pub job: JobId,
    /// What kind of question.
    pub kind: JobKind,
    /// The method that was called.
    pub method: Box<str>,
    /// What is to be done, for lists.
    pub title: Box<str>,
    /// The agent, as asked for.
    pub agent: Box<str>,
    /// The worker that it is.
    pub worker: AgentId,
    /// What was asked, for whoever carries it out, also after a restart.
    pub order: Json,
    /// By what the same question is recognised: while one is being answered, no other one is opened.
    pub key: Option<Digest>,
    /// The workflow that it is a step of.
    pub step: Option<StepOf>,
}

/// It was put on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobOpened {
    /// As it is now; the one that answers the same question already, if there is one.
    pub job: Arc<Job>,
}

/// A part of a job has begun or ended, or a task carries it out from now on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveJob {
    /// Which.
    pub job: JobId,
    /// Which part, and how it stands now.
    pub phase: Option<(PhaseName, PhaseState)>,
    /// The task.
    pub task: Option<TaskId>,
    /// Whether something runs for it from now on.
    pub runs: bool,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobMoved {
    /// As it is now.
    pub job: Arc<Job>,
}

/// A job is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndJob {
    /// Which.
    pub job: JobId,
    /// How.
    pub state: JobState,
    /// Why it failed.
    pub error: Option<Box<str>>,
    /// What it has brought about.
    pub result: Option<Arc<JobResult>>,
    /// What its workers have done, as far as they tell.
    pub steps: u64,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobEnded {
    /// As it is now.
    pub job: Arc<Job>,
}

/// What a job had brought about that was over before its last run was: taken back, or ended with its daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeepResult {
    /// Which.
    pub job: JobId,
    /// What it is.
    pub result: Arc<JobResult>,
}

/// It is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultKept;

/// Take a job back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CancelJob {
    /// Which.
    pub job: JobId,
    /// Why.
    pub reason: Box<str>,
}

/// Nothing more will happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobCancelled {
    /// As it is now; it may have been over before.
    pub job: Arc<Job>,
}

/// Say what one thinks of a job's outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteFeedback {
    /// Which.
    pub job: JobId,
    /// `accept` or `reject`.
    pub signal: Box<str>,
    /// Why.
    pub reason: Option<Box<str>>,
}

/// It is kept with the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedbackNoted;
