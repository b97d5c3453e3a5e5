//! Arguments of a host's tool that are too long to be put on record: what is kept of them.
//!
//! A grant is bound to what was shown. So a digest of the whole stands in the place of what is left out.

use serde_json::Value;

use super::Digest;
use super::limits::{PERMISSION_MEMBER_BYTES_MAX, PERMISSION_MEMBER_KEPT_BYTES};

/// What stands between the beginning of a text and its digest.
const SIGN: &str = "\n[provost: the beginning of ";

/// The member that stands for all arguments where they are too many.
const WHOLE: &str = "arguments";

/// Arguments within a bound, in bytes of JSON: the same, if they are; else with each long member cut to its
/// beginning, its length and its digest; else one such member for all.
pub fn shortened(arguments: &Value, most: usize) -> Value {
    if arguments.to_string().len() <= most {
        return arguments.clone();
    }
    let by_members = arguments.as_object().map(|members| {
        let short = members.iter().map(|(name, value)| (name.clone(), member(value)));
        Value::Object(short.collect())
    });
    match by_members {
        Some(short) if short.to_string().len() <= most => short,
        _ => serde_json::json!({ WHOLE: beginning(&arguments.to_string()) }),
    }
}

fn member(value: &Value) -> Value {
    let text = value.to_string();
    match text.len() <= PERMISSION_MEMBER_BYTES_MAX {
        true => value.clone(),
        false => Value::String(beginning(value.as_str().unwrap_or(&text))),
    }
}

fn beginning(text: &str) -> String {
    let kept = &text[..text.floor_char_boundary(PERMISSION_MEMBER_KEPT_BYTES.min(text.len()))];
    format!("{kept}{SIGN}{} bytes, SHA-256 {}]", text.len(), Digest::of(text.as_bytes()))
}

/// Whether a text is such a beginning, or looks like one: then what follows is not known.
pub fn is_shortened(text: &str) -> bool {
    text.contains(SIGN)
}

/// Whether one member stands for all arguments.
pub fn is_all_shortened(arguments: &Value) -> bool {
    arguments.get(WHOLE).and_then(Value::as_str).is_some_and(is_shortened)
}
