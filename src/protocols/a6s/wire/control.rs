//! What `fleet.command` answers. A6s 6.9.

use serde::Serialize;

/// It was carried out, or has begun.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Commanded {
    /// Always `true`: a command that fails is answered with an error.
    pub ok: bool,
    /// By what the log knows it, or the execution that has begun.
    pub execution_id: String,
    /// Of whom, where it was not a task.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub agent: Option<CommandedAgent>,
}

/// How an agent stands after a command.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandedAgent {
    /// The agent's id.
    pub agent_id: String,
    /// `available`, `busy`, `offline`.
    pub status: &'static str,
    /// `on`, `paused`, `off`.
    pub switch: &'static str,
    /// Its tasks that run.
    pub active_tasks: usize,
}
