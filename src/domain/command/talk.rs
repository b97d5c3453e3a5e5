//! Requests about words for a task's agent while it runs.

use serde::{Deserialize, Serialize};

use crate::{AgentSession, Saying};
use provost_base::{TaskId, Timestamp};

/// Say something to the agent that works on a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SayToTask {
    /// The task that the agent works on.
    pub task: TaskId,
    /// The words, as the agent gets them; not empty, and of bounded length.
    pub text: Box<str>,
    /// Whether the agent's turn is ended first; otherwise the words wait for its end.
    pub now: bool,
}

/// The words are kept, and will be delivered or reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SaidToTask {
    /// The number of the saying, from 1 for each task.
    pub number: u32,
    /// The number of sayings that wait for the agent, this one included.
    pub waiting: usize,
}

/// Report the session that a run is in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteSession {
    /// The task of the run.
    pub task: TaskId,
    /// The session, as its agent has begun it.
    pub session: AgentSession,
}

/// The session is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionNoted;

/// Take the sayings that wait for the agent of a task. If none waits, no further sayings are accepted, since the run ends now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeSayings {
    /// The task of the run.
    pub task: TaskId,
}

/// The waiting sayings, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SayingsTaken {
    /// The sayings; they wait until [`NoteSaid`] reports their delivery.
    pub sayings: Vec<Saying>,
}

/// Report that sayings were delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteSaid {
    /// The task of the run.
    pub task: TaskId,
    /// The number of the newest saying that was delivered.
    pub through: u32,
}

/// The delivery is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SaidNoted;

/// Begin a run again whose process has ended in the middle of a turn, in the same session. Once for each task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResumeRun {
    /// The task of the run.
    pub task: TaskId,
    /// The end of the time in which the run may last.
    pub until: Timestamp,
}

/// The run may go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunResumed;
