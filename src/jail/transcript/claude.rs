//! Messages of `claude -p --output-format stream-json --verbose`.
//!
//! `assistant` messages hold texts and calls of tools, `user` messages the results of those, and one `result` comes at
//! the end, with totals. What agents that it has started itself say is told, and is not its answer.
#![forbid(unsafe_code)]

use serde_json::Value;

use super::{Said, text};

/// Members of a tool's input that say best what it is about.
const TELLING: [&str; 7] = ["file_path", "path", "command", "pattern", "url", "description", "query"];

/// Takes one message; `false` when it is none.
pub(super) fn read(said: &mut Said, message: &Value) -> bool {
    match text(message, "type") {
        "assistant" => assistant(said, message),
        "user" => results(said, message),
        "result" => result(said, message),
        "system" => {
            if text(message, "subtype") == "init" {
                said.log(&format!("[session of {}]", text(message, "model")));
            }
        }
        "stream_event" | "rate_limit_event" | "control_request" | "control_response" => {}
        _ => return false,
    }
    true
}

fn assistant(said: &mut Said, message: &Value) {
    let helper = message.get("parent_tool_use_id").is_some_and(|it| !it.is_null());
    let Some(content) = message.pointer("/message/content") else { return };
    let mut spoken = String::new();
    if let Some(whole) = content.as_str() {
        spoken.push_str(whole);
    }
    for part in content.as_array().into_iter().flatten() {
        match text(part, "type") {
            "text" => spoken.push_str(text(part, "text")),
            "tool_use" => {
                said.steps += 1;
                said.log(&format!("* {} {}", text(part, "name"), about(part.get("input"))));
            }
            _ => {}
        }
    }
    match (spoken.trim().is_empty(), helper) {
        (true, _) => {}
        (false, false) => said.speaks(&spoken),
        (false, true) => {
            said.steps += 1;
            said.log_each(&super::plain_text(&spoken));
        }
    }
}

fn about(input: Option<&Value>) -> &str {
    let Some(input) = input else { return "" };
    TELLING.iter().map(|key| text(input, key)).find(|it| !it.is_empty()).unwrap_or_default()
}

fn results(said: &mut Said, message: &Value) {
    let parts = message.pointer("/message/content").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        if part.get("is_error").and_then(Value::as_bool) == Some(true) {
            said.log(&format!("  failed: {}", text(part, "content")));
        }
    }
}

fn result(said: &mut Said, message: &Value) {
    let (told, subtype) = (text(message, "result"), text(message, "subtype"));
    let failed = message.get("is_error").and_then(Value::as_bool).unwrap_or(subtype.starts_with("error"));
    if failed {
        said.fails(if told.is_empty() { subtype } else { told });
    } else {
        said.failure = None;
        if !told.is_empty() {
            said.ends_with(told);
        }
    }
    let tokens = |key: &str| message.pointer("/usage").and_then(|it| it.get(key)).and_then(Value::as_u64);
    let cost = message.get("total_cost_usd").and_then(Value::as_f64);
    said.used.input = tokens("input_tokens").or(said.used.input);
    said.used.output = tokens("output_tokens").or(said.used.output);
    said.used.cost_usd = cost.filter(|it| it.is_finite() && *it >= 0.0).or(said.used.cost_usd);
}
