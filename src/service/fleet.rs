//! The agents that editors can hand work to, and whether they could begin now.

use std::sync::Arc;

use super::Provost;
use crate::base::{AgentId, Digest};
use crate::domain::view::LiveTasks;
use crate::domain::{Refusal, TaskState};

/// An agent of the configuration, which is a worker of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetAgent {
    /// The worker.
    pub id: AgentId,
    /// Its name for people.
    pub name: Box<str>,
    /// What it is good for.
    pub description: Box<str>,
    /// What it can do, by which editors choose.
    pub capability: Box<str>,
    /// Where it runs.
    pub region: Box<str>,
    /// Tasks of it that may run at the same time.
    pub max_parallel: u32,
    /// Whether it works at all.
    pub enabled: bool,
}

/// All of them, in the order of the configuration; replaced as a whole on reload.
pub type Fleet = Arc<[FleetAgent]>;

/// Whether an agent could begin now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Availability {
    /// It could.
    Available,
    /// As many tasks of it run as may.
    Busy,
    /// It is switched off, or there is no program to run.
    Offline,
}

/// An agent at this moment.
#[derive(Clone, Debug)]
pub struct FleetMember {
    /// Which.
    pub agent: FleetAgent,
    /// Whether it could begin now.
    pub availability: Availability,
    /// Tasks of it that run.
    pub running: usize,
    /// Of its program.
    pub version: Option<Digest>,
}

impl Provost {
    /// The agents of the configuration.
    pub fn fleet(&self) -> Fleet {
        self.configured().fleet
    }

    /// Each agent, and whether it could begin now.
    ///
    /// # Errors
    /// When the engine gives no answer.
    pub async fn fleet_now(&self) -> Result<Vec<FleetMember>, Refusal> {
        let (fleet, profiles) = (self.fleet(), self.profiles());
        let live = self.view(LiveTasks).await?.tasks;
        let runs = |id: &AgentId| {
            let running = |it: &&Arc<_>| is_running_on(it, id);
            live.iter().filter(running).count()
        };
        let with_tasks: Vec<(FleetAgent, usize)> =
            fleet.iter().map(|it| (it.clone(), runs(&it.id))).collect();
        let provost = self.clone();
        let look = move || {
            let member = |(agent, running): (FleetAgent, usize)| {
                let program = profiles.get(&agent.id).map(|it| it.program.clone());
                let version = program.and_then(|it| provost.0.programs.digest(&it));
                let availability = match version {
                    None => Availability::Offline,
                    Some(_) if !agent.enabled => Availability::Offline,
                    Some(_) if running >= agent.max_parallel as usize => Availability::Busy,
                    Some(_) => Availability::Available,
                };
                FleetMember { agent, availability, running, version }
            };
            with_tasks.into_iter().map(member).collect()
        };
        // Programs are looked at, and read when they have changed.
        tokio::task::spawn_blocking(look)
            .await
            .map_err(|_| Refusal::Unavailable { why: "programs cannot be looked at".into() })
    }
}

fn is_running_on(task: &crate::domain::Task, worker: &AgentId) -> bool {
    task.order.worker == *worker && matches!(task.state, TaskState::Running { .. })
}
