//! Recorded answers of wit's own daemon, asked of ours over its socket, on the files on which they were
//! recorded.
//!
//! wit's documented behaviour holds to the letter, except for Provost's own members and kinds of entries. Behaviour
//! that wit has and does not document may differ, and is then listed in `docs/protocols/wit.md`: no more, and no less.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::source::project_root;
use crate::support::wit_client::{Wit, request};
use crate::support::wit_world::recorded_world;

/// Kinds of warnings and conflicts that wit knows.
const KINDS: [&str; 4] = ["CALLER_LOCKED", "INTENT_OVERLAP", "LOCK_INTERSECTION", "DEP_CHAIN"];

fn vectors(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(project_root().join("tests/it/vectors/wit").join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Values that were saved from earlier answers.
type Saved = BTreeMap<String, String>;

fn filled(value: &Value, saved: &Saved) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix("${").and_then(|it| it.strip_suffix('}')) {
            Some(name) => saved.get(name).map_or(value.clone(), |it| json!(it)),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|it| filled(it, saved)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, it)| (name.clone(), filled(it, saved))).collect()
        }
        _ => value.clone(),
    }
}

fn is_ours(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| !KINDS.contains(&kind))
}

fn is_time(text: &str) -> bool {
    text.len() == 24 && text.ends_with('Z') && text.as_bytes()[19] == b'.' && text.as_bytes()[10] == b'T'
}

/// Whether an answer is what was expected; members and kinds of entries that are ours may stand beside that.
fn fits(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::String(wanted), got) => match (wanted.as_str(), got) {
            ("<uuid>", Value::String(text)) => text.len() == 36 && text.matches('-').count() == 4,
            ("<iso>", Value::String(text)) => is_time(text),
            ("<msg>", Value::String(text)) => !text.is_empty(),
            ("<ms>", got) => got.as_u64().is_some_and(|it| it > 1_600_000_000_000),
            ("<int>", got) => got.as_u64().is_some_and(|it| it > 0),
            (_, got) => expected == got,
        },
        (Value::Array(expected), Value::Array(got)) => {
            let got: Vec<&Value> = got.iter().filter(|it| !is_ours(it)).collect();
            expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| fits(expected, got))
        }
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().all(|(name, it)| got.get(name).is_some_and(|got| fits(it, got)))
        }
        _ => expected == got,
    }
}

/// The result of the recorded answers: those that had to fit and did not, and those that differ.
#[derive(Default)]
struct Outcome {
    fitting: usize,
    broken: Vec<String>,
    differing: BTreeSet<(String, String)>,
}

impl Outcome {
    fn note(&mut self, vector: &Value, place: &str, fits: bool, got: impl std::fmt::Debug) {
        let is_quirk = vector.get("q").is_some();
        match (fits, is_quirk) {
            (true, false) => self.fitting += 1,
            (true, true) => {}
            (false, false) => self.broken.push(format!("{vector}\n    got {got:?}")),
            (false, true) => {
                self.differing.insert((place.into(), vector["t"].as_str().unwrap().into()));
            }
        }
    }
}

/// Returns the differences that the document lists: the rows of its table of quirks.
fn documented() -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(project_root().join("docs/protocols/wit.md")).unwrap();
    let (_, table) = text.split_once("<!-- recorded answers that differ -->").unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && cells[2].len() > 9, "a difference without a reason: {row}");
        (cells[0].trim_matches('`').into(), cells[1].trim_matches('`').into())
    })
    .collect()
}

fn checked(outcome: &Outcome, fitting: usize, here: impl Fn(&str) -> bool) {
    assert!(outcome.broken.is_empty(), "{} broken:\n{}", outcome.broken.len(), outcome.broken.join("\n"));
    assert_eq!(outcome.fitting, fitting);
    let documented: BTreeSet<_> = documented().into_iter().filter(|(place, _)| here(place)).collect();
    let untold: Vec<_> = outcome.differing.difference(&documented).collect();
    let gone: Vec<_> = documented.difference(&outcome.differing).collect();
    assert!(
        untold.is_empty() && gone.is_empty(),
        "not in the document: {untold:#?}\nno difference: {gone:#?}"
    );
}

#[test]
fn http_is_answered_as_recorded() {
    let world = recorded_world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    let mut outcome = Outcome::default();
    for vector in vectors("transport-vectors.jsonl") {
        let line = vector["http"].as_str().unwrap();
        let headers: Vec<(&str, &str)> = match vector.get("hdr") {
            Some(given) => {
                given.as_object().unwrap().iter().map(|(k, v)| (k.as_str(), v.as_str().unwrap())).collect()
            }
            None => vec![("Content-Type", "application/json")],
        };
        let bytes = match vector.get("body") {
            Some(body) => request(line, &headers, body.as_str().unwrap().as_bytes()),
            None => format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes(),
        };
        let answer = wit.raw(&bytes);
        let said = match &vector["res"] {
            Value::String(text) => answer.body == text.as_bytes(),
            expected => serde_json::from_slice(&answer.body).is_ok_and(|got: Value| fits(expected, &got)),
        };
        let fits = u64::from(answer.status) == vector["status"]
            && said
            && answer.header("content-type") == vector["ct"].as_str();
        outcome.note(&vector, "HTTP", fits, (&answer, String::from_utf8_lossy(&answer.body)));
    }
    checked(&outcome, 26, |place| place == "HTTP");
}

#[test]
fn methods_are_answered_as_recorded() {
    let world = recorded_world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    // Warnings name callers in files that have been read by then.
    eventually("the repository is read", || {
        let out = world.command(&["graph", "status", "--json"]).output().unwrap().stdout;
        serde_json::from_slice::<Value>(&out).is_ok_and(|status| status["complete"] == true)
    });
    let (mut outcome, mut saved) = (Outcome::default(), Saved::new());
    for vector in vectors("wit-vectors.jsonl") {
        let method = vector["m"].as_str().unwrap();
        let got = wit.call(method, vector.get("p").map(|it| filled(it, &saved)).as_ref());
        if let Some(name) = vector["save"].as_str() {
            let id = ["intentId", "contractId"].iter().find_map(|it| got["result"][*it].as_str());
            saved.insert(name.into(), id.unwrap_or_else(|| panic!("{vector}: {got}")).into());
        }
        let fits = match (vector.get("r"), vector.get("e")) {
            (Some(result), _) => got.get("result").is_some_and(|got| fits(&filled(result, &saved), got)),
            (_, Some(error)) => got.get("error").is_some_and(|got| fits(&filled(error, &saved), got)),
            // What made wit's own daemon fail.
            (None, None) => false,
        };
        outcome.note(&vector, method, fits, &got);
    }
    checked(&outcome, 120, |place| place != "HTTP");
}

#[test]
fn an_answer_that_lacks_something_does_not_fit() {
    let row = json!({ "a": 1, "items": [{ "type": "DEP_CHAIN" }] });
    assert!(fits(
        &row,
        &json!({ "a": 1, "b": 2, "items": [{ "type": "OURS" }, { "type": "DEP_CHAIN", "x": 1 }] })
    ));
    for wrong in [
        json!({ "items": [{ "type": "DEP_CHAIN" }] }),
        json!({ "a": 2, "items": [{ "type": "DEP_CHAIN" }] }),
        json!({ "a": 1, "items": [] }),
        json!({ "a": 1, "items": [{ "type": "DEP_CHAIN" }, { "type": "DEP_CHAIN" }] }),
    ] {
        assert!(!fits(&row, &wrong), "{wrong}");
    }
    assert!(!fits(&json!("<iso>"), &json!("2024-01-15T10:30:00Z")));
    assert!(!fits(&json!("<ms>"), &json!("1705316000000")));
    assert!(!fits(&json!(["<msg>", "<msg>"]), &json!(["one"])));
}
