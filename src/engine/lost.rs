//! What ends an engine by itself, and what keeps it from going on with another daemon's entry.

use provost_domain::{LogEntry, State};

/// Why an engine has ended by itself: what it held in memory was no longer what is stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Lost {
    /// The sentence for people.
    pub why: Box<str>,
    /// Whether a new start goes on by itself: what this daemon held is free already, and its host still takes part.
    pub begins_again: bool,
}

/// Looks whether an entry of another daemon proves what it says, by the state before it; otherwise says what it does not prove. Such an entry
/// is not folded, and nothing is written any more.
pub type EntryCheck = Box<dyn Fn(&State, &LogEntry) -> Result<(), Box<str>> + Send>;
