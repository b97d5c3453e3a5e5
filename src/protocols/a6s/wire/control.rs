//! The answers of `fleet.command`. A6s 6.9.

use serde::Serialize;

/// The answer to a command that was carried out or has begun.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Commanded {
    /// Always `true`: a command that fails is answered with an error.
    pub ok: bool,
    /// The id of the command in the log, or the execution that has begun.
    pub execution_id: String,
    /// The agent, if the command was not a task.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub agent: Option<CommandedAgent>,
}

/// The state of an agent after a command.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandedAgent {
    /// The agent's id.
    pub agent_id: String,
    /// `available`, `busy`, `offline`.
    pub status: &'static str,
    /// `on`, `paused`, `off`.
    pub switch: &'static str,
    /// The number of its running tasks.
    pub active_tasks: usize,
}
