//! Messages of `gemini -o stream-json`.
//!
//! An answer comes in pieces (`delta`); a tool call ends the answer, and only the words after the last call
//! are the final one. One `result` comes at the end, with totals or with an error.
#![forbid(unsafe_code)]

use serde_json::Value;

use super::claude::about;
use super::{Said, in_words, text};

/// Reads one message; returns `false` if the line is none.
pub(super) fn read(said: &mut Said, message: &Value) -> bool {
    match text(message, "type") {
        "init" => {
            said.log(&format!("[session of {}]", text(message, "model")));
        }
        "message" if text(message, "role") == "assistant" => {
            let is_piece = message.get("delta").and_then(Value::as_bool) == Some(true);
            said.speaks_on(text(message, "content"), is_piece);
        }
        "message" => {}
        "tool_use" => {
            said.pauses();
            said.steps += 1;
            said.log(&format!("* {} {}", text(message, "tool_name"), about(message.get("parameters"))));
        }
        "tool_result" => {
            said.pauses();
            if text(message, "status") == "error" {
                let why = message.pointer("/error/message").and_then(Value::as_str);
                said.log(&format!("  failed: {}", why.unwrap_or(text(message, "output"))));
            }
        }
        "error" => said.log(&format!("! {}", text(message, "message"))),
        "result" => result(said, message),
        _ => return false,
    }
    true
}

fn result(said: &mut Said, message: &Value) {
    said.pauses();
    match text(message, "status") {
        "success" => said.failure = None,
        _ => {
            let why = message.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
            said.fails(&in_words(why));
        }
    }
    let tokens = |key: &str| message.pointer("/stats").and_then(|it| it.get(key)).and_then(Value::as_u64);
    // Tokens from the cache do not count, as in other programs.
    said.used.input = tokens("input").or(tokens("input_tokens")).or(said.used.input);
    said.used.output = tokens("output_tokens").or(said.used.output);
    said.used.cache_read = tokens("cached").or(said.used.cache_read);
    let models = message.pointer("/stats/models").and_then(Value::as_object);
    // A small model routes requests; the model that has written the most tokens has done the work.
    let written = |it: &Value| it.get("output_tokens").and_then(Value::as_u64).unwrap_or(0);
    if let Some((name, _)) = models.into_iter().flatten().max_by_key(|(_, it)| written(it)) {
        said.names_model(name);
    }
}
