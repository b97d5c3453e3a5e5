//! The types for switching workers and for ending sessions.

use serde::{Deserialize, Serialize};

/// `POST /switch-worker`: pauses a worker of the configuration, or lets it begin tasks again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SwitchWorker {
    /// The name of a worker of the configuration.
    pub worker: String,
    /// Whether it takes work on.
    pub on: bool,
}

/// Answer to [`SwitchWorker`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerSwitched {
    /// The name of the worker, as the request has it.
    pub worker: String,
    /// Its state before: `on`, `paused` or `off`.
    pub from: String,
    /// Its state now.
    pub to: String,
}

/// Answer to `POST /end-session`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SessionEnded {
    /// The number of released locks, claims and intents.
    pub given_back: usize,
}
