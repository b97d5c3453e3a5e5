//! The verb that switches workers. A6s 6.9.

use serde::{Deserialize, Serialize};

use crate::Switch;
use provost_base::AgentId;

/// Keep a worker from beginning tasks, or let it begin them again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchWorker {
    /// The worker to switch, by its name in the configuration.
    pub worker: AgentId,
    /// The new state of the switch.
    pub to: Switch,
    /// The id that the command was given, for the log.
    pub command: Box<str>,
}

/// The switch is in the wanted state, and that is in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerSwitched {
    /// The state of the switch before.
    pub from: Switch,
}
