//! The agents that editors can delegate to, and their readiness.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::AgentService;
use provost_base::AgentId;
use provost_domain::view::{AllSwitches, LiveTasks};
use provost_domain::{Refusal, Switch, TaskState, Usage};

/// An agent of the configuration, which is a worker of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetAgent {
    /// The name of the worker, and of the agent.
    pub id: AgentId,
    /// The agent's name for people.
    pub name: Box<str>,
    /// A text for people about the agent's purpose.
    pub description: Box<str>,
    /// The kind of work, by which editors choose.
    pub capability: Box<str>,
    /// The place that editors show for the agent, from the configuration.
    pub region: Box<str>,
    /// The number of the agent's tasks that may run at the same time.
    pub max_parallel: u32,
    /// Whether the agent's entry enables it.
    pub enabled: bool,
}

/// All agents, in the order of the configuration; replaced as a whole on reload.
pub type Fleet = Arc<[FleetAgent]>;

/// Whether an agent could begin now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Availability {
    /// The agent could begin a task at once.
    Available,
    /// As many tasks of the agent run as may run.
    Busy,
    /// The agent is disabled or switched off, or its program is missing.
    Offline,
}

/// The use that agents have reported since the daemon's start.
#[derive(Default)]
pub(super) struct Tally(Mutex<BTreeMap<AgentId, Usage>>);

/// An agent at this moment.
#[derive(Clone, Debug)]
pub struct FleetMember {
    /// The agent's entry in the configuration.
    pub agent: FleetAgent,
    /// Whether the agent could begin now.
    pub availability: Availability,
    /// The number of the agent's tasks that run.
    pub running: usize,
    /// Whether a command has switched the agent off.
    pub switch: Switch,
    /// The use that the agent's jobs have reported since the daemon's start.
    pub used: Option<Usage>,
}

impl AgentService {
    /// Returns the agents of the configuration.
    fn fleet(&self) -> Fleet {
        self.settings().fleet
    }

    /// Returns each agent, and whether it could begin now.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn fleet_now(&self) -> Result<Vec<FleetMember>, Refusal> {
        let (fleet, profiles) = (self.fleet(), self.provost().profiles());
        let live = self.provost().view(LiveTasks).await?.tasks;
        let switches = self.provost().view(AllSwitches).await?;
        let mut running: BTreeMap<AgentId, usize> = BTreeMap::new();
        for task in live.iter().filter(|task| matches!(task.state, TaskState::Running { .. })) {
            *running.entry(task.order.worker.clone()).or_default() += 1;
        }
        let used = self.0.used.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let look = move || {
            let member = |agent: &FleetAgent| {
                let program = profiles.get(&agent.id).map(|it| &it.program);
                let is_there = program.is_some_and(|it| std::fs::metadata(it).is_ok_and(|it| it.is_file()));
                let running = running.get(&agent.id).copied().unwrap_or(0);
                let switch = switches.of(&agent.id);
                let availability = match is_there && agent.enabled && switch == Switch::On {
                    false => Availability::Offline,
                    true if running >= agent.max_parallel as usize => Availability::Busy,
                    true => Availability::Available,
                };
                let used = used.get(&agent.id).cloned();
                FleetMember { agent: agent.clone(), availability, running, switch, used }
            };
            fleet.iter().map(member).collect()
        };
        off_thread(look).await
    }

    /// Adds the use that an agent's finished run reports.
    pub(super) fn count_used(&self, agent: &AgentId, used: &Usage) {
        let mut all = self.0.used.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(agent.clone()).or_default().add(used);
    }
}

/// Examines files on a thread that may block.
async fn off_thread<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|_| Refusal::NotReady { why: "programs cannot be examined".into() })
}
