//! The crew and its settings, at one moment.

use std::sync::Arc;

use super::{Foreign, View};
use crate::command::{Conflict, DeclareIntent};
use crate::{
    Ahead, Assignment, Claim, Handoff, HandoffState, Hold, Member, Reservation, ReservationKind, State,
};
use provost_base::{AgentId, AssignmentId, HandoffId, RepoPath, Timestamp};

/// The query for the crew with its claims, assignments and handoffs.
#[derive(Clone, Copy, Debug)]
pub struct WholeCrew;

/// Answer to [`WholeCrew`].
#[derive(Clone, Debug)]
pub struct CrewSnapshot {
    /// Members, in the order in which they came.
    pub members: Vec<Arc<Member>>,
    /// Files, in the order in which they were first asked for.
    pub claims: Vec<Arc<Claim>>,
    /// Assignments, oldest first.
    pub assignments: Vec<Arc<Assignment>>,
    /// Handoffs, oldest first.
    pub handoffs: Vec<Arc<Handoff>>,
    /// The present lead; `None` while no member is at work.
    pub lead: Option<AgentId>,
    /// The number of events that were ever on the timeline.
    pub events: u64,
    /// Agents of other doors, if they are shown.
    pub foreign: Foreign,
    /// Other agents' reservations through other doors that are not over, by path.
    pub stakes: Vec<Arc<Reservation>>,
}

impl View for WholeCrew {
    type Out = CrewSnapshot;

    fn look(self, now: Timestamp, state: &State) -> CrewSnapshot {
        CrewSnapshot {
            members: state.crew.iter().cloned().collect(),
            claims: state.claims.iter().cloned().collect(),
            assignments: state.assignments.iter().cloned().collect(),
            handoffs: state.handoffs.iter().cloned().collect(),
            lead: state.crew.lead().cloned(),
            events: state.counters.timeline,
            foreign: Foreign::of(now, state),
            stakes: state.stakes_elsewhere(now).cloned().collect(),
        }
    }
}

impl State {
    /// Returns the reservations through doors other than the crew's that are not over.
    fn stakes_elsewhere(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Reservation>> {
        let live = move |it: &&Arc<Reservation>| it.until.is_none_or(|until| until > now);
        self.stakes.iter().filter(|it| it.kind != ReservationKind::Claim).filter(live)
    }
}

/// The query for a file of the crew, and others' reservations on it through other doors.
#[derive(Clone, Debug)]
pub struct OneFile(pub RepoPath);

impl View for OneFile {
    /// The claim, if the crew has ever asked for the file; and the reservations at this very path.
    type Out = (Option<Arc<Claim>>, Vec<Arc<Reservation>>);

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        let here = state.stakes_elsewhere(now).filter(|it| it.at == self.0).cloned().collect();
        (state.claims.get(&self.0).cloned(), here)
    }
}

/// The query for the numbers of members, files and assignments, with agents of other doors if they are shown.
#[derive(Clone, Copy, Debug)]
pub struct CrewCounts;

/// Answer to [`CrewCounts`].
#[derive(Clone, Debug)]
pub struct CrewCountsOut {
    /// The number of members.
    pub members: usize,
    /// The number of members that are present.
    pub there: usize,
    /// The present lead; `None` while no member is at work.
    pub lead: Option<AgentId>,
    /// The number of files that are remembered.
    pub files: usize,
    /// The number of remembered files that are claimed.
    pub claimed: usize,
    /// The number of remembered files that are in conflict.
    pub conflicted: usize,
    /// The number of assignments.
    pub assignments: usize,
    /// The number of assignments under way.
    pub in_progress: usize,
    /// The number of assignments that are done.
    pub done: usize,
    /// The number of events that were ever on the timeline.
    pub events: u64,
}

impl View for CrewCounts {
    type Out = CrewCountsOut;

    fn look(self, now: Timestamp, state: &State) -> CrewCountsOut {
        let foreign = Foreign::of(now, state);
        CrewCountsOut {
            members: state.crew.len() + foreign.agents.len(),
            there: state.crew.iter().filter(|it| it.is_there()).count() + foreign.there(),
            lead: state.crew.lead().cloned(),
            files: state.claims.len(),
            claimed: state.claims.claimed(),
            conflicted: state.claims.conflicted(),
            assignments: state.assignments.len() + foreign.tasks.len(),
            in_progress: state.assignments.in_progress() + foreign.under_way(),
            done: state.assignments.done(),
            events: state.counters.timeline,
        }
    }
}

/// The query for the member with this name, if it exists.
#[derive(Clone, Debug)]
pub struct OneMember(pub AgentId);

impl View for OneMember {
    type Out = Option<Arc<Member>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.crew.get(&self.0).cloned()
    }
}

/// The query for the claim on this file, if it is remembered.
#[derive(Clone, Debug)]
pub struct OneClaim(pub RepoPath);

impl View for OneClaim {
    type Out = Option<Arc<Claim>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.claims.get(&self.0).cloned()
    }
}

/// The query for the conflict that a change of a file by this agent, or by an unknown one, would make.
#[derive(Clone, Debug)]
pub struct ConflictAhead {
    /// The file that would change.
    pub file: RepoPath,
    /// The agent that would change it; `None` for an unknown one.
    pub by: Option<AgentId>,
}

impl View for ConflictAhead {
    type Out = Option<Ahead>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        state.ahead(now, &self.file, self.by.as_ref())
    }
}

/// The query for the files of one agent.
#[derive(Clone, Debug)]
pub struct ClaimsOf(pub AgentId);

/// The query for other agents' claims on these files, each file with its claim, if there is one.
#[derive(Clone, Debug)]
pub struct ClaimsOn {
    /// The files, in their one spelling.
    pub files: Vec<RepoPath>,
    /// The agent whose own claims do not count.
    pub others_than: AgentId,
}

impl View for ClaimsOn {
    type Out = Vec<Option<Arc<Claim>>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let theirs = |it: &&Arc<Claim>| it.held.owner().is_some_and(|it| *it != self.others_than);
        self.files.iter().map(|file| state.claims.get(file).filter(theirs).cloned()).collect()
    }
}

impl View for ClaimsOf {
    type Out = Vec<Arc<Claim>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.claims.of(&self.0).cloned().collect()
    }
}

/// The query for the assignment with this id, if it exists.
#[derive(Clone, Debug)]
pub struct OneAssignment(pub AssignmentId);

impl View for OneAssignment {
    type Out = Option<Arc<Assignment>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.assignments.get(&self.0).cloned()
    }
}

/// The query for the handoff with this id, if it is remembered.
#[derive(Clone, Debug)]
pub struct OneHandoff(pub HandoffId);

impl View for OneHandoff {
    type Out = Option<Arc<Handoff>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.handoffs.get(&self.0).cloned()
    }
}

/// The query for the conflicts that a change would have if it were announced now. It announces nothing.
#[derive(Clone, Debug)]
pub struct Collisions {
    /// The agent that would announce it.
    pub by: AgentId,
    /// The change, as it would be announced.
    pub verb: DeclareIntent,
}

impl View for Collisions {
    /// The first conflicts, and the number of further ones.
    type Out = (Vec<Conflict>, usize);

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        state.collisions_ahead(now, &self.by, &self.verb)
    }
}

/// The query for files that agents have, by path; conflicted ones included.
#[derive(Clone, Debug, Default)]
pub struct HeldFiles {
    /// The agent whose files are listed; `None` for all agents.
    pub of: Option<AgentId>,
    /// The file whose claim is listed; `None` for all files.
    pub file: Option<RepoPath>,
}

impl View for HeldFiles {
    type Out = Vec<Arc<Claim>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let wanted = |it: &&Arc<Claim>| {
            it.held != Hold::Free && self.of.as_ref().is_none_or(|of| it.held.owner() == Some(of))
        };
        match &self.file {
            Some(file) => state.claims.get(file).filter(wanted).cloned().into_iter().collect(),
            None => state.claims.by_path().filter(wanted).cloned().collect(),
        }
    }
}

/// The query for handoffs that concern an agent, oldest first: its own, and those that it may answer.
#[derive(Clone, Debug)]
pub struct SomeHandoffs {
    /// The agent that the handoffs concern.
    pub of: AgentId,
    /// Whether answered handoffs are listed, too.
    pub answered: bool,
}

impl View for SomeHandoffs {
    type Out = Vec<Arc<Handoff>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let wanted = |it: &&Arc<Handoff>| {
            (self.answered || it.state == HandoffState::Pending)
                && (it.from == self.of || it.to.as_deref().is_none_or(|to| to == self.of.as_str()))
        };
        state.handoffs.iter().filter(wanted).cloned().collect()
    }
}
