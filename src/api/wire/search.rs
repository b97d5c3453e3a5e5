//! The types for a search by words.

use serde::{Deserialize, Serialize};

/// Query of `GET /search`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchQuery {
    /// The words, all of which must occur, with their punctuation; words in quotation marks must be adjacent, and
    /// `log*` is the beginning of a word.
    pub words: String,
    /// `tasks`, `messages` or `events`; all when absent.
    pub only: Option<String>,
    /// The `next` of the previous page. Only the first page has tasks.
    pub before: Option<u64>,
    /// The most tasks, and the most messages and events, to return.
    pub limit: Option<usize>,
}

/// Answer to [`SearchQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Tasks, then messages and events, each newest first.
    pub hits: Vec<Hit>,
    /// Whether there are more tasks.
    pub more_tasks: bool,
    /// The start of the next page of messages and events; absent at the end.
    pub next: Option<u64>,
    /// The number of events at the end of the journal that cannot be searched yet: the index is made in the background.
    pub not_yet: u64,
}

/// A search result.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hit {
    /// `task`, `message` or `event`.
    pub kind: String,
    /// The number of the event in the journal; absent for a task.
    pub seq: Option<u64>,
    /// The number of the message.
    pub message: Option<u64>,
    /// The id of the task that it is, or that it concerns.
    pub task: Option<String>,
    /// When it happened; for a task, its last change.
    pub at: String,
    /// The kind of event, or the state of the task.
    pub what: String,
    /// The agent that caused it, or has asked for the task.
    pub actor: String,
    /// Some words around the first match. An agent may have written them.
    pub excerpt: String,
}
