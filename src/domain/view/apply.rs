//! Queries of a caller that is about to write files.

use std::collections::BTreeSet;

use super::View;
use crate::{Reservation, State};
use provost_base::{AgentId, ApplyId, RepoPath, TaskId, Timestamp};

/// The query for the reservations that keep an agent from writing to files; one answer for each file.
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

/// The query for the task whose changes an apply writes; `None` if the apply is over, or writes no task's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskOfApply(pub ApplyId);

impl View for TaskOfApply {
    type Out = Option<TaskId>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.owing.task_of(self.0).cloned()
    }
}

/// The query for the applies that are not over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppliesUnderWay;

impl View for AppliesUnderWay {
    type Out = BTreeSet<ApplyId>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.owing.applies().collect()
    }
}
