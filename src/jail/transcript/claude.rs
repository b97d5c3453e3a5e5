//! Messages of `claude -p --output-format stream-json --verbose`.
//!
//! `assistant` messages hold texts and tool calls, `user` messages the results of the calls, and one `result` comes at
//! the end, with totals. Texts of subagents are shown, but are no part of the agent's answer.
#![forbid(unsafe_code)]

use serde_json::Value;

use super::{Said, text};

/// Members of a tool's input that best describe its subject.
const TELLING: [&str; 7] = ["file_path", "path", "command", "pattern", "url", "description", "query"];

/// Reads one message; returns `false` if the line is none.
pub(super) fn read(said: &mut Said, message: &Value) -> bool {
    match text(message, "type") {
        "assistant" => assistant(said, message),
        "user" => results(said, message),
        "result" => result(said, message),
        "system" => match text(message, "subtype") {
            "init" => {
                said.names_model(text(message, "model"));
                said.log(&format!("[session of {}]", text(message, "model")));
            }
            "api_retry" => said.fails(&retried(message)),
            _ => {}
        },
        "stream_event" | "rate_limit_event" | "control_request" | "control_response" => {}
        _ => return false,
    }
    true
}

/// Returns the service's error, after which the program tries again; the result overrides it, or says more.
fn retried(message: &Value) -> String {
    let number = |key: &str| message.get(key).and_then(Value::as_u64).unwrap_or(0);
    let status = match number("error_status") {
        0 => "cannot be reached".to_owned(),
        status => format!("answers {status}"),
    };
    let (error, attempt, most) = (text(message, "error"), number("attempt"), number("max_retries"));
    format!("the model's service {status} ({error}), retry {attempt} of {most}")
}

fn assistant(said: &mut Said, message: &Value) {
    let helper = message.get("parent_tool_use_id").is_some_and(|it| !it.is_null());
    let Some(content) = message.pointer("/message/content") else { return };
    if !helper {
        said.names_model(message.pointer("/message/model").and_then(Value::as_str).unwrap_or_default());
    }
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

/// Returns the subject of a tool call.
pub(super) fn about(input: Option<&Value>) -> &str {
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

/// Returns the reason for which a `result` reports a failure: in its own words, or by its kind.
pub fn why_in_words(told: &str, message: &Value) -> String {
    if !told.trim().is_empty() {
        return told.trim().to_owned();
    }
    let errors = message.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    if !errors.is_empty() {
        return errors.join("; ");
    }
    let inner = message.pointer("/error/message").and_then(Value::as_str).unwrap_or_default().trim();
    if !inner.is_empty() {
        return inner.to_owned();
    }
    let subtype = text(message, "subtype");
    match subtype {
        "error_max_turns" => "it has taken as many turns as it may (error_max_turns)".into(),
        "error_max_budget_usd" => "it has spent as much money as it may (error_max_budget_usd)".into(),
        "error_during_execution" => "it has met an error (error_during_execution)".into(),
        "" | "success" => "it says that it has failed".into(),
        other => other.to_owned(),
    }
}

fn result(said: &mut Said, message: &Value) {
    let (told, subtype) = (text(message, "result"), text(message, "subtype"));
    let failed = message.get("is_error").and_then(Value::as_bool).unwrap_or(subtype.starts_with("error"));
    if failed {
        said.fails(&why_in_words(told, message));
    } else {
        said.failure = None;
        if !told.is_empty() {
            said.ends_with(told);
        }
    }
    let tokens = |key: &str| message.pointer("/usage").and_then(|it| it.get(key)).and_then(Value::as_u64);
    let cost = message.get("total_cost_usd").and_then(Value::as_f64);
    // Qwen counts the tokens from the cache among them, as its total shows.
    let (read, cached) = (tokens("input_tokens"), tokens("cache_read_input_tokens").unwrap_or(0));
    let both = read.zip(tokens("output_tokens")).map(|(read, written)| read.saturating_add(written));
    let is_within = both.is_some() && both == tokens("total_tokens");
    let read = read.map(|it| if is_within { it.saturating_sub(cached) } else { it });
    said.used.input = read.or(said.used.input);
    said.used.output = tokens("output_tokens").or(said.used.output);
    said.used.cache_read = tokens("cache_read_input_tokens").or(said.used.cache_read);
    said.used.cache_write = tokens("cache_creation_input_tokens").or(said.used.cache_write);
    let thinking = message.pointer("/usage/output_tokens_details/thinking_tokens").and_then(Value::as_u64);
    said.used.reasoning = thinking.or(said.used.reasoning);
    said.used.cost_usd = cost.filter(|it| it.is_finite() && *it >= 0.0).or(said.used.cost_usd);
}
