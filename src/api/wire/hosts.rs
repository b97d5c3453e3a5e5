//! The types for tasks that a host's own agent has asked for, and for answers of the person at the host.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Task;

/// Query of `GET /my-task`, which answers as `GET /task` does, but only about tasks that the caller has asked for.
pub type MyTaskQuery = super::TaskQuery;

/// Query of `GET /my-tasks`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MyTasksQuery {
    /// The `next` of the previous page.
    pub after: Option<String>,
    /// The most tasks on the page.
    pub limit: Option<usize>,
    /// The session of an editor's whose turns are meant alone; all tasks of the caller's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// `GET /my-tasks`: the tasks that the caller has asked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MyTasks {
    /// Unfinished ones first, oldest first; then finished ones, newest first.
    pub tasks: Vec<Task>,
    /// The start of the next page, if there may be more tasks.
    pub next: Option<String>,
}

/// Query of `GET /my-turn`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MyTurnQuery {
    /// The task, a turn of a session of the caller's editor.
    pub id: String,
    /// How many of its updates the pages before had.
    pub from: usize,
    /// The moment of the first page, for the pages after it: the turn may go on meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

/// The word of the error for a page of a turn that was rewritten since its first page.
pub const TURN_CHANGED: &str = "turn_changed";

/// `GET /my-turn`: what is kept of a turn of the caller's editor.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MyTurn {
    /// The updates of its agent, as ACP has them, in order: each call with its last state. Those with the member `provost` are the daemon's notes.
    pub updates: Vec<Value>,
    /// Where to go on, when there are more.
    pub next: Option<usize>,
    /// The moment of this page, with which the next ones are asked for.
    #[serde(default)]
    pub as_of: String,
}

/// `GET /dialog-key`: the key that seals dialogs which hosts carry, and the names to which the dialogs are bound.
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogKey {
    /// The name of the daemon's user.
    pub user: String,
    /// The agent that speaks, or the user.
    pub agent: String,
    /// The key, which is the same for all processes of the user.
    pub key: String,
}

/// `POST /host-answer`: the person at the caller's host has answered a dialog. The answer is that of `POST /answer-approval`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostAnswer {
    /// The number of the approval.
    pub approval: u64,
    /// Yes or no; absent when the dialog was closed.
    #[serde(default)]
    pub grant: Option<bool>,
    /// The person's reason or remark, recorded with the answer.
    #[serde(default)]
    pub note: Option<String>,
    /// Digest of the shown content.
    pub digest: String,
    /// The id of the dialog, if it could be sent twice. It counts once.
    #[serde(default)]
    pub dialog: Option<String>,
}
