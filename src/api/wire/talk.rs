//! The types for messages to agents while they work.

use serde::{Deserialize, Serialize};

/// `POST /say-to-task`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SayToTask {
    /// The id of the task whose agent gets the words.
    pub task: String,
    /// The words in the form in which the agent gets them; not empty, and at most 16 KiB.
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
    /// The number of the saying within the task, from 1.
    pub number: u32,
    /// The number of sayings that wait for the agent, including this one.
    pub waiting: usize,
}

/// A saying to a task's agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Saying {
    /// Its number within the task, from 1.
    pub number: u32,
    /// The agent or person that said it.
    pub by: String,
    /// When the daemon accepted it.
    pub at: String,
    /// The words; once delivered, only their beginning.
    pub text: String,
    /// Whether the agent's turn was to end for it.
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
    /// The folder in which the agent works, as it sees it; absent in data of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether a later process of the agent can continue it.
    pub goes_on: bool,
    /// The operations that the agent supports for it: `load`, `resume`, `list`, `close`.
    pub offers: Vec<String>,
    /// How often the run was restarted in this session.
    pub resumed: u32,
    /// Whether the agent accepts no more words, since its last turn is over.
    pub closed: bool,
}
