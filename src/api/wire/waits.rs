//! Who waits for what, as it travels.

use serde::{Deserialize, Serialize};

/// Answer to `GET /waits`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// The waits, longest first.
    pub waits: Vec<Wait>,
    /// Waits that are not listed.
    pub more: usize,
    /// Circles of waiting that were refused lately, newest first.
    pub refused: Vec<RefusedCircle>,
    /// Since when they are remembered: for an hour, and no longer than the daemon runs.
    pub refused_since: String,
}

/// An agent that waits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// `lock`, `resource`, `approval`, `answer`, `task`, `handoff` or `contract`. No agent waits for a claim: one that another
    /// agent has is refused at once.
    pub kind: String,
    /// The agent that waits.
    pub agent: String,
    /// What it waits for: a symbol, a resource, the number of an approval or question, the id of a task or handoff.
    pub wanted: String,
    /// The same in words, where there are any: a goal, a question, a reason. An agent has written them.
    pub words: Option<String>,
    /// On whom it depends: agents that hold what is wanted, the worker of a task, or who may answer.
    pub by: Vec<String>,
    /// Its place in line, from 1 on; absent where there is no line.
    pub place: Option<usize>,
    /// Since when it waits.
    pub since: String,
    /// When the wait ends by itself; absent where it does not.
    pub until: Option<String>,
    /// The task that waits, or that is waited for.
    pub task: Option<String>,
    /// The state of a task that is waited for.
    pub state: Option<String>,
    /// Of a wait for a lock or a resource, the number of its place, which `POST /end-wait` takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
}

/// A circle of agents who would have waited for each other.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedCircle {
    /// When it was refused last.
    pub at: String,
    /// How often it was refused.
    pub times: u32,
    /// What the first member wanted to wait for.
    pub wanted: String,
    /// The members: each would have waited for the next one, and the last for the first.
    pub members: Vec<String>,
}
