//! Arguments of verbs that a passkey signs and that have no path of their own, or more than their path takes.

use serde::{Deserialize, Serialize};

/// `message-agents`: the person writes the same to each of these agents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageAgents {
    /// The agents, each once; at most [`MESSAGED_AT_ONCE_MAX`].
    pub to: Vec<String>,
    /// What they are told.
    pub text: String,
}

/// As many agents one signed message goes to: those of a wait or of a meeting, and a crew. All of their names are shown and signed.
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

/// `POST /end-wait`, and a verb: an agent waits for a lock or a resource no longer, and is refused it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndWait {
    /// The number of its place, as `GET /waits` and `GET /locks` say it.
    pub ticket: u64,
}

/// `cancel-tasks`: the person ends these tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CancelTasks {
    /// The tasks, each once; at most [`CANCELLED_AT_ONCE_MAX`].
    pub tasks: Vec<String>,
    /// Why, for their records.
    pub reason: String,
}

/// As many tasks one signature ends: what fits on a screen, so that it was looked at.
pub const CANCELLED_AT_ONCE_MAX: usize = 50;

/// Beside the arguments of `delegate`, as `rules`: what the person was shown of the rules' answer.
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
