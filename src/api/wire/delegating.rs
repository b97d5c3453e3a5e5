//! Work that is handed to a worker, as it travels.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `POST /delegate`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Delegate {
    /// Chosen by the caller; made here when absent.
    pub task: Option<String>,
    /// The task in the asker's words; must not be empty.
    pub goal: String,
    /// The worker that is to do it.
    pub worker: String,
    /// Relative to the workspace.
    pub working_dir: Option<String>,
    /// How long the worker may run, in seconds; half an hour when absent. Zero is refused.
    pub timeout_s: Option<u64>,
    /// The model that the worker is to use; the worker's own default when absent.
    pub model: Option<String>,
    /// `default` or `compact`.
    pub format: Option<String>,
    /// The tool policy is asked about; `devit_delegate` when absent.
    pub tool: Option<String>,
    /// An agent that gets mail about the progress and the end of the task.
    pub return_to: Option<String>,
    /// Free data for the worker.
    pub context: Option<Value>,
    /// Files that are to be watched while it goes on.
    pub watch_patterns: Vec<String>,
    /// The branch in whose work tree it works, and on which its changes are committed; empty for one that is named after the
    /// worker and the task. Absent for work in the workspace or in a copy, as the worker's entry says.
    pub worktree: Option<String>,
    /// The finished task with whose session the same worker goes on; only for agents that speak ACP and can.
    pub continues: Option<String>,
    /// The tasks that have to succeed before it begins; when one does not, it ends without having begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// `low`, `normal` or `high`; `normal` when absent. Only the operator, and agents that the configuration names, give `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The pool whose worker does it; then `worker` may be empty, and the worker that has the least to do is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The label that its host has to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Whether it waits for a host where none can do it now; otherwise it is refused then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait_for_host: bool,
    /// Whether the success of one of the tasks of `after` is enough.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub after_any: bool,
}

/// Answer to [`Delegate`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delegated {
    /// The id of the task, also where the caller chose none.
    pub task: String,
    /// `queued`, `waiting` for other tasks, `awaiting`, `denied`, or where a repeated request's task stands.
    pub state: String,
    /// The approval it waits for.
    pub approval: Option<u64>,
    /// The rule that denied it.
    pub rule: Option<String>,
    /// The reason that the denying rule gives; absent unless the state is `denied`.
    pub reason: Option<String>,
}
