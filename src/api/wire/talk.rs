//! What is said to agents while they work.

use serde::{Deserialize, Serialize};

/// `POST /say-to-task`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SayToTask {
    /// The id of the task whose agent is meant.
    pub task: String,
    /// The words, as the agent gets them; not empty, and at most 16 KiB.
    pub text: String,
    /// Whether the agent's turn is ended first; otherwise the words wait for its end.
    #[serde(default)]
    pub now: bool,
}

/// Answer to [`SayToTask`]: the words are kept, and will be delivered or reported.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Said {
    /// The id of the task.
    pub task: String,
    /// The number of the saying, from 1 for each task.
    pub number: u32,
    /// How many sayings wait for the agent, this one included.
    pub waiting: usize,
}

/// What was said to a task's agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Saying {
    /// Its number, from 1 for each task.
    pub number: u32,
    /// The agent or person that said it.
    pub by: String,
    /// When it was taken on.
    pub at: String,
    /// The words; of those that were delivered only the beginning.
    pub text: String,
    /// Whether the agent's turn was to be ended for it.
    pub now: bool,
    /// `waiting`, `delivered`, `not_delivered`.
    pub state: String,
    /// When the agent got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<String>,
}

/// The session of a task's agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AgentSession {
    /// Its id, as the agent chose it.
    pub id: String,
    /// The folder in which the agent works, as it sees it; absent from a daemon of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether a later process of the agent can go on with it.
    pub goes_on: bool,
    /// What the agent can do with it: `load`, `resume`, `list`, `close`.
    pub offers: Vec<String>,
    /// How often its run was begun again in it.
    pub resumed: u32,
    /// Whether the agent takes no more words, since its last turn is over.
    pub closed: bool,
}
