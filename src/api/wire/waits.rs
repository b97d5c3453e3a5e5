//! The types for the waits of agents.

use serde::{Deserialize, Serialize};

/// Answer to `GET /waits`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// The waits, longest first.
    pub waits: Vec<Wait>,
    /// The number of waits that are not listed.
    pub more: usize,
    /// The circles of waiting that were refused lately, newest first.
    pub refused: Vec<RefusedCircle>,
    /// When that list begins: an hour ago, or when the daemon started.
    pub refused_since: String,
}

/// An agent that waits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// `lock`, `resource`, `approval`, `answer`, `task`, `handoff` or `contract`. No agent waits for a claim: the
    /// daemon refuses a claimed file at once.
    pub kind: String,
    /// The agent that waits.
    pub agent: String,
    /// The awaited thing: a symbol, a resource, the number of an approval or question, the id of a task or handoff.
    pub wanted: String,
    /// A description of it, if there is any: a goal, a question, a reason. An agent has written it.
    pub words: Option<String>,
    /// The agents on which it depends: holders of the awaited thing, the worker of a task, or possible answerers.
    pub by: Vec<String>,
    /// Its place in the queue, from 1; absent if there is no queue.
    pub place: Option<usize>,
    /// When the wait began.
    pub since: String,
    /// When the wait ends by itself; absent if it does not.
    pub until: Option<String>,
    /// The task that waits, or for which the agent waits.
    pub task: Option<String>,
    /// The state of the awaited task.
    pub state: Option<String>,
    /// For a lock or a resource, the number of its place in the queue, which `POST /end-wait` takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
}

/// A circle of agents that would have waited for each other.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedCircle {
    /// When it was last refused.
    pub at: String,
    /// How often it was refused.
    pub times: u32,
    /// The thing that the first member wanted to wait for.
    pub wanted: String,
    /// The members: each would have waited for the next one, and the last for the first.
    pub members: Vec<String>,
}
