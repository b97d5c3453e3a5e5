//! One name for all spellings of an agent's name at the broker door: a branch, or what was made of it.

use crate::base::Slug;
use crate::base::limits::ID_LEN_MAX;

/// Small letters; what is no letter, digit or underscore becomes a dash, several of them one, none at the ends.
/// `feat/x` and `feat-x` are the same agent.
pub fn slug(name: &str) -> Slug {
    let mut text = String::with_capacity(name.len().min(ID_LEN_MAX));
    for c in name.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' {
            text.push(c);
        } else if !text.ends_with('-') && !text.is_empty() {
            text.push('-');
        }
        if text.len() >= ID_LEN_MAX {
            break;
        }
    }
    let text = text.trim_end_matches('-');
    Slug::parse(if text.is_empty() { "agent" } else { text }).expect("letters, digits and dashes are an id")
}
