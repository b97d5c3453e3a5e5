//! Whether Codex trusts our hooks: it runs none before its person has said so, and is silent about that.
//!
//! It keeps in `[hooks.state]` of its own configuration, for each hook by its file, event and place, a digest of what was
//! trusted. A hook that has changed since is not trusted any more. Tried with Codex 0.169.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::host::Host;
use crate::base::limits::HOST_FILE_BYTES_MAX;
use crate::base::{Digest, Json};
use crate::cli::Here;

/// Time that it gives a hook which names none, in seconds.
const TIMEOUT_S: u64 = 600;

/// Whether all of ours in its file are trusted as they are, and switched on.
pub(super) fn trusts(here: &Here, file: &Path, text: &str) -> bool {
    let (Some(state), Ok(said)) = (state(here), serde_json::from_str::<Value>(text)) else { return false };
    let events = said["hooks"].as_object().into_iter().flatten();
    events.flat_map(|(event, groups)| hooks_of(&snake(event), groups)).all(|(place, digest)| {
        let Some(known) = state.get(&format!("{}:{place}", file.display())) else { return false };
        known.get("trusted_hash").and_then(toml::Value::as_str) == Some(&digest)
            && known.get("enabled").and_then(toml::Value::as_bool) != Some(false)
    })
}

/// Ours among the hooks of an event: place and digest of each.
fn hooks_of(event: &str, groups: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (number, group) in groups.as_array().into_iter().flatten().enumerate() {
        for (place, hook) in group["hooks"].as_array().into_iter().flatten().enumerate() {
            let command = hook["command"].as_str().unwrap_or_default();
            if !Host::Codex.is_ours(command) {
                continue;
            }
            let mut said = json!({ "event_name": event, "hooks": [{
                "type": "command", "command": command,
                "timeout": hook["timeout"].as_u64().unwrap_or(TIMEOUT_S),
                "async": hook["async"].as_bool().unwrap_or(false),
            }] });
            if let Some(matcher) = group["matcher"].as_str() {
                said["matcher"] = matcher.into();
            }
            let digest = Digest::of(Json::from_value(&said).as_str().as_bytes());
            found.push((format!("{event}:{number}:{place}"), format!("sha256:{digest}")));
        }
    }
    found
}

/// `PreToolUse` as `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut name = String::new();
    for (at, c) in event.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// Where Codex has its configuration.
pub(super) fn home(here: &Here) -> Option<PathBuf> {
    let home = std::env::var_os("CODEX_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    home.or_else(|| Some(here.environment.home.as_ref()?.join(".codex")))
}

/// What Codex has on record about hooks.
fn state(here: &Here) -> Option<toml::Table> {
    let mut text = String::new();
    let file = std::fs::File::open(home(here)?.join("config.toml")).ok()?;
    file.take(HOST_FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    let mut config: toml::Table = text.parse().ok()?;
    let toml::Value::Table(mut hooks) = config.remove("hooks")? else { return None };
    match hooks.remove("state")? {
        toml::Value::Table(state) => Some(state),
        _ => None,
    }
}
