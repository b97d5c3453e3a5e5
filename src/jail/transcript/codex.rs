//! Messages of `codex exec --json`.
//!
//! A thread has turns, a turn has items, and an item is a message, a command, a change of files, or a tool call. An
//! item counts when it is completed. An `error` may concern only the connection; a completed turn overrides it.
#![forbid(unsafe_code)]

use serde_json::Value;

use super::{Said, in_words, text};

/// Reads one message; returns `false` if the line is none.
pub(super) fn read(said: &mut Said, message: &Value) -> bool {
    match text(message, "type") {
        "item.started" => item_started(said, message.get("item").unwrap_or(&Value::Null)),
        "item.completed" => item_completed(said, message.get("item").unwrap_or(&Value::Null)),
        "turn.completed" => {
            said.failure = None;
            usage(said, message.get("usage").unwrap_or(&Value::Null));
        }
        "turn.failed" => {
            let why = message.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
            said.fails(&in_words(why));
        }
        "error" => said.fails(&in_words(text(message, "message"))),
        "thread.started" | "turn.started" | "item.updated" => {}
        _ => return false,
    }
    true
}

fn item_started(said: &mut Said, item: &Value) {
    if text(item, "type") == "command_execution" {
        said.log(&format!("$ {}", text(item, "command")));
    }
}

fn item_completed(said: &mut Said, item: &Value) {
    match text(item, "type") {
        "agent_message" => said.speaks(text(item, "text")),
        "command_execution" => {
            said.steps += 1;
            if let Some(code) = item.get("exit_code").and_then(Value::as_i64).filter(|code| *code != 0) {
                said.log(&format!("  failed with {code}: {}", text(item, "command")));
            }
        }
        "file_change" => {
            said.steps += 1;
            for change in item.get("changes").and_then(Value::as_array).into_iter().flatten() {
                said.log(&format!("* {} {}", text(change, "kind"), text(change, "path")));
            }
        }
        "mcp_tool_call" => {
            said.steps += 1;
            said.log(&format!("* {} {}", text(item, "server"), text(item, "tool")));
        }
        "web_search" => {
            said.steps += 1;
            said.log(&format!("* search {}", text(item, "query")));
        }
        "error" => said.log(&format!("! {}", text(item, "message"))),
        // Thoughts, and lists of the agent's next steps.
        _ => {}
    }
}

/// Reads the use of the last turn, which counts the whole thread.
fn usage(said: &mut Said, usage: &Value) {
    let tokens = |key: &str| usage.get(key).and_then(Value::as_u64);
    // Codex counts the tokens from the cache among them, unlike other programs.
    let read = tokens("input_tokens").map(|it| it.saturating_sub(tokens("cached_input_tokens").unwrap_or(0)));
    said.used.input = read.or(said.used.input);
    said.used.output = tokens("output_tokens").or(said.used.output);
    said.used.cache_read = tokens("cached_input_tokens").or(said.used.cache_read);
    said.used.cache_write = tokens("cache_write_input_tokens").or(said.used.cache_write);
    said.used.reasoning = tokens("reasoning_output_tokens").or(said.used.reasoning);
}
