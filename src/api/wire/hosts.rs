//! Tasks that a host's own agent has asked for, and answers of the person at the host, as they travel.

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

/// `GET /dialog-key`: what seals dialogs that hosts carry along, and whom they are bound to.
// No `Debug`: it holds a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogKey {
    /// The name of the daemon's user.
    pub user: String,
    /// The agent, or the user.
    pub agent: String,
    /// The key. The same for all processes of the user.
    pub key: String,
}

/// `POST /host-answer`: the person at the caller's host has answered a dialog. Answered as `POST /answer-approval` is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostAnswer {
    /// The number of the approval.
    pub approval: u64,
    /// Yes or no; neither when the dialog was closed.
    #[serde(default)]
    pub grant: Option<bool>,
    /// The person's reason or remark, recorded with the answer.
    #[serde(default)]
    pub note: Option<String>,
    /// Digest of what was shown.
    pub digest: String,
    /// What the dialog goes by, where it could come back twice. It counts once.
    #[serde(default)]
    pub dialog: Option<String>,
}
