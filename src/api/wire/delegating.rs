//! The types for delegating work to a worker.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `POST /delegate`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Delegate {
    /// The task's id, chosen by the caller; the daemon makes one when absent.
    pub task: Option<String>,
    /// The task in the asker's words; must not be empty.
    pub goal: String,
    /// The worker that will do it.
    pub worker: String,
    /// The working directory, relative to the workspace.
    pub working_dir: Option<String>,
    /// How long the worker may run, in seconds; half an hour when absent. Zero is refused.
    pub timeout_s: Option<u64>,
    /// The model that the worker will use; the worker's own default when absent.
    pub model: Option<String>,
    /// `default` or `compact`.
    pub format: Option<String>,
    /// The tool about which policy is asked; `devit_delegate` when absent.
    pub tool: Option<String>,
    /// An agent that gets mail about the progress and the end of the task.
    pub return_to: Option<String>,
    /// Data for the worker, of any form.
    pub context: Option<Value>,
    /// Patterns of the files to watch during the run.
    pub watch_patterns: Vec<String>,
    /// The branch in whose work tree the task works and commits; if empty, the daemon names one after the worker
    /// and the task. Absent for work in the workspace or in a copy, as the worker's entry says.
    pub worktree: Option<String>,
    /// The finished task whose session the same worker continues; only for agents that speak ACP and support that.
    pub continues: Option<String>,
    /// The tasks that must succeed before it begins; if one does not, it ends without having begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// `low`, `normal` or `high`; `normal` when absent. Only the operator, and agents that the configuration names, may set `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The pool whose worker does it; then `worker` may be empty, and the daemon takes the worker with the least to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The label that its host must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Whether it waits for a host if none can do it now; otherwise it is refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait_for_host: bool,
    /// Whether the success of one of the tasks of `after` is enough.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub after_any: bool,
    /// How often it begins again where its run fails, 5 times at the most; as often as its worker's entry says when absent. A rule or the entry
    /// may allow less, which is a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The trace and the span within which it is asked for, as the header `traceparent` of W3C Trace Context writes them; without this member, that
    /// header counts. A text that is no such header is passed over. A repeat may bring another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Answer to [`Delegate`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delegated {
    /// The id of the task, also if the caller chose none.
    pub task: String,
    /// `queued`, `waiting` for other tasks, `awaiting`, `denied`, or for a repeated request the state of its task.
    pub state: String,
    /// The approval that it waits for.
    pub approval: Option<u64>,
    /// The rule that denied it.
    pub rule: Option<String>,
    /// The reason that the denying rule gives; absent unless the state is `denied`.
    pub reason: Option<String>,
}
