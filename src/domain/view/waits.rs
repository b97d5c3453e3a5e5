//! All waits: the waiting party, the thing waited for, the parties ahead, and the beginning.

use std::sync::Arc;

use super::View;
use crate::lock::{LockWait, RefusedCircle};
use crate::post::Question;
use crate::{Contract, ContractStatus, Handoff, HandoffState, Parked, State, Task, TaskState};
use provost_base::Timestamp;
use provost_base::limits::WAITS_OF_A_KIND_MAX;

/// The query for everything that agents wait for.
#[derive(Clone, Copy, Debug)]
pub struct AllWaits;

/// Answer to [`AllWaits`]: the longest waits of each kind, up to the number that is listed.
#[derive(Clone, Debug, Default)]
pub struct AllWaitsOut {
    /// The moment of the answer.
    pub now: Timestamp,
    /// Waits for locks and resources.
    pub locks: Vec<LockWait>,
    /// Commands that wait for approval.
    pub approvals: Vec<Arc<Parked>>,
    /// Questions that wait for a person's answer.
    pub questions: Vec<Arc<Question>>,
    /// Tasks whose askers wait for their end; for a queued one, with its place in the queue of its worker.
    pub tasks: Vec<(Arc<Task>, Option<usize>)>,
    /// Work that is handed over and not accepted.
    pub handoffs: Vec<Arc<Handoff>>,
    /// Contracts that no agent has answered.
    pub contracts: Vec<Arc<Contract>>,
    /// The number of waits that are not listed.
    pub more: usize,
    /// Circles of waiting that were refused in the last hour, newest first.
    pub circles: Vec<Arc<RefusedCircle>>,
}

/// Returns the first items, and adds the number of further ones to `more`.
fn first<T>(all: impl Iterator<Item = T>, more: &mut usize) -> Vec<T> {
    let mut all = all;
    let found = all.by_ref().take(WAITS_OF_A_KIND_MAX).collect();
    *more += all.count();
    found
}

impl View for AllWaits {
    type Out = AllWaitsOut;

    fn look(self, now: Timestamp, state: &State) -> AllWaitsOut {
        let mut more = state.locks.waiters().count().saturating_sub(WAITS_OF_A_KIND_MAX);
        let mut tasks: Vec<&Arc<Task>> =
            state.tasks.iter().filter(|it| !matches!(it.state, TaskState::Awaiting { .. })).collect();
        tasks.sort_by(|a, b| (a.created_at, a.id()).cmp(&(b.created_at, b.id())));
        let places = state.places_in_line();
        let placed = tasks.into_iter().map(|task| (task.clone(), places.get(task.id()).copied()));
        let pending = state.handoffs.iter().filter(|it| it.state == HandoffState::Pending);
        let proposed = state.contracts.iter().filter(|it| it.status == ContractStatus::Proposed);
        AllWaitsOut {
            now,
            locks: state.locks.waits(WAITS_OF_A_KIND_MAX),
            approvals: first(state.approvals.iter().cloned(), &mut more),
            questions: first(state.broker.questions().cloned(), &mut more),
            tasks: first(placed, &mut more),
            handoffs: first(pending.cloned(), &mut more),
            contracts: first(proposed.cloned(), &mut more),
            circles: state.circles.lately(now).cloned().collect(),
            more,
        }
    }
}
