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

/// It is filed, with everything that follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Published {
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

/// Begin the audit log of messages anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginLog;

/// It begins after this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogBegun {
    /// The last number that is not in it.
    pub after: PostSeq,
}
