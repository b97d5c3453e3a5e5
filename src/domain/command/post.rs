//! Verbs of the broker door: messages between agents.

use serde::{Deserialize, Serialize};

use crate::base::{AgentId, PostSeq};
use crate::domain::post::{Post, Source};

/// Publish a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Publish {
    /// The message.
    pub post: Post,
    /// Where it comes from.
    pub source: Source,
}

/// Publish a message once more that is in force already: it is on record, and nothing else follows from it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Republish {
    /// The message; see [`Desk::has_heard`](crate::domain::Desk::has_heard).
    pub post: Post,
}

/// It is filed, with everything that follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Published {
    /// Its number.
    pub n: PostSeq,
}

/// It is on record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Republished {
    /// Its number.
    pub n: PostSeq,
}

/// Give an agent an inbox before it has said anything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddressAgent {
    /// Whom.
    pub agent: AgentId,
    /// The program that it runs as; empty if nobody knows.
    pub cli: Box<str>,
}

/// It has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentAddressed {
    /// Whether it had none before.
    pub fresh: bool,
}

/// Restart the audit log of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginLog;

/// It begins after this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogBegun {
    /// The last number that is not in it.
    pub after: PostSeq,
}
