//! Verbs of the broker door: messages between agents.

use serde::{Deserialize, Serialize};

use crate::post::{Post, Source};
use provost_base::{AgentId, PostSeq};

/// Publish a message to other agents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Publish {
    /// The message as its sender wrote it.
    pub post: Post,
    /// Where the message comes from.
    pub source: Source,
}

/// Take back a question for whose answer the program of a task's agent has waited. One that is not open any more changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WithdrawQuestion {
    /// The number of the question's post.
    pub question: PostSeq,
}

/// The question is not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuestionWithdrawn;

/// Publish a message once more that is in force already: it is on record, and nothing else follows from it.
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

/// Give an agent an inbox before it has said anything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddressAgent {
    /// The agent that is to have one.
    pub agent: AgentId,
    /// The program that it runs as; empty if that is not known.
    pub cli: Box<str>,
}

/// The agent has an inbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentAddressed {
    /// Whether it had none before.
    pub fresh: bool,
}

/// Restart the audit log of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginLog;

/// The audit log begins after this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogBegun {
    /// The last number that is not in it.
    pub after: PostSeq,
}
