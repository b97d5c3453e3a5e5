//! Pages of tasks, as they travel.

use serde::{Deserialize, Serialize};

use super::Task;

/// Query of `GET /task-page`. A member that is absent excludes none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskPageQuery {
    /// `awaiting`, `running`, `assigned`, `queued`, `retrying`, `waiting`, `completed`, `failed` or `cancelled`.
    pub state: Option<String>,
    /// Only tasks of workers whose names have this in them.
    pub worker: Option<String>,
    /// Only tasks that agents have asked for whose names have this in them.
    pub by: Option<String>,
    /// Words that are all in the id, the goal or one of the names.
    pub text: Option<String>,
    /// Only tasks that have changed within this time, in milliseconds.
    pub within_ms: Option<u64>,
    /// Where the page before ended: its `next`.
    pub after: Option<String>,
    /// How many tasks at most.
    pub limit: Option<usize>,
}

/// Answer to [`TaskPageQuery`].
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskPage {
    /// Unfinished tasks by what they need, those within a state oldest first; then finished ones, newest first.
    pub tasks: Vec<Task>,
    /// How many unfinished tasks pass the filter.
    pub live: usize,
    /// Where the next page begins; absent at the end. A page is short, or empty, where few of many tasks pass.
    pub next: Option<String>,
    /// How many tasks there are, also those that the filter leaves out.
    pub counts: TaskCounts,
}

/// How many tasks there are in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounts {
    /// Those that wait for approval.
    pub awaiting: u64,
    /// Those that a worker is at.
    pub running: u64,
    /// Those that a polling worker has and has not said anything about.
    pub assigned: u64,
    /// Those that are allowed and not yet with a worker.
    pub queued: u64,
    /// Those whose next attempt waits for its time.
    pub retrying: u64,
    /// Those that wait for other tasks.
    pub waiting: u64,
    /// Completed and cancelled since the beginning.
    pub completed: u64,
    /// Failed since the beginning.
    pub failed: u64,
}

/// A resource for which a task waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AwaitedNeed {
    /// The resource.
    pub resource: String,
    /// The agent that has it, or waits for it from before; absent where it is about to be free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// When the wait began.
    pub since: String,
}
