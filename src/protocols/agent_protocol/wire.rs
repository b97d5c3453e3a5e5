//! The types of the messages. Every member is always present, in this order. Agent Protocol, "Type Shapes".

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Serialize)]
pub(super) struct Agent<'a> {
    pub(super) id: &'a str,
    pub(super) tool: &'a str,
    pub(super) role: &'static str,
    pub(super) status: &'static str,
    pub(super) current_task: Option<&'a str>,
    pub(super) capabilities: &'a [Box<str>],
    pub(super) joined_at: i64,
    pub(super) last_heartbeat: i64,
    /// Provost's own member: only for an agent that asked to lead, and does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requested_role: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct Resource<'a> {
    pub(super) path: &'a str,
    pub(super) state: &'static str,
    pub(super) owner: Option<&'a str>,
    pub(super) claimed_at: Option<i64>,
    pub(super) last_modified_by: Option<&'a str>,
    pub(super) content_hash: String,
}

#[derive(Serialize)]
pub(super) struct Task<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) assigned_to: Option<&'a str>,
    pub(super) assigned_by: &'a str,
    pub(super) status: &'static str,
    pub(super) resources: &'a [Box<str>],
    pub(super) depends_on: &'a [Box<str>],
    pub(super) created_at: i64,
    pub(super) started_at: Option<i64>,
    pub(super) completed_at: Option<i64>,
}

#[derive(Serialize)]
pub(super) struct Handoff<'a> {
    pub(super) id: &'a str,
    pub(super) from_agent: &'a str,
    pub(super) to_agent: Option<&'a str>,
    pub(super) task_id: &'a str,
    pub(super) status: &'static str,
    pub(super) summary: &'a str,
    pub(super) files_modified: &'a [Box<str>],
    pub(super) files_created: &'a [Box<str>],
    pub(super) context: &'a str,
    pub(super) blockers: &'a [Box<str>],
    pub(super) created_at: i64,
}

#[derive(Serialize)]
pub(super) struct Event<'a> {
    pub(super) id: String,
    pub(super) timestamp: i64,
    pub(super) agent_id: &'a str,
    pub(super) action: &'a str,
    pub(super) resource: Option<&'a str>,
    pub(super) task_id: Option<&'a str>,
    pub(super) before_hash: Option<String>,
    pub(super) after_hash: Option<String>,
    pub(super) metadata: Box<RawValue>,
}

#[derive(Serialize)]
pub(super) struct Status<'a> {
    pub(super) version: &'static str,
    pub(super) project: &'a str,
    pub(super) port: u16,
    pub(super) agents: AgentCounts<'a>,
    pub(super) resources: ResourceCounts,
    pub(super) tasks: TaskCounts,
    pub(super) event_count: u64,
}

#[derive(Serialize)]
pub(super) struct AgentCounts<'a> {
    pub(super) total: usize,
    pub(super) active: usize,
    pub(super) lead: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct ResourceCounts {
    pub(super) total: usize,
    pub(super) claimed: usize,
    pub(super) conflicted: usize,
}

#[derive(Serialize)]
pub(super) struct TaskCounts {
    pub(super) total: usize,
    pub(super) in_progress: usize,
    pub(super) done: usize,
}

#[derive(Serialize)]
pub(super) struct State<'a> {
    pub(super) agents: Vec<Agent<'a>>,
    pub(super) resources: Vec<Resource<'a>>,
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) handoffs: Vec<Handoff<'a>>,
    pub(super) lead: Option<&'a str>,
    pub(super) event_count: u64,
}

/// Encodes a value as text. Provost's own types can always be encoded.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a value as JSON text that is embedded unchanged.
pub(super) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap_or_default()
}
