//! The verb that switches workers. A6s 6.9.

use serde::{Deserialize, Serialize};

use crate::Switch;
use provost_base::AgentId;

/// Have a worker begin nothing, or begin again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchWorker {
    /// The worker to switch, by its name in the configuration.
    pub worker: AgentId,
    /// How it is to stand.
    pub to: Switch,
    /// The id that the command was given, for the log.
    pub command: Box<str>,
}

/// The switch is as the caller wanted it, and that is in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerSwitched {
    /// How it stood before.
    pub from: Switch,
}
