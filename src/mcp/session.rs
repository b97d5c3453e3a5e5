//! Finds the session of the host in which a call is made, if the host names it with the call.
//!
//! Codex names it. Its hooks get the same session, so hooks and calls are one agent. A host that names no session
//! is one agent for all of its calls.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rmcp::model::MetaObject;
use serde::Deserialize;
use serde_json::{Map, Value};

use provost_auth::runs;
use provost_base::AgentId;
use provost_domain::ProcessMark;

/// The number of characters of a session's id that are part of a name: the last ones, since some ids begin with the time.
const TAIL_LEN: usize = 12;

/// The metadata that Codex sends with every call: the session, and the thread within it.
const TURN: &str = "x-codex-turn-metadata";
/// The member that Codex sent before that.
const THREAD: &str = "threadId";

/// Returns the agent of a host's session; `None` if the id has no usable character.
pub fn agent_of(host: &str, session: &str) -> Option<AgentId> {
    let plain = session.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = plain.collect();
    let tail = plain.get(plain.len().saturating_sub(TAIL_LEN)..).filter(|it| !it.is_empty())?;
    AgentId::parse(&format!("{host}-{tail}")).ok()
}

/// The most records that are read; those of ended hosts are removed when the next one is written.
const RECORDS_MAX: usize = 1_000;

/// The largest record that is read, in bytes.
const RECORD_BYTES_MAX: u64 = 4 << 10;

/// Returns the folder of session records, below the runtime folder.
pub fn folder(runtime: &Path) -> PathBuf {
    runtime.join("hosts")
}

/// Returns the agent of a host's session by the host's process, if its hooks have recorded it.
pub fn recorded_for(runtime: &Path, pid: u32) -> Option<AgentId> {
    recorded_in(&folder(runtime).join(format!("host-{pid}")))
}

/// Returns the agent in a record, if the process of its host still runs.
pub fn recorded_in(path: &Path) -> Option<AgentId> {
    let mut text = String::new();
    File::open(path).ok()?.take(RECORD_BYTES_MAX).read_to_string(&mut text).ok()?;
    let mut words = text.splitn(3, ' ');
    let (pid, began) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let runs = runs(&ProcessMark { pid, started: began })?;
    AgentId::parse(words.next()?).ok().filter(|_| runs)
}

/// Returns the agents of recorded sessions whose host's process still runs. Blocking.
pub fn sessions_there(runtime: &Path) -> BTreeSet<AgentId> {
    let entries = std::fs::read_dir(folder(runtime)).into_iter().flatten().flatten().take(RECORDS_MAX);
    let sessions = entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(b"session-"));
    sessions.filter_map(|it| recorded_in(&it.path())).collect()
}

/// Returns the session of a call, if its host names it.
pub(super) fn of_call(meta: &MetaObject) -> Option<String> {
    of_members(&meta.0)
}

/// Returns the agent of a message that was not parsed yet, in the same way.
pub(super) fn of_message(message: &[u8]) -> Option<AgentId> {
    #[derive(Deserialize)]
    struct Message {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        _meta: Map<String, Value>,
    }
    let has = |word: &str| memchr::memmem::find(message, word.as_bytes()).is_some();
    if !has(TURN) && !has(THREAD) {
        return None;
    }
    agent_of("codex", &of_members(&serde_json::from_slice::<Message>(message).ok()?.params._meta)?)
}

fn of_members(meta: &Map<String, Value>) -> Option<String> {
    let turn = match meta.get(TURN) {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        turn => turn.cloned().unwrap_or_default(),
    };
    let session = turn.get("session_id").or_else(|| meta.get(THREAD));
    session?.as_str().map(str::to_owned)
}
