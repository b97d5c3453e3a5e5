//! Turns the result of a worker that speaks MCP into the last word of its task. DevIt 1.10, "mcp worker".

use serde_json::{Map, Value};

use super::result::{KEPT_DEPTH_MAX, Reading, clip, depth};
use provost_base::limits::REASON_LEN_MAX;
use provost_domain::Failure;
use provost_jail::plain_text;

/// Reads a result: its most telling text as the summary, and the whole result, cleaned.
pub(super) fn read(result: &Value, most: usize) -> Reading {
    let result = &clean(result);
    let text = result.to_string();
    let summary = summary(result).unwrap_or_else(|| text.clone());
    // DevIt takes a tool's own error for a result; an agent that waits would take it for success.
    let failure = (result["isError"] == true).then(|| {
        let why = format!("the tool reported an error: {}", clip(&summary, REASON_LEN_MAX / 2));
        Failure::WorkerFailed { why: why.into() }
    });
    let too_much = text.len() > most || depth(result) > KEPT_DEPTH_MAX;
    let details = match result {
        _ if too_much => Map::from_iter([("stdout".to_owned(), text.into())]),
        Value::Object(members) => members.clone(),
        other => Map::from_iter([("result".to_owned(), other.clone())]),
    };
    Reading { summary, details, failure, verbatim: too_much }
}

fn summary(result: &Value) -> Option<String> {
    let filled = |it: &Value| it.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let named = |it: &Value| {
        let details = &it["details"];
        let named = filled(&it["summary"]).or_else(|| filled(&details["raw_excerpt"]));
        named.or_else(|| first_text(&details["structured_data"]))
    };
    let content = || result["content"].as_array()?.iter().find_map(|it| filled(&it["text"]));
    named(result).or_else(|| named(&result["structuredContent"])).or_else(content)
}

fn first_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(items) => items.iter().find_map(first_text),
        Value::Object(members) => members.values().find_map(first_text),
        _ => None,
    }
}

/// Removes from all texts the signs that could move a cursor, and from the details the worker's standard error. The parser's
/// limit bounds the depth of the recursion.
fn clean(value: &Value) -> Value {
    match value {
        Value::String(text) => plain_text(text).trim().into(),
        Value::Array(items) => items.iter().map(clean).collect(),
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.iter().map(|(name, value)| (plain_text(name), clean(value))).collect();
            if let Some(Value::Object(details)) = members.get_mut("details") {
                details.remove("stderr");
            }
            Value::Object(members)
        }
        other => other.clone(),
    }
}
