//! Queries of a caller that is about to write files.

use std::collections::BTreeSet;

use super::View;
use crate::{Reservation, State};
use provost_base::{AgentId, ApplyId, RepoPath, Timestamp};

/// The reservation that keeps an agent from writing to a file; one answer for each file.
#[derive(Clone, Debug)]
pub struct InTheWay {
    /// The agent that wants to write.
    pub who: AgentId,
    /// The files that it wants to write.
    pub files: Vec<RepoPath>,
}

impl View for InTheWay {
    type Out = Vec<Option<Reservation>>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        self.files.iter().map(|file| state.keeper_of(now, &self.who, file)).collect()
    }
}

/// The applies that are not over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppliesUnderWay;

impl View for AppliesUnderWay {
    type Out = BTreeSet<ApplyId>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.owing.applies().collect()
    }
}
