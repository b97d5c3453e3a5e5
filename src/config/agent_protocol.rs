//! Reads `.agent-protocol/config.json`, as the published server writes it, into Provost's own settings.
//!
//! The published server writes all of its defaults into the file and never reads them again, so a port or an interval
//! with its default value is ignored.

use serde_json::Value;

use provost_base::Door;

/// The path of the file in a repository.
pub(super) const FILE: &str = ".agent-protocol/config.json";

/// The published server's default interval, which it writes down whether or not a person has chosen it.
const HEARTBEAT_INTERVAL_MS: u64 = 30_000;

/// Durations, by the published server's names and by Provost's.
const DURATIONS: [(&str, &str); 3] = [
    ("dead_agent_timeout_ms", "dead_after"),
    ("heartbeat_interval_ms", "heartbeat_interval"),
    ("detection_window_ms", "detection_window"),
];

/// Returns the same settings as TOML. Members that the published server does not read are skipped.
///
/// # Errors
/// A sentence about the mistake.
pub(super) fn as_toml(text: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(text).map_err(|err| format!("is not valid JSON: {err}"))?;
    let members = value.as_object().ok_or("is not an object")?;
    let mut toml = String::from("[agent_protocol]\n");
    let mut put = |key: &str, value: String| toml.push_str(&format!("{key} = {value}\n"));
    match members.get("port") {
        None | Some(Value::Null) => {}
        Some(Value::Number(port))
            if port.as_u64() == Door::AgentProtocol.loopback().map(|at| at.port.into()) => {}
        Some(port) => put("port", port.to_string()),
    }
    match members.get("lead_agent") {
        None | Some(Value::Null) => {}
        Some(Value::String(lead)) => put("lead_agent", quoted(lead)),
        Some(_) => return Err("`lead_agent` must be a string".into()),
    }
    for (name, key) in DURATIONS {
        match members.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Number(ms))
                if name == "heartbeat_interval_ms" && ms.as_u64() == Some(HEARTBEAT_INTERVAL_MS) => {}
            Some(Value::Number(ms)) if ms.is_u64() => put(key, quoted(&format!("{ms}ms"))),
            Some(_) => return Err(format!("`{name}` must be a whole number")),
        }
    }
    for key in ["tracked_paths", "ignored_paths"] {
        match members.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                let texts: Option<Vec<String>> = items.iter().map(|it| it.as_str().map(quoted)).collect();
                let texts = texts.ok_or_else(|| format!("`{key}` must be a list of strings"))?;
                put(key, format!("[{}]", texts.join(", ")));
            }
            Some(_) => return Err(format!("`{key}` must be a list of strings")),
        }
    }
    Ok(toml)
}

/// Quotes a text for TOML; all of JSON's escapes are also TOML's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
