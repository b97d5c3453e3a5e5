//! The reason why an engine ends by itself, and the check that keeps it from folding another daemon's entry.

use provost_domain::{LogEntry, State};

/// The reason why an engine has ended by itself: its memory no longer matched the store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Lost {
    /// The sentence for people.
    pub why: Box<str>,
    /// Whether a new start continues by itself: this daemon's resources are free already, and its host still takes part.
    pub begins_again: bool,
}

/// Checks whether an entry of another daemon proves its content, by the state before it; otherwise returns what it
/// does not prove. Such an entry is not folded, and this daemon writes no more.
pub type EntryCheck = Box<dyn Fn(&State, &LogEntry) -> Result<(), Box<str>> + Send>;
