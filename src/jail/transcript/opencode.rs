//! Messages of `opencode run --format json`.
//!
//! A run has steps, each with texts and tool calls, and each ends with its use of tokens. An `error` ends
//! the run.
#![forbid(unsafe_code)]

use serde_json::Value;

use super::claude::about;
use super::{Said, in_words, text};

/// Reads one message; returns `false` if the line is none.
pub(super) fn read(said: &mut Said, message: &Value) -> bool {
    let part = message.get("part").unwrap_or(&Value::Null);
    match text(message, "type") {
        "text" => said.speaks(text(part, "text")),
        "tool_use" => tool(said, part),
        "step_finish" => usage(said, part),
        "error" => {
            let data = message.pointer("/error/data/message").and_then(Value::as_str);
            let name = message.pointer("/error/name").and_then(Value::as_str).unwrap_or_default();
            said.fails(&in_words(data.unwrap_or(name)));
        }
        "step_start" | "reasoning" => {}
        _ => return false,
    }
    true
}

fn tool(said: &mut Said, part: &Value) {
    said.steps += 1;
    let state = part.get("state").unwrap_or(&Value::Null);
    said.log(&format!("* {} {}", text(part, "tool"), about(state.get("input"))));
    if text(state, "status") == "error" {
        said.log(&format!("  failed: {}", text(state, "error")));
    }
}

/// Adds the use of one step; the use of the run is the sum of its steps.
fn usage(said: &mut Said, part: &Value) {
    let tokens = |at: &str| part.pointer(at).and_then(Value::as_u64);
    let add = |to: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *to = Some(to.unwrap_or(0).saturating_add(more));
        }
    };
    add(&mut said.used.input, tokens("/tokens/input"));
    add(&mut said.used.output, tokens("/tokens/output"));
    add(&mut said.used.reasoning, tokens("/tokens/reasoning"));
    add(&mut said.used.cache_read, tokens("/tokens/cache/read"));
    add(&mut said.used.cache_write, tokens("/tokens/cache/write"));
    // OpenCode reports zero for a model whose price it does not know.
    let cost = part.get("cost").and_then(Value::as_f64).filter(|it| it.is_finite() && *it > 0.0);
    if let Some(cost) = cost {
        said.used.cost_usd = Some(said.used.cost_usd.unwrap_or(0.0) + cost);
    }
}
