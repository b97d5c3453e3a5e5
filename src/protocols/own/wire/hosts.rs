//! What a host asks about the tasks that its agent has asked for, as it travels.

use serde::{Deserialize, Serialize};

use super::Task;

/// Query of `GET /my-task`, which is answered as `GET /task`, but knows only what the caller has asked for.
pub type MyTaskQuery = super::TaskQuery;

/// Query of `GET /my-tasks`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MyTasksQuery {
    /// The `next` of the page before.
    pub after: Option<String>,
    /// Most tasks on the page.
    pub limit: Option<usize>,
}

/// `GET /my-tasks`: what the caller has asked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MyTasks {
    /// Unfinished ones first, oldest first; then finished ones, newest first.
    pub tasks: Vec<Task>,
    /// Where to go on, when there may be more.
    pub next: Option<String>,
}
