//! The request that begins a session, or takes one up: Provost's own MCP server is added to the servers that the
//! editor names. All other bytes stay.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::message::Message;
use provost_base::AgentId;

/// The methods that begin a session or take one up.
pub(super) const METHODS: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

/// The parts of such a request.
pub(super) struct Setup {
    /// Where the session works.
    pub(super) cwd: Option<PathBuf>,
    /// The session that is taken up; none for a new one, also not for one that parts from another.
    pub(super) takes_up: Option<String>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(borrow, default, rename = "mcpServers")]
    servers: Option<&'a RawValue>,
}

impl Setup {
    pub(super) fn of(message: &Message<'_>, method: &str) -> Self {
        let params = serde_json::from_str::<Params<'_>>(message.params()).ok();
        let cwd = params.and_then(|it| it.cwd).filter(|it| it.is_absolute());
        let takes_up =
            matches!(method, "session/load" | "session/resume").then(|| message.session()).flatten();
        Self { cwd, takes_up }
    }
}

/// Returns the same line with Provost's server among the session's; `None` where it has Provost's already, or cannot
/// be parsed: then the agent refuses it.
pub(super) fn with_our_server(line: &[u8], program: &Path, agent: &AgentId) -> Option<Vec<u8>> {
    let message = Message::read(line).ok()?;
    let raw = message.params?;
    let params: Params<'_> = serde_json::from_str(raw.get()).ok()?;
    let ours = json!({
        "name": "provost",
        "command": program.to_str()?,
        "args": ["mcp", "serve", "--as", agent.as_str()],
        "env": [],
    });
    let Some(servers) = params.servers else {
        let at = place(line, raw.get())?;
        // An absent member, or `null`.
        return match null_servers(raw.get()) {
            Some(null) => Some(spliced(line, (at + null.0, at + null.1), &format!("[{ours}]"))),
            None => {
                let members: &str = raw.get().strip_prefix('{')?;
                let comma = if members.trim_start().starts_with('}') { "" } else { "," };
                Some(spliced(line, (at + 1, at + 1), &format!("\"mcpServers\":[{ours}]{comma}")))
            }
        };
    };
    let known: Vec<Value> = serde_json::from_str(servers.get()).ok()?;
    if known.iter().any(is_ours) {
        return None;
    }
    let end = place(line, servers.get())? + servers.get().len() - 1;
    let comma = if known.is_empty() { "" } else { "," };
    Some(spliced(line, (end, end), &format!("{comma}{ours}")))
}

/// Where a `null` stands as the servers, within the parameters.
fn null_servers(params: &str) -> Option<(usize, usize)> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow, rename = "mcpServers")]
        servers: &'a RawValue,
    }
    let servers = serde_json::from_str::<Whole<'_>>(params).ok()?.servers.get();
    let at = place(params.as_bytes(), servers)?;
    Some((at, at + servers.len()))
}

/// Whether it is our server already, by a command or by an address.
fn is_ours(server: &Value) -> bool {
    let of_program = || {
        let program = server["command"].as_str().map(Path::new)?.file_stem()?.to_str()?;
        let words = server["args"].as_array()?;
        Some(program.eq_ignore_ascii_case("provost") && words.iter().any(|it| it == "mcp"))
    };
    server["name"] == "provost" || of_program().unwrap_or_default()
}

/// Where a part of a text stands in it.
pub(super) fn place(whole: &[u8], part: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (at + part.len() <= whole.len()).then_some(at)
}

/// A line with something else between two places.
pub(super) fn spliced(line: &[u8], (from, to): (usize, usize), with: &str) -> Vec<u8> {
    [&line[..from], with.as_bytes(), &line[to..]].concat()
}
