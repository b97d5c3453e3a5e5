//! Search by words, as it travels.

use serde::{Deserialize, Serialize};

/// Query of `GET /search`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchQuery {
    /// Words that all have to be there, with the signs in them; words in quotation marks stand together, and `log*` is the
    /// beginning of a word.
    pub words: String,
    /// `tasks`, `messages` or `events`; all when absent.
    pub only: Option<String>,
    /// Where the page before ended: its `next`. Tasks are on the first page alone.
    pub before: Option<u64>,
    /// How many tasks, and how many messages and events, at most.
    pub limit: Option<usize>,
}

/// Answer to [`SearchQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Tasks, then messages and events, each newest first.
    pub hits: Vec<Hit>,
    /// Whether there are more tasks than those.
    pub more_tasks: bool,
    /// Where the next page of messages and events begins; absent at the end.
    pub next: Option<u64>,
    /// Events at the end of the journal that cannot be searched yet: the index is made in the background.
    pub not_yet: u64,
}

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hit {
    /// `task`, `message` or `event`.
    pub kind: String,
    /// The number of the event in the journal; absent for a task.
    pub seq: Option<u64>,
    /// The number of the message.
    pub message: Option<u64>,
    /// The id of the task that it is, or is about.
    pub task: Option<String>,
    /// When it happened; of a task, its last change.
    pub at: String,
    /// The kind of event, or the state of the task.
    pub what: String,
    /// The agent that caused it, or has asked for the task.
    pub actor: String,
    /// Some words around the first that was found. An agent may have written them.
    pub excerpt: String,
}
