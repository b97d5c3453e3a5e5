//! Identifiers. Each has a type of its own, so that a session cannot be passed as a task.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::limits::ID_LEN_MAX;
use super::lookalikes::{self, Unclear};

/// The reason why an identifier from a peer was refused. Safe to show to that peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadId {
    /// The identifier is empty.
    #[error("is empty")]
    Empty,
    /// It has more than [`ID_LEN_MAX`] bytes.
    #[error("is longer than {ID_LEN_MAX} bytes")]
    TooLong,
    /// It has control characters: terminal escapes and line breaks do not belong in a name.
    #[error("contains a control character")]
    ControlCharacter,
    /// It cannot be distinguished from other names by its looks.
    #[error("{0}")]
    Unclear(Unclear),
}

fn check(text: &str) -> Result<(), BadId> {
    match text.len() {
        0 => Err(BadId::Empty),
        len if len > ID_LEN_MAX => Err(BadId::TooLong),
        _ if text.chars().any(char::is_control) => Err(BadId::ControlCharacter),
        _ => Ok(()),
    }
}

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident $(: $looks:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Box<str>);

        impl Serialize for $name {
            // The text is written directly, without a copy.
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl $name {
            /// Accepts 1 to [`ID_LEN_MAX`] bytes without control characters, exactly as written.
            ///
            /// # Errors
            /// [`BadId`] names the rule that the text breaks.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                check(text)?;
                $(lookalikes::$looks(text).map_err(BadId::Unclear)?;)?
                Ok(Self(text.into()))
            }

            /// Returns the text as the peer wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            /// Reads a stored name, which may be older than the rule about similar names.
            fn try_from(text: String) -> Result<Self, BadId> {
                check(&text).map(|()| Self(text.into()))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.into()
            }
        }
    )*};
}

text_id! {
    /// The name of an agent, the same at every door (DevIt: `from`, the ident).
    AgentId: check;
    /// The presence of one client, stable across reconnects.
    SessionId;
    /// A piece of delegated work (DevIt: the `msg_id` of its DELEGATE).
    TaskId;
    /// A policy rule, as written in its file.
    RuleId;
    /// An announced change. wit: a UUID.
    IntentId;
    /// An agreement on a signature. wit: a UUID.
    ContractId;
    /// The name of an agent's inbox at the broker door: one for all spellings of the agent's name.
    Slug;
    /// Work that one agent wants another one to do. Agent Protocol: `task_` and eight characters.
    AssignmentId;
    /// Work that one agent hands over to another one. Agent Protocol: `hoff_` and eight characters.
    HandoffId;
    /// A request of an editor. A6s: the part after `exec_`, `task_` or `job_`.
    JobId;
}

impl From<&Slug> for AgentId {
    /// Returns the plain spelling of a name, which was checked before anything was filed under it.
    fn from(slug: &Slug) -> Self {
        Self(slug.0.clone())
    }
}

impl TaskId {
    /// Accepts the id of a new task, as [`TaskId::parse`] does, if it cannot be taken for another id: people and agents
    /// read it in lists, and name the task by it. The ids of older tasks were not checked in this way.
    ///
    /// # Errors
    /// [`BadId`] names the rule that the text breaks.
    pub fn chosen(text: &str) -> Result<Self, BadId> {
        let id = Self::parse(text)?;
        lookalikes::check(text).map_err(BadId::Unclear)?;
        Ok(id)
    }
}

impl JobId {
    /// Reads a job's id in any of its forms: each view of a job has a prefix of its own.
    pub fn of_any_kind(id: &str) -> Option<Self> {
        let id = id.trim();
        let bare = ["exec_", "task_", "job_"].iter().find_map(|prefix| id.strip_prefix(prefix));
        Self::parse(bare.unwrap_or(id)).ok()
    }
}

macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns the number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

number_id! {
    /// A position in the event log. Dense: no gaps, no repeats.
    EventSeq;
    /// An entry of the log that several hosts share. Dense: no gaps, no repeats.
    EntryNo;
    /// A command that waits for an approver.
    ApprovalId;
    /// Files that were written together, and can be undone together.
    ApplyId;
    /// An effect owed to the outside world.
    EffectId;
    /// A message in some agent's queue, numbered over all queues in commit order.
    MailSeq;
    /// A grant of a lock. It rises with every grant, so that a resource can tell a writer whose lock has
    /// lapsed from the present holder.
    Fence;
    /// A place in the queue for a lock; lower was earlier.
    Ticket;
    /// A place in the order of the broker's messages. Rises with every message; there are gaps.
    PostSeq;
}
