//! The part of other doors that a crew sees: their agents and delegated work, if the configuration permits it.

use std::sync::Arc;

use super::{KnownAgent, KnownAgents, LiveTasks, View};
use crate::{Door, State, Task, TaskState};
use provost_base::{AgentId, ShownToCrew, Timestamp};

/// Agents and tasks from outside of the crew; empty unless `show_foreign` is set.
#[derive(Clone, Debug, Default)]
pub struct Foreign {
    /// Agents that use other doors and are not members of the crew, by name.
    pub agents: Vec<ForeignAgent>,
    /// Delegated tasks that are not finished, oldest first.
    pub tasks: Vec<Arc<Task>>,
}

/// An agent of another door, with its work.
#[derive(Clone, Debug)]
pub struct ForeignAgent {
    /// The daemon's record of the agent.
    pub known: KnownAgent,
    /// The delegated task that it works on.
    pub at: Option<Arc<Task>>,
}

impl Foreign {
    pub(super) fn of(now: Timestamp, state: &State) -> Self {
        if !state.settings.crew.show_foreign {
            return Self::default();
        }
        let tasks = LiveTasks.look(now, state).tasks;
        let at = |agent: &AgentId| {
            let running = |it: &&Arc<Task>| matches!(it.state, TaskState::Running { .. });
            tasks.iter().filter(running).find(|it| it.order.worker == *agent).cloned()
        };
        let others = KnownAgents.look(now, state).into_iter().filter(|it| is_foreign(state, it));
        let agents = others.map(|known| ForeignAgent { at: at(&known.id), known }).collect();
        Self { agents, tasks }
    }

    /// Returns how many of the agents are present.
    pub fn there(&self) -> usize {
        self.agents.iter().filter(|it| it.known.alive).count()
    }

    /// Returns how many of the tasks are under way.
    pub fn under_way(&self) -> usize {
        self.tasks.iter().filter(|it| matches!(it.state, TaskState::Running { .. })).count()
    }
}

/// Checks whether an agent works through a door of another protocol, and is not a member of the crew.
fn is_foreign(state: &State, it: &KnownAgent) -> bool {
    let is_listed = |door: &Door| door.row().to_crew == ShownToCrew::Listed;
    state.crew.get(&it.id).is_none() && it.doors.iter().any(is_listed)
}

/// The query for one agent outside of the crew, if such agents are shown.
#[derive(Clone, Debug)]
pub struct OneForeign(pub AgentId);

impl View for OneForeign {
    type Out = Option<ForeignAgent>;

    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        Foreign::of(now, state).agents.into_iter().find(|it| it.known.id == self.0)
    }
}

/// The query whether tasks that were delegated through other doors are shown.
#[derive(Clone, Copy, Debug)]
pub struct ShowsForeign;

impl View for ShowsForeign {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.settings.crew.show_foreign
    }
}
