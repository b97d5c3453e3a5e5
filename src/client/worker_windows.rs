//! Stands in for the worker's client on Windows, where no run has a door.
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;

use serde_json::Value;

use provost_base::{AgentId, Secret, TaskId};

/// The reason why a message got no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The daemon refused the message.
    #[error("{message}")]
    Refused {
        /// DevIt's word for it, such as `E_FORBIDDEN`.
        code: String,
        /// The daemon's sentence about the refusal.
        message: String,
    },
    /// No process answers at the door.
    #[error("the daemon does not answer at this run's door: {0}")]
    Gone(#[from] io::Error),
    /// The answer is malformed: the daemon did not write it.
    #[error("the answer makes no sense: {0}")]
    Broken(String),
}

/// The way to this run's door.
#[derive(Debug)]
pub enum DoorAddress {
    /// A socket at this path, which the jail has mounted.
    Socket(PathBuf),
    /// A connection that this process has inherited, and the folder in which processes take turns.
    Inherited(std::os::windows::io::OwnedHandle, PathBuf),
}

/// A worker in its jail.
pub struct Worker {
    /// The way to the door.
    pub way: DoorAddress,
    /// The worker's name.
    pub ident: AgentId,
    /// The id of the task that it works on.
    pub task: TaskId,
    /// The secret that signs messages, for this run only.
    pub secret: Secret,
}

impl Worker {
    /// Refuses: no daemon opens such a door on Windows.
    ///
    /// # Errors
    /// Always: there is no door to speak at.
    pub fn say(&self, _msg_type: &str, _payload: &Value) -> Result<Value, WorkerError> {
        let why = "runs have no door of their own on Windows in this version";
        Err(WorkerError::Gone(io::Error::new(io::ErrorKind::Unsupported, why)))
    }
}
