//! Requests about what is said to a task's agent while it runs.

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
    /// How many sayings wait for the agent, this one included.
    pub waiting: usize,
}

/// Say in which session a run is.
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

/// Take what waits for the agent of a task. When nothing does, none is taken on any more, since its run ends now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeSayings {
    /// The task of the run.
    pub task: TaskId,
}

/// What waits, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SayingsTaken {
    /// The sayings; they wait until [`NoteSaid`] says that they were delivered.
    pub sayings: Vec<Saying>,
}

/// Say that sayings were delivered.
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
    /// The end of the time in which it may run.
    pub until: Timestamp,
}

/// The run may go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunResumed;
