//! The numbers of everything that is watched from outside, and how long the oldest of each kind has waited.

use super::View;
use crate::{Deed, State, Task, TaskState, WorkerKind};
use provost_base::{EventSeq, Timestamp, Ttl};

/// The query for counts of live things; past ones cost nothing.
#[derive(Clone, Copy, Debug)]
pub struct Gauges;

/// A number of things, and the age of the oldest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crowd {
    /// The number of things.
    pub count: usize,
    /// When the oldest began; `None` if there are none.
    pub since: Option<Timestamp>,
}

impl Crowd {
    fn add(&mut self, since: Timestamp) {
        self.count += 1;
        self.since = Some(self.since.map_or(since, |it| it.min(since)));
    }

    fn of(all: impl Iterator<Item = Timestamp>) -> Self {
        let mut crowd = Self::default();
        all.for_each(|since| crowd.add(since));
        crowd
    }
}

/// Answer to [`Gauges`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GaugesOut {
    /// The moment of the answer.
    pub now: Timestamp,
    /// Locks in force.
    pub locks_held: usize,
    /// Locks whose time is up.
    pub locks_lapsed: usize,
    /// Agents that wait for a lock or a resource.
    pub lock_waiters: Crowd,
    /// Commands that wait for approval.
    pub approvals: Crowd,
    /// Tasks whose delegation waits for approval.
    pub awaiting: usize,
    /// Tasks that wait until others have succeeded.
    pub waiting: usize,
    /// Tasks whose next attempt waits for its time.
    pub retrying: usize,
    /// Tasks that are allowed and not yet with their workers.
    pub queued: Crowd,
    /// Tasks that polling workers have collected and not reported on.
    pub assigned: usize,
    /// Tasks whose workers are at work.
    pub running: usize,
    /// Tasks among them whose workers the daemon has started.
    pub started: usize,
    /// Notification hooks that are owed.
    pub hooks: usize,
    /// Notices to addresses elsewhere that are owed.
    pub notices: usize,
    /// Jobs that go on.
    pub jobs: usize,
    /// Applies that go on.
    pub applies: usize,
    /// Messages in the queues of agents.
    pub mail: usize,
    /// Tasks that ended completed or cancelled, since the beginning.
    pub completed: u64,
    /// Tasks that failed, since the beginning.
    pub failed: u64,
    /// The newest event of the journal.
    pub event: EventSeq,
}

impl View for Gauges {
    type Out = GaugesOut;

    fn look(self, now: Timestamp, state: &State) -> GaugesOut {
        let counters = state.counters;
        let mut it = GaugesOut {
            now,
            lock_waiters: Crowd::of(state.locks.waiters().map(|it| it.since)),
            approvals: Crowd::of(state.approvals.iter().map(|it| it.asked_at)),
            hooks: state.hooks.len(),
            notices: state.outgoing.len(),
            mail: state.mail.iter().count(),
            completed: counters.completed,
            failed: counters.failed,
            event: counters.event,
            ..GaugesOut::default()
        };
        for lock in state.locks.iter() {
            *(if lock.lapsed { &mut it.locks_lapsed } else { &mut it.locks_held }) += 1;
        }
        for task in state.tasks.iter() {
            match task.state {
                TaskState::Awaiting { .. } => it.awaiting += 1,
                TaskState::Waiting => it.waiting += 1,
                TaskState::Retrying { .. } => it.retrying += 1,
                TaskState::Queued { until } => {
                    it.queued.add(queued_since(task, until, state.settings.away_keep));
                }
                TaskState::Assigned { .. } => it.assigned += 1,
                TaskState::Running { .. } => {
                    it.running += 1;
                    it.started += usize::from(task.kind == WorkerKind::Cli);
                }
                TaskState::Finished { .. } => {}
            }
        }
        for deed in state.owing.deeds() {
            match deed {
                Deed::Job(_) => it.jobs += 1,
                Deed::Apply(_) => it.applies += 1,
            }
        }
        it
    }
}

/// Returns when a task was queued, which is `keep` before its worker loses it.
fn queued_since(task: &Task, until: Timestamp, keep: Ttl) -> Timestamp {
    if task.capture {
        // A picture is lost sooner, and nothing happens to its task before it is taken.
        return task.updated_at;
    }
    // What happens to a task while it waits, such as words for its agent, makes its wait no shorter. `keep` may have
    // been another duration when the task was queued.
    until.before(keep).max(task.created_at).min(task.updated_at)
}
