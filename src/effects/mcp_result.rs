//! The result of a worker that speaks MCP, as its task's last word. DevIt 1.10, "mcp worker".

use serde_json::{Map, Value};

use super::result::{KEPT_DEPTH_MAX, Reading, clip, depth};
use provost_base::limits::REASON_LEN_MAX;
use provost_domain::Failure;
use provost_jail::plain_text;

/// Reads a result: the most telling text in it, and all of it, cleaned.
pub(super) fn read(result: &Value, most: usize) -> Reading {
    let result = &clean(result);
    let text = result.to_string();
    let summary = summary(result).unwrap_or_else(|| text.clone());
    // DevIt takes a tool's own error for a result; who waits would take it for done.
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

/// Texts without what could move a cursor, and without what a worker wrote to its own log. The parser's limit keeps
/// this from going deep.
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
