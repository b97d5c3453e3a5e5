//! The agents that work on the repository and their work, for one of its agents.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::View;
use crate::post::slug;
use crate::{
    Assignment, AssignmentState, Claim, Handoff, HandoffState, Hold, Member, Reservation, ReservationKind,
    State, TaskState,
};
use provost_base::limits::AT_WORK_ROWS_MAX;
use provost_base::{AgentId, Slug, TaskId, Timestamp, Ttl};

/// The query for the facts that concern one agent: other agents, their holds, and the work that is requested from it.
#[derive(Clone, Debug)]
pub struct AtWork(pub AgentId);

/// The first rows of a longer list.
#[derive(Clone, Debug)]
pub struct FirstOf<T> {
    /// The first rows.
    pub rows: Vec<T>,
    /// The number of further rows.
    pub more: usize,
}

impl<T> FirstOf<T> {
    fn of(all: impl Iterator<Item = T>) -> Self {
        let mut all = all;
        let rows = all.by_ref().take(AT_WORK_ROWS_MAX).collect();
        Self { rows, more: all.count() }
    }
}

/// Answer to [`AtWork`].
#[derive(Clone, Debug)]
pub struct AtWorkOut {
    /// The agent itself, if it is a member of the crew.
    pub me: Option<Arc<Member>>,
    /// Members of the crew that are present, in the order in which they came.
    pub members: FirstOf<Arc<Member>>,
    /// Workers that work on a delegated task, by name.
    pub workers: FirstOf<(AgentId, TaskId)>,
    /// Files that are claimed, locked or in conflict, by path.
    pub claims: FirstOf<Arc<Claim>>,
    /// Other agents' reservations through other doors that are not over, by path.
    pub stakes: FirstOf<Arc<Reservation>>,
    /// Assignments for the agent that are not done, oldest first.
    pub assignments: FirstOf<Arc<Assignment>>,
    /// Handoffs that the agent may answer, oldest first.
    pub handoffs: FirstOf<Arc<Handoff>>,
    /// The longest time that a member may be silent.
    pub patience: Ttl,
}

impl View for AtWork {
    type Out = AtWorkOut;

    fn look(self, now: Timestamp, state: &State) -> AtWorkOut {
        let me = self.0;
        let my_slug = slug(me.as_str());
        let workers: BTreeSet<_> = state
            .tasks
            .iter()
            .filter(|it| matches!(it.state, TaskState::Running { .. }) && it.order.worker != me)
            .map(|it| (it.order.worker.clone(), it.id().clone()))
            .collect();
        let mut assignments: Vec<_> = state
            .assignments
            .iter()
            .filter(|it| it.to.as_deref() == Some(me.as_str()) && it.state != AssignmentState::Done)
            .cloned()
            .collect();
        assignments.sort_by_key(|it| it.place);
        let for_me = |it: &&Arc<Handoff>| {
            it.state == HandoffState::Pending
                && it.from != me
                && it.to.as_deref().is_none_or(|to| to == me.as_str())
        };
        AtWorkOut {
            me: state.crew.get(&me).cloned(),
            members: FirstOf::of(state.crew.iter().filter(|it| it.is_there()).cloned()),
            workers: FirstOf::of(workers.into_iter()),
            claims: FirstOf::of(state.claims.by_path().filter(|it| it.held != Hold::Free).cloned()),
            stakes: FirstOf::of(
                state.stakes.iter().filter(|it| is_anothers(it, now, &me, &my_slug)).cloned(),
            ),
            assignments: FirstOf::of(assignments.into_iter()),
            handoffs: FirstOf::of(state.handoffs.iter().filter(for_me).cloned()),
            patience: state.settings.crew.dead_after,
        }
    }
}

/// Checks whether a reservation belongs to another agent, through another door than that of claims, and is not
/// over. At the broker door one agent has several spellings.
fn is_anothers(it: &Reservation, now: Timestamp, me: &AgentId, my_slug: &Slug) -> bool {
    let mine = it.agent == *me || (it.kind == ReservationKind::Plan && slug(it.agent.as_str()) == *my_slug);
    it.kind != ReservationKind::Claim && !mine && it.until.is_none_or(|until| until > now)
}
