//! The arguments of signed verbs that have no path of their own, or that have more arguments than their path.

use serde::{Deserialize, Serialize};

/// `message-agents`: the person writes the same message to each of these agents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageAgents {
    /// The agents, each once; at most [`MESSAGED_AT_ONCE_MAX`].
    pub to: Vec<String>,
    /// The text of the message.
    pub text: String,
}

/// The most agents that one signed message goes to: those of a wait or of a meeting, and a crew. All of their names are shown and signed.
pub const MESSAGED_AT_ONCE_MAX: usize = 64;

/// `answer-question`: the person answers an agent's question.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerQuestion {
    /// The number of the question, which is that of its message.
    pub question: u64,
    /// The answer.
    pub text: String,
}

/// `POST /end-wait`, and a verb: ends an agent's wait for a lock or a resource, which is then refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndWait {
    /// The number of its place in the queue, from `GET /waits` or `GET /locks`.
    pub ticket: u64,
}

/// `cancel-tasks`: the person ends these tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CancelTasks {
    /// The tasks, each once; at most [`CANCELLED_AT_ONCE_MAX`].
    pub tasks: Vec<String>,
    /// The reason, for their records.
    pub reason: String,
}

/// The most tasks that one signature ends: as many as fit on a screen, so that the person has seen them.
pub const CANCELLED_AT_ONCE_MAX: usize = 50;

/// The argument `rules` of `delegate`: the decision of the rules that the person was shown.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesSaid {
    /// Digest of the rules in force.
    pub digest: String,
    /// `allow`, `approve` or `deny`.
    pub decision: String,
    /// The rule that decides.
    pub rule: String,
}
