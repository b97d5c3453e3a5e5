//! The place of a caller among the processes of the machine.
//!
//! ```text
//!   first process
//!     `- terminal's program         session 3
//!          `- shell, on a terminal  session 2   <- the tree: sessions below without a terminal belong to it
//!               `- host, setsid     session 1
//!                    `- caller
//! ```
//! A process can choose its name, and can read any key of the user; it can leave its tree of processes, but not
//! choose one. A session is identified by the process at its top and that process's start time.

use serde::{Deserialize, Serialize};

use super::lock::ProcessMark;

/// A session that a caller is in, or that a process above it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessSession {
    /// The process at its top: its leader, if that still runs.
    pub top: ProcessMark,
    /// Whether a terminal controls it.
    pub terminal: bool,
}

/// The sessions that a caller is in, with the index of the top of its tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallOrigin {
    sessions: Box<[ProcessSession]>,
    tree: usize,
    /// Whether an agent has spoken in one of these sessions.
    #[serde(default)]
    spoken: bool,
}

impl CallOrigin {
    /// Makes the origin from the caller's session and those above it, innermost first; `spoken` is how many of them, counted from
    /// the caller's, lie at or below the topmost one in which an agent has spoken. `None` if nothing is known of the caller.
    pub fn new(sessions: Vec<ProcessSession>, spoken: usize) -> Option<Self> {
        let last = sessions.len().checked_sub(1)?;
        // A program makes a session without a terminal in passing: such a session belongs to the nearest one above that has a terminal.
        let with_terminal = sessions.iter().position(|it| it.terminal).unwrap_or(0);
        let tree = with_terminal.max(spoken.saturating_sub(1)).min(last);
        Some(Self { sessions: sessions.into(), tree, spoken: spoken > 0 })
    }

    /// Returns the origin of a caller on a system that does not show the processes above a process.
    pub fn untold() -> Self {
        Self { sessions: Box::default(), tree: 0, spoken: false }
    }

    /// Checks whether the system shows where callers are.
    pub(super) fn is_told(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// Checks whether an agent has spoken in the caller's session, or in one above it.
    pub(super) fn is_of_agents(&self) -> bool {
        self.spoken
    }

    /// Returns the top of the caller's tree; `None` if no terminal is above it, as for a process that has left its
    /// tree.
    pub(super) fn tree(&self) -> Option<ProcessMark> {
        let has_terminal = self.sessions.iter().any(|it| it.terminal);
        self.sessions.get(self.tree).filter(|_| has_terminal).map(|it| it.top)
    }

    /// Checks whether two callers are in one tree: either of them is in the other's tree, or below it.
    pub(super) fn shares_tree_with(&self, other: &CallOrigin) -> bool {
        let top = |it: &CallOrigin| it.sessions.get(it.tree).map(|it| it.top);
        top(self).is_some_and(|it| other.has(it)) || top(other).is_some_and(|it| self.has(it))
    }

    /// Checks whether this caller is in the very session of another one, or below it.
    pub(super) fn is_below(&self, other: &CallOrigin) -> bool {
        other.sessions.first().is_some_and(|it| self.has(it.top))
    }

    fn has(&self, top: ProcessMark) -> bool {
        self.sessions.iter().any(|it| it.top == top)
    }
}
