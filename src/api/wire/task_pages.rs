//! The types for pages of tasks.

use serde::{Deserialize, Serialize};

use super::Task;

/// Query of `GET /task-page`. An absent member excludes no task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskPageQuery {
    /// `awaiting`, `running`, `assigned`, `queued`, `retrying`, `waiting`, `completed`, `failed` or `cancelled`.
    pub state: Option<String>,
    /// Only tasks of workers whose names contain this text.
    pub worker: Option<String>,
    /// Only tasks of askers whose names contain this text.
    pub by: Option<String>,
    /// Words that must each occur in the id, the goal or one of the names.
    pub text: Option<String>,
    /// Only tasks that have changed within this time, in milliseconds.
    pub within_ms: Option<u64>,
    /// The `next` of the previous page.
    pub after: Option<String>,
    /// The most tasks to return.
    pub limit: Option<usize>,
}

/// Answer to [`TaskPageQuery`].
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskPage {
    /// The unfinished tasks in the order of their states, oldest first within a state; then the finished ones, newest first.
    pub tasks: Vec<Task>,
    /// The number of unfinished tasks that match the filter.
    pub live: usize,
    /// The start of the next page; absent at the end. A page may be short or empty if few of many tasks match.
    pub next: Option<String>,
    /// Why there are no finished tasks: they cannot be read at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// The number of tasks, including those that the filter leaves out.
    pub counts: TaskCounts,
}

/// The number of tasks in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounts {
    /// Tasks that wait for approval.
    pub awaiting: u64,
    /// Tasks that a worker works on.
    pub running: u64,
    /// Tasks that a polling worker has, and has not reported on.
    pub assigned: u64,
    /// Tasks that are allowed and not yet with a worker.
    pub queued: u64,
    /// Tasks whose next attempt waits for its time.
    pub retrying: u64,
    /// Tasks that wait for other tasks.
    pub waiting: u64,
    /// The completed and cancelled tasks since the store was created.
    pub completed: u64,
    /// The failed tasks since the store was created.
    pub failed: u64,
}

/// A resource for which a task waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AwaitedNeed {
    /// The resource.
    pub resource: String,
    /// The agent that has it, or is before the task in the queue; absent if it is about to be free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// When the wait began.
    pub since: String,
}

/// `GET /tasks`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tasks {
    /// Unfinished tasks, oldest first.
    pub active: Vec<Task>,
    /// Finished tasks, newest first.
    pub finished: Vec<Task>,
    /// Whether there are more finished tasks.
    pub truncated: bool,
    /// Why there are no finished tasks: they cannot be read at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// The number of completed and cancelled tasks since the store was created.
    pub completed: u64,
    /// The number of failed tasks since the store was created.
    pub failed: u64,
}

/// Query of `GET /tasks`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TasksQuery {
    /// `all`, `active`, `finished`, `completed`, `failed`.
    pub filter: Option<String>,
    /// The most finished tasks to list; the daemon's own bound when absent.
    pub limit: Option<usize>,
    /// Only finished tasks that follow this one in the list.
    pub before: Option<String>,
}
