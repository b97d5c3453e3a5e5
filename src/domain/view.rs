//! Questions that change nothing, answered from memory.

use std::sync::Arc;

use super::{Agent, Mail, Parked, State, Task};
use crate::base::{AgentId, ApprovalId, TaskId, Timestamp};

/// A question. Asked of the engine, which answers between two batches.
pub trait View: Send + 'static {
    /// The answer.
    type Out: Send + 'static;

    /// Reads it off the state.
    fn look(self, now: Timestamp, state: &State) -> Self::Out;
}

/// All unfinished tasks, oldest first, with the totals of those that are finished.
#[derive(Clone, Copy, Debug)]
pub struct LiveTasks;

/// Answer to [`LiveTasks`].
#[derive(Clone, Debug)]
pub struct LiveTasksOut {
    /// Unfinished tasks, oldest first.
    pub tasks: Vec<Arc<Task>>,
    /// Completed and cancelled since the beginning.
    pub completed: u64,
    /// Failed since the beginning.
    pub failed: u64,
}

impl View for LiveTasks {
    type Out = LiveTasksOut;

    fn look(self, _now: Timestamp, state: &State) -> LiveTasksOut {
        let mut tasks: Vec<_> = state.tasks.iter().cloned().collect();
        tasks.sort_by(|a, b| (a.created_at, a.id()).cmp(&(b.created_at, b.id())));
        LiveTasksOut { tasks, completed: state.counters.completed, failed: state.counters.failed }
    }
}

/// One unfinished task.
#[derive(Clone, Debug)]
pub struct LiveTask(pub TaskId);

impl View for LiveTask {
    type Out = Option<Arc<Task>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.tasks.get(&self.0).cloned()
    }
}

/// Everything that waits for approval, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Waiting;

impl View for Waiting {
    type Out = Vec<Arc<Parked>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.approvals.iter().cloned().collect()
    }
}

/// How many notification hooks are owed.
#[derive(Clone, Copy, Debug)]
pub struct HooksOwed;

impl View for HooksOwed {
    type Out = usize;

    fn look(self, _now: Timestamp, state: &State) -> usize {
        state.hooks.len()
    }
}

/// One command that waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitingOne(pub ApprovalId);

impl View for WaitingOne {
    type Out = Option<Arc<Parked>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.approvals.get(self.0).cloned()
    }
}

/// Known agents, with when they were last seen since the daemon started.
#[derive(Clone, Copy, Debug)]
pub struct KnownAgents;

/// One row of the answer to [`KnownAgents`].
#[derive(Clone, Debug)]
pub struct KnownAgent {
    /// What is remembered.
    pub agent: Arc<Agent>,
    /// Last sign of life.
    pub last_seen: Option<Timestamp>,
    /// Whether that was within [`super::ALIVE_FOR`].
    pub alive: bool,
    /// Messages that wait for it.
    pub mail: usize,
    /// Unfinished tasks it asked for.
    pub asked: u32,
}

impl View for KnownAgents {
    type Out = Vec<KnownAgent>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        let row = |agent: &Arc<Agent>| KnownAgent {
            agent: agent.clone(),
            last_seen: state.agents.last_seen(&agent.id),
            alive: state.agents.is_alive(&agent.id, now),
            mail: state.mail.waiting(&agent.id),
            asked: state.tasks.asked_by(&agent.id),
        };
        state.agents.iter().map(row).collect()
    }
}

/// Process ids under which agents have registered, as the kernel told: a person's terminal is not below these.
#[derive(Clone, Copy, Debug)]
pub struct AgentPids;

impl View for AgentPids {
    type Out = Vec<u32>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.agents.iter().filter_map(|agent| agent.peer_pid).collect()
    }
}

/// The message with a task's last word, if it waits for an agent.
#[derive(Clone, Debug)]
pub struct LastWord {
    /// Whose queue.
    pub to: AgentId,
    /// About which task.
    pub task: TaskId,
}

impl View for LastWord {
    type Out = Option<Arc<Mail>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.mail.last_word(&self.to, &self.task).cloned()
    }
}

/// Whether an agent has mail that nobody is carrying.
#[derive(Clone, Debug)]
pub struct HasMail(pub AgentId);

impl View for HasMail {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.mail.waiting(&self.0) > 0
    }
}
