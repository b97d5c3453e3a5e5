//! The words of tasks and events for the search, the same in each store.

use serde_json::Value;

use provost_base::limits::SEARCH_TEXT_BYTES_MAX;
use provost_domain::Task;

/// Returns the other searchable words of a task: its id, its worker, its asker and its state.
pub(super) fn what_of(task: &Task) -> String {
    format!("{} {} {} {}", task.id(), task.order.worker, task.asked_by, task.state.as_str())
}

/// Returns the texts in a task: its goal, and its reports.
pub(super) fn said_in(task: &Task) -> String {
    let mut said = String::new();
    let notes = task.notes.iter().map(|it| &*it.report.summary);
    for part in std::iter::once(&*task.order.goal).chain(notes) {
        add(&mut said, part);
    }
    said
}

fn add(said: &mut String, part: &str) {
    let room = SEARCH_TEXT_BYTES_MAX.saturating_sub(said.len());
    said.push_str(&part[..part.floor_char_boundary(room.min(part.len()))]);
    said.push('\n');
}

/// The members of an event with signed words of passkeys, which are not searched.
const SIGNED: [&str; 2] = ["signed", "vouched"];

/// The member of a decision with the rules' input: the event's other members have its searchable parts.
const JUDGED: &str = "judged";

/// Returns the note in a word that a passkey has signed, which is the only text in it that a person has typed.
fn note_of(signed: &Value) -> Option<String> {
    let transcript: Value = serde_json::from_str(signed.get("transcript")?.as_str()?).ok()?;
    let word = transcript.as_array()?.last()?;
    Some(word.get("note")?.as_str()?.to_owned()).filter(|it| !it.is_empty())
}

/// Returns the texts in an event, without digests, signatures and keys, which no person types.
pub(super) fn words_of(event: &Value) -> String {
    let mut said = String::new();
    let mut open = vec![event.get("kind").unwrap_or(&Value::Null)];
    while let Some(value) = open.pop() {
        match value {
            Value::String(it) if !is_digest(it) => add(&mut said, it),
            // The last one is taken first.
            Value::Array(all) => open.extend(all.iter().rev()),
            Value::Object(all) => {
                let (signed, rest): (Vec<_>, Vec<_>) =
                    all.iter().rev().partition(|(name, _)| SIGNED.contains(&name.as_str()));
                signed.iter().filter_map(|(_, it)| note_of(it)).for_each(|note| add(&mut said, &note));
                open.extend(rest.into_iter().filter(|(name, _)| *name != JUDGED).map(|(_, it)| it));
            }
            _ => {}
        }
        if said.len() >= SEARCH_TEXT_BYTES_MAX {
            break;
        }
    }
    said
}

fn is_digest(it: &str) -> bool {
    let hex = it.strip_prefix("sha256:").unwrap_or(it);
    hex.len() >= 64 && hex.bytes().all(|it| it.is_ascii_hexdigit())
}
