//! Events of the journal, newest first.

use provost_base::{visible, visible_name};
use serde_json::Value;

use super::block::Empty;
use super::{Block, Cell, Fact, Filter, Row, Rows, Shown};

/// Shows a page of events, given in the shape of the own API and in the order of the journal.
pub fn events(found: &[Value], filter: &Filter) -> Shown {
    let passing = found.iter().rev().filter_map(|event| {
        let (kind, particulars) = kind_of(event);
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        let seq = event.get("seq").and_then(Value::as_u64).unwrap_or_default();
        let more = particulars.map(Value::to_string).unwrap_or_default();
        filter.takes(&[&kind, text("actor"), &more]).then(|| Row {
            key: seq.to_string(),
            to: Some(path(seq)),
            cells: vec![
                Cell::text(&seq.to_string()),
                Cell::time(Some(text("at"))),
                Cell::code(text("actor")),
                Cell::code(&kind),
                Cell::said(&more),
                about(particulars),
            ],
            commands: Vec::new(),
        })
    });
    let empty = match filter.is_empty() {
        true => Empty::new("Nothing has happened before that.", None),
        false => Empty::new("No event of this page passes the filter.", None),
    };
    let rows = Rows {
        title: "Newest first".into(),
        columns: vec!["No.", "When", "Who", "What", "Particulars", "About"],
        rows: passing.collect(),
        more: 0,
        empty,
    };
    let mut shown = Shown::new("Events", vec![Block::List(rows)]);
    let first = found.first().and_then(|it| it.get("seq")).and_then(Value::as_u64);
    shown.next = first.filter(|it| *it > 1).map(|it| format!("/e?before={it}"));
    shown
}

/// The path of the view of an event.
fn path(seq: u64) -> String {
    format!("/e/{seq}")
}

/// Shows one whole event, given in the shape of the own API.
pub fn event(event: &Value) -> Shown {
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let seq = event.get("seq").and_then(Value::as_u64).unwrap_or_default();
    let (kind, particulars) = kind_of(event);
    let facts = vec![
        Fact::text("number", &seq.to_string()),
        Fact::new("when", Cell::time(Some(text("at")))),
        Fact::new("who", Cell::code(text("actor"))),
        Fact::new("what", Cell::code(&kind)),
        Fact::new("about", about(particulars)),
    ];
    let whole = serde_json::to_string_pretty(event).unwrap_or_default();
    let blocks = vec![
        Block::Facts { title: "What the journal knows".into(), facts },
        Block::Words { title: "As JSON".into(), text: visible(&whole), folded: false, by_person: false },
    ];
    let mut shown = Shown::new(format!("Event {seq}"), blocks);
    shown.next = (seq > 1).then(|| path(seq - 1));
    shown
}

/// Reads a moment in the form of RFC 3339 as milliseconds since 1970.
pub fn moment(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|it| it.timestamp_millis())
}

/// Returns the kind of an event and its particulars: an event is one word, or one member with an object. A group's name is
/// followed by the kind in it.
pub(crate) fn kind_of(event: &Value) -> (String, Option<&Value>) {
    match event.get("kind") {
        Some(Value::String(word)) => (word.clone(), None),
        Some(Value::Object(members)) => match members.iter().next() {
            Some((group, Value::Object(inner)))
                if matches!(group.as_str(), "crew" | "job" | "apply" | "permission") && inner.len() == 1 =>
            {
                let (name, more) =
                    inner.iter().next().map_or((group.as_str(), None), |(k, v)| (k.as_str(), Some(v)));
                (format!("{group} {name}"), more)
            }
            Some((name, more)) => (name.clone(), Some(more)),
            None => (String::new(), None),
        },
        _ => (String::new(), None),
    }
}

/// Returns a link to the view of the task or approval that an event is about.
fn about(particulars: Option<&Value>) -> Cell {
    let Some(to) = to(particulars) else { return Cell::None };
    let (what, name) = match (to.strip_prefix("/a/"), particulars.and_then(|it| it.get("task")?.as_str())) {
        (Some(number), _) => ("approval", number),
        (None, name) => ("task", name.unwrap_or_default()),
    };
    Cell::link(&format!("{what} {}", visible_name(name, 12)), to)
}

/// Returns the path of that view.
fn to(particulars: Option<&Value>) -> Option<String> {
    let about = particulars?;
    let approval = about.get("approval").and_then(Value::as_u64);
    let task = about.get("task").and_then(Value::as_str);
    task.map(super::task::path).or_else(|| approval.map(super::approval::path))
}
