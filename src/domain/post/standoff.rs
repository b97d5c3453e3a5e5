//! Two agents that change one file at the same time.

use serde::{Deserialize, Serialize};

use crate::base::{Slug, Timestamp};

/// One such case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Standoff {
    /// The one whose name comes first.
    pub a: Slug,
    /// The other one.
    pub b: Slug,
    /// The file, in its one spelling.
    pub file: Box<str>,
    /// The file, as it was written by the agent that came second.
    pub written: Box<str>,
    /// Since when.
    pub since: Timestamp,
    /// Whether it was decided what to make of it.
    pub decided: bool,
}

/// What tells one from another.
pub(super) type Key = (Slug, Slug, Box<str>);

impl Standoff {
    pub(super) fn key(&self) -> Key {
        (self.a.clone(), self.b.clone(), self.file.clone())
    }

    /// The same as text, for tables.
    pub fn id(&self) -> String {
        format!("{}\n{}\n{}", self.a, self.b, self.file)
    }
}
