//! Verbs of the broker door: messages between agents.

use serde::{Deserialize, Serialize};

use crate::post::{Post, Source};
use provost_base::{AgentId, PostSeq};

/// Publish a message to other agents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Publish {
    /// The message as its sender wrote it.
    pub post: Post,
    /// The source of the message.
    pub source: Source,
}

/// Withdraw a question whose answer the program of a task's agent has waited for. A question that is no longer open stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WithdrawQuestion {
    /// The number of the question's post.
    pub question: PostSeq,
}

/// The question is no longer open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuestionWithdrawn;

/// Publish again a message that is already in force: the repeat is on record, and has no other effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Republish {
    /// The message; see [`BrokerState::has_heard`](crate::BrokerState::has_heard).
    pub post: Post,
}

/// The message is filed, with everything that follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Published {
    /// The message's number, by which readers page.
    pub n: PostSeq,
}

/// The repeat is on record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Republished {
    /// The repeat's number.
    pub n: PostSeq,
}

/// Give an agent an inbox before it has sent a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddressAgent {
    /// The agent that gets the inbox.
    pub agent: AgentId,
    /// The program that the agent runs as; empty if it is not known.
    pub cli: Box<str>,
}

/// The agent has an inbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentAddressed {
    /// Whether the agent had no inbox before.
    pub fresh: bool,
}

/// Restart the audit log of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginLog;

/// The audit log begins after this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogBegun {
    /// The last number that the log does not have.
    pub after: PostSeq,
}
