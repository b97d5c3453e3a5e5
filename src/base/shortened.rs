//! Arguments of a host's tool that are too long for the record: the parts of them that are kept.
//!
//! A grant is bound to what was shown. So a digest of the whole replaces the part that is left out.

use serde_json::Value;

use super::Digest;
use super::limits::{PERMISSION_MEMBER_BYTES_MAX, PERMISSION_MEMBER_KEPT_BYTES};

/// The text between the beginning of a text and its digest.
const SIGN: &str = "\n[provost: the beginning of ";

/// The member that replaces all arguments if there are too many.
const WHOLE: &str = "arguments";

/// Returns arguments within a bound, in bytes of JSON: unchanged, if they fit; otherwise with each long member cut
/// to its beginning, its length and its digest; otherwise one such member for all.
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

/// Checks whether a text is such a beginning, or looks like one: then its rest is not known.
pub fn is_shortened(text: &str) -> bool {
    text.contains(SIGN)
}

/// Checks whether one member replaces all arguments.
pub fn is_all_shortened(arguments: &Value) -> bool {
    arguments.get(WHOLE).and_then(Value::as_str).is_some_and(is_shortened)
}
