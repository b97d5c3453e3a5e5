//! The types for permission requests of hosts for their tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The prefix that hosts put before the tool names of a server that is configured as `provost`.
pub const OUR_TOOLS: &str = "mcp__provost__";

/// `POST /ask-permission`: asks whether the caller may use a tool of its host. A repeated request means the same question.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AskPermission {
    /// The id of the request, chosen by the caller; a new one for every use of a tool.
    pub id: String,
    /// The host: `claude`, `codex`.
    pub host: String,
    /// The name of the host's tool, as the host calls it.
    pub tool: String,
    /// The arguments with which the host would call it; bounded.
    pub arguments: Value,
    /// How long the host waits in all, in milliseconds; a later answer has no effect.
    pub patience_ms: u64,
    /// How long this request waits, in milliseconds.
    pub wait_ms: Option<u64>,
    /// The absolute folder in which the host would use the tool: rules about commands and files allow nothing without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The absolute path of the work tree in which the caller works; the daemon's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
}

/// Answer to [`AskPermission`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Permission {
    /// `given`; `denied` by a rule or an approver; `waiting`; `unanswered` in time; or `unruled`: no rule covers it.
    pub state: String,
    /// The approval that it waits for.
    pub approval: Option<u64>,
    /// The rule that denied it, or asked.
    pub rule: Option<String>,
    /// The reason why it is not given.
    pub reason: Option<String>,
}
