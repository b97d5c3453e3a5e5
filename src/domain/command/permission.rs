//! Verbs about a host's own tools: one asks for a use, the other withdraws the question.

use serde::{Deserialize, Serialize};
use serde_json::json;

use provost_base::{Digest, Json, Ttl};

/// Use a tool of the agent's own host, about which that host would ask its person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AskPermission {
    /// The caller chooses a new id for every use. A repeat of the same question has the same id.
    pub id: Box<str>,
    /// The host's name, as the caller says it.
    pub host: Box<str>,
    /// The name of the host's own tool.
    pub tool: Box<str>,
    /// The arguments of the tool's call.
    pub arguments: Json,
    /// The time for which the host waits; no process would receive a later answer.
    pub wait: Ttl,
    /// The absolute folder in which the host would use the tool, if the caller names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Box<str>>,
}

impl AskPermission {
    /// Returns the digest of the whole request.
    pub fn digest(&self) -> Digest {
        // Provost's own types always encode; an empty text could only make two requests look different.
        Digest::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// Returns the details that an approver is shown.
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

/// The question no longer waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermissionWithdrawn;

/// The tool may be used, once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Permitted;
