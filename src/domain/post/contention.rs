//! Two agents that change one file at the same time.

use serde::{Deserialize, Serialize};

use provost_base::{Slug, Timestamp};

/// A case of two agents that change one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contention {
    /// The agent whose slug comes first.
    pub a: Slug,
    /// The agent whose slug comes second.
    pub b: Slug,
    /// The file, in its one spelling.
    pub file: Box<str>,
    /// The file, as the agent that came second wrote it.
    pub written: Box<str>,
    /// When the second agent's change became known.
    pub since: Timestamp,
    /// Whether the detector has handled the case.
    pub decided: bool,
}

/// The members that identify a case.
pub(super) type Key = (Slug, Slug, Box<str>);

impl Contention {
    pub(super) fn key(&self) -> Key {
        (self.a.clone(), self.b.clone(), self.file.clone())
    }

    /// Returns the key as text, for tables.
    pub fn id(&self) -> String {
        format!("{}\n{}\n{}", self.a, self.b, self.file)
    }
}
