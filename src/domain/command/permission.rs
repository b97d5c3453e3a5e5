//! Verbs about a host's own tools: one asks for a use, one takes the question back.

use serde::{Deserialize, Serialize};
use serde_json::json;

use provost_base::{Digest, Json, Ttl};

/// Use a tool of the agent's own host, which that host would ask its person about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AskPermission {
    /// The caller chooses a new one for every use. A repeat of the same question has the same id.
    pub id: Box<str>,
    /// The host's name, as the caller says it.
    pub host: Box<str>,
    /// The name of the host's own tool.
    pub tool: Box<str>,
    /// The arguments of the tool's call.
    pub arguments: Json,
    /// How long the host waits; no process would receive a later answer.
    pub wait: Ttl,
    /// The absolute folder in which the host would use the tool, where the caller says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Box<str>>,
}

impl AskPermission {
    /// Digest of everything asked for.
    pub fn digest(&self) -> Digest {
        // Our own types always encode; an empty text could only make two requests look different.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// The details that an approver is shown.
    pub fn shown(&self) -> Json {
        let Self { host, tool, .. } = self;
        Json::from_value(&json!({ "host": host, "tool": tool, "arguments": self.arguments.value() }))
    }
}

/// Report that no process waits for the answer any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WithdrawPermission {
    /// The question's id, as [`AskPermission`] had it.
    pub id: Box<str>,
}

/// The question waits no longer, if it did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermissionWithdrawn;

/// The tool may be used, once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Permitted;
