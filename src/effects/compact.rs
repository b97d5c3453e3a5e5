//! `format = "compact"`: condenses a long analysis for its reader.
//!
//! DevIt 1.10. The heuristics are those of existing clients; every list and every entry has a bound.

use serde_json::{Map, Value, json};

use super::result::clip;

/// The summary of every compact result.
pub(super) const SUMMARY: &str = "Analysis complete. See structured_data.";

const EXCERPT_MAX: usize = 600;
const EXCERPT_CUT: &str = "… [excerpt]";
/// The number of risks, and of highlights, that are listed.
const POINTS_MAX: usize = 5;
/// The number of functions that are listed; more are in the excerpt or not worth a list.
const FUNCTIONS_MAX: usize = 20;
/// Longest entry of any list, in bytes.
const ENTRY_MAX: usize = 300;

const NEW: [&str; 1] = ["new function"];
const MODIFIED: [&str; 3] = ["modified function", "updated function", "changes in"];
const RISKS: [&str; 3] = ["risk", "concern", "issue"];
/// Words between "new function" and its name.
const FILLERS: [&str; 11] =
    ["s", "a", "an", "the", "called", "named", "in", "is", "was", "added", "function"];

/// Details of a compact result.
pub(super) fn details(text: &str, stderr: &str) -> Map<String, Value> {
    let mut details = Map::new();
    details.insert("structured_data".into(), condense(text));
    let text = text.trim();
    let excerpt = clip(text, EXCERPT_MAX);
    let cut = if excerpt.len() < text.len() { EXCERPT_CUT } else { "" };
    details.insert("raw_excerpt".into(), format!("{excerpt}{cut}").into());
    if !stderr.trim().is_empty() {
        details.insert("stderr".into(), stderr.into());
    }
    details.insert("format".into(), "compact".into());
    details
}

fn condense(text: &str) -> Value {
    let (mut new, mut modified, mut risks, mut highlights) = (vec![], vec![], vec![], vec![]);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let lower = line.to_ascii_lowercase();
        let name_after = |marks: &[&str]| {
            let found = marks.iter().find_map(|mark| lower.find(mark).map(|at| at + mark.len()))?;
            identifier(&line[found..])
        };
        note(&mut new, name_after(&NEW), FUNCTIONS_MAX);
        note(&mut modified, name_after(&MODIFIED), FUNCTIONS_MAX);
        let point = line.trim_start_matches(['-', '*']).trim();
        if RISKS.iter().any(|word| lower.contains(word)) {
            note(&mut risks, Some(point), POINTS_MAX);
        }
        if line.starts_with(['-', '*']) {
            note(&mut highlights, Some(point), POINTS_MAX);
        }
    }
    if highlights.is_empty() {
        sentences(text).for_each(|sentence| note(&mut highlights, Some(sentence), POINTS_MAX));
    }
    let mut data = json!({ "highlights": highlights });
    for (key, list) in [("new_funcs", new), ("modified_funcs", modified), ("risks", risks)] {
        if !list.is_empty() {
            data[key] = json!(list);
        }
    }
    data
}

fn note<'a>(list: &mut Vec<&'a str>, entry: Option<&'a str>, most: usize) {
    let Some(entry) = entry.map(|it| clip(it, ENTRY_MAX)).filter(|it| !it.is_empty()) else { return };
    if list.len() < most && !list.contains(&entry) {
        list.push(entry);
    }
}

/// Returns the first word that can be a function's name.
fn identifier(text: &str) -> Option<&str> {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && !"_:.".contains(c));
    words.find_map(|word| {
        let word = word.trim_matches([':', '.']);
        let begins_well = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_filler = FILLERS.iter().any(|filler| word.eq_ignore_ascii_case(filler));
        (begins_well && !is_filler).then_some(word)
    })
}

/// Splits a text into sentences, which end at a full stop, question or exclamation mark before white space, or with their line.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |line: &str| {
        let mut from = 0;
        let mut parts = Vec::new();
        for (at, c) in line.char_indices() {
            let next = at + c.len_utf8();
            if matches!(c, '.' | '!' | '?') && line[next..].starts_with(char::is_whitespace) {
                parts.push((from, next));
                from = next;
            }
        }
        parts.push((from, line.len()));
        parts
    };
    text.lines()
        .flat_map(move |line| ends(line).into_iter().map(move |(from, to)| line[from..to].trim()))
        .filter(|sentence| !sentence.is_empty())
}
