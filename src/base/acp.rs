//! A call of a tool as the Agent Client Protocol tells it, read for rules: by which name they know the tool, and what they look
//! into. ACP v1, "Tool calls".

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Lays an update over what is known of a call: what it does not say stays. ACP v1: absent and null are both unchanged.
pub fn merge(call: &mut Value, update: &Value) {
    let (Some(call), Some(update)) = (call.as_object_mut(), update.as_object()) else { return };
    for (name, value) in update {
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if !is_empty || !call.contains_key(name) {
            call.insert(name.clone(), value.clone());
        }
    }
}

/// The same, with another folder in place of one wherever a text names it: the one that an agent sees in its jail, and the one that it
/// stands for.
pub fn in_place_of(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => text.replace(from, to).into(),
        Value::Array(items) => items.iter().map(|it| in_place_of(it, from, to)).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, it)| (name.clone(), in_place_of(it, from, to))).collect(),
        ),
        other => other.clone(),
    }
}

/// The tool: as the agent names it, as vendors do in `_meta`, or else the name under which rules know the tools of its kind.
pub fn tool(call: &Value) -> &str {
    let said = |at: &str| call.pointer(at).and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    said("/name").or_else(|| said("/_meta/claudeCode/toolName")).unwrap_or_else(|| by_kind(kind(call)))
}

/// The kind of a call; `other` where the agent says none.
pub fn kind(call: &Value) -> &str {
    call["kind"].as_str().filter(|it| !it.trim().is_empty()).unwrap_or("other")
}

/// The name under which rules know the tools of a kind, where the agent names none. ACP v1, `ToolKind`.
fn by_kind(kind: &str) -> &str {
    match kind {
        "execute" => "Shell",
        "edit" => "Edit",
        "read" => "Read",
        other => other,
    }
}

/// What rules look into: the tool's own arguments, and what the protocol says of the call where those are silent. A command stands
/// for itself.
pub fn arguments(call: &Value) -> Value {
    let mut told = call["rawInput"].as_object().cloned().unwrap_or_default();
    if ["command", "cmd"].iter().any(|it| told.contains_key(*it)) {
        return Value::Object(told);
    }
    let places = call["locations"].as_array().into_iter().flatten();
    let of_diffs = call["content"].as_array().into_iter().flatten().filter(|it| it["type"] == "diff");
    let paths: BTreeSet<&str> = places.chain(of_diffs).filter_map(|it| it["path"].as_str()).collect();
    let names_file = ["file_path", "notebook_path"].iter().any(|it| told.contains_key(*it));
    match paths.iter().next() {
        Some(path) if paths.len() == 1 && !names_file => drop(told.insert("file_path".into(), json!(path))),
        Some(_) if paths.len() > 1 => drop(told.insert("locations".into(), json!(paths))),
        _ => {}
    }
    if told.is_empty() {
        told.insert("kind".into(), kind(call).into());
    }
    if let Some(title) = call["title"].as_str() {
        told.entry("title").or_insert_with(|| title.into());
    }
    Value::Object(told)
}
