//! Messages of `copilot -p TEXT --output-format json`.
//!
//! Whole messages come as `assistant.message`; their pieces are ignored. `session.error` has the reason why the agent
//! gives up, and one `result` comes at the end. The agent counts requests and not tokens. In all its
//! output it blanks text that looks like one of its keys, also in names of members.
#![forbid(unsafe_code)]

use serde_json::Value;

use super::claude::about;
use super::{Said, in_words, text};

/// Reads one message; returns `false` if the line is none.
pub(super) fn read(said: &mut Said, message: &Value) -> bool {
    let data = message.get("data").unwrap_or(&Value::Null);
    let kind = text(message, "type");
    match kind {
        "assistant.message" => {
            said.names_model(text(data, "model"));
            if !text(data, "content").trim().is_empty() {
                said.speaks(text(data, "content"));
            }
            for call in data.get("toolRequests").and_then(Value::as_array).into_iter().flatten() {
                said.steps += 1;
                said.log(&format!("* {} {}", text(call, "name"), about(call.get("arguments"))));
            }
        }
        "session.error" => said.fails(&in_words(text(data, "message"))),
        "result" => ends(said, message),
        _ => {
            return ["assistant.", "model.", "session.", "system.", "tool.", "user."]
                .iter()
                .any(|it| kind.starts_with(it));
        }
    }
    true
}

fn ends(said: &mut Said, message: &Value) {
    match message.get("exitCode").and_then(Value::as_i64) {
        Some(0) => said.failure = None,
        Some(code) if said.failure.is_none() => {
            said.fails(&format!("it says that it has failed with {code}"))
        }
        _ => {}
    }
}
