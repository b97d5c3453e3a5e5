//! The session of its host that a call is made in, where the host says so with the call.
//!
//! Codex does: its hooks are told the same session, and so both are one agent. A host that says nothing is one agent for
//! all of its calls.

use rmcp::model::MetaObject;
use serde_json::Value;

use crate::base::AgentId;

/// So many characters of a session's id are in a name. The last ones: some ids begin with the time.
const TAIL_LEN: usize = 12;

/// What Codex puts with every call: the session, and the thread within it.
const TURN: &str = "x-codex-turn-metadata";
/// What it put there before.
const THREAD: &str = "threadId";

/// The agent of a host's session; `None` if the id has nothing to name it by.
pub fn agent_of(host: &str, session: &str) -> Option<AgentId> {
    let plain = session.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = plain.collect();
    let tail = plain.get(plain.len().saturating_sub(TAIL_LEN)..).filter(|it| !it.is_empty())?;
    AgentId::parse(&format!("{host}-{tail}")).ok()
}

/// The agent of a call, if its host says in which session it is made.
pub(super) fn of_call(meta: &MetaObject) -> Option<AgentId> {
    let turn = match meta.get(TURN) {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        turn => turn.cloned().unwrap_or_default(),
    };
    let session = turn.get("session_id").or_else(|| meta.get(THREAD));
    agent_of("codex", session?.as_str()?)
}
