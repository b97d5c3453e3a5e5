//! Workers that are held back, and sessions that end.

use serde::{Deserialize, Serialize};

/// `POST /switch-worker`: have a worker of the configuration begin nothing, or begin again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchWorker {
    /// The name of a worker of the configuration.
    pub worker: String,
    /// Whether it is to take work on.
    pub on: bool,
}

/// Answer to [`SwitchWorker`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerSwitched {
    /// The name of the worker, as the request has it.
    pub worker: String,
    /// How it stood before: `on`, `paused` or `off`.
    pub from: String,
    /// How it stands now.
    pub to: String,
}

/// Answer to `POST /end-session`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SessionEnded {
    /// Locks, claims and announced changes that were given back.
    pub given_back: usize,
}
