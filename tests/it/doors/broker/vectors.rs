//! Recorded answers of git-paw's own broker, asked of ours, each group on a fresh daemon.
//!
//! The members that clients read are the same to the letter, except for Provost's own members. The differences are
//! listed in `docs/protocols/broker.md`, with their reasons: no more, and no less. Numbers that differ because of one
//! of these are compared with the numbers that they have to be then.

mod shifted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;

use serde_json::Value;

use crate::support::World;
use crate::support::loopback_client::{Answer, Http};
use crate::support::source::project_root;
use crate::support::waits::within;
use shifted::{ANY, Shifted};

/// Every group with its exchanges, and the lines of its log.
fn groups() -> BTreeMap<String, (Vec<Value>, Vec<String>)> {
    let path = project_root().join("tests/it/vectors/broker/exchanges.jsonl");
    let mut groups: BTreeMap<String, (Vec<Value>, Vec<String>)> = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let it: Value = serde_json::from_str(line).unwrap();
        let group = groups.entry(it["group"].as_str().unwrap().into()).or_default();
        match it["log"].as_array() {
            Some(lines) => group.1 = lines.iter().map(|it| it.as_str().unwrap().into()).collect(),
            None => group.0.push(it),
        }
    }
    groups
}

/// How the broker was set up for a group.
fn configured(group: &str) -> World {
    let world = World::new();
    let detector = group.starts_with("detector-") && group != "detector-off";
    let (warn, escalate) = (group != "detector-forward-disabled", group != "detector-ownership-noescalate");
    world.configure(&format!(
        "[supervisor]\nenabled = {detector}\nverify_on_commit_nudge = {}\n[supervisor.conflict]\n\
         window_seconds = {}\nwarn_on_intent_overlap = {warn}\nescalate_on_violation = {escalate}\n\
         [broker]\nlog = \"always\"\nlog_format = \"text\"\n",
        group == "nudge",
        if is_slow(group) { 2 } else { 3_600 },
    ));
    world
}

/// A body as it was sent; long ones were recorded as what they were made of.
fn body(it: &Value) -> Vec<u8> {
    let fill = &it["fill"];
    let bytes = usize::try_from(fill["bytes"].as_u64().unwrap_or(0)).unwrap();
    let around = |before: &str, text: &str, after: &str| {
        format!("{before}{}{after}", text.repeat(bytes - before.len() - after.len())).into_bytes()
    };
    if fill == "utf8" {
        let before = br#"{"type":"agent.status","agent_id":"feat-aa","payload":{"status":""#;
        return [before.as_slice(), b"\xff\"}}"].concat();
    }
    if let Some(text) = fill["text"].as_str() {
        return around("", text, "");
    }
    if let Some(text) = fill["message"].as_str() {
        let before =
            r#"{"type":"agent.status","agent_id":"feat-big","payload":{"status":"working","message":""#;
        return around(before, text, r#""}}"#);
    }
    if let Some(text) = fill["id"].as_str() {
        let after = r#"-x","payload":{"status":"working"}}"#;
        return around(r#"{"type":"agent.status","agent_id":""#, text, after);
    }
    it["body"].as_str().unwrap_or_default().as_bytes().to_vec()
}

fn send(broker: Http, it: &Value) -> Answer {
    let own = format!("127.0.0.1:{}", broker.port);
    let mut headers = vec![("Host", it["host"].as_str().unwrap_or(&own))];
    headers.extend(it["content_type"].as_str().map(|kind| ("Content-Type", kind)));
    let more = it["headers"].as_object().into_iter().flatten();
    headers.extend(more.map(|(name, value)| (name.as_str(), value.as_str().unwrap())));
    let line = format!("{} {}", it["method"].as_str().unwrap(), it["path"].as_str().unwrap());
    if it["status"] != 413 {
        return broker.bare(&line, &headers, &body(it));
    }
    // What is too large is not read to its end, and the system may throw away an answer that comes before that.
    let request = broker.bytes(&line, &headers, &body(it));
    loop {
        let mut connection = broker.connect();
        let _cut_short = connection.write_all(&request);
        if let Ok(answer) = Answer::read(&mut connection, false) {
            return answer;
        }
    }
}

/// The texts that stand for a number that differs each time.
const MASKS: [&str; 3] = ["<N>", "<TS>", "<AGE>"];

/// Whether an answer is what was expected; members that are ours may stand beside that.
fn fits(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::String(mask), got) if MASKS.contains(&mask.as_str()) => got.is_u64(),
        (Value::String(mask), got) if mask == ANY => got.as_str().is_some_and(|it| !it.is_empty()),
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| fits(expected, got))
        }
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().all(|(name, it)| got.get(name).is_some_and(|got| fits(it, got)))
        }
        _ => expected == got,
    }
}

fn parsed(text: &str) -> Option<Value> {
    let masked = MASKS.iter().fold(text.to_owned(), |text, mask| text.replace(mask, &format!("\"{mask}\"")));
    serde_json::from_str(&masked).ok()
}

fn as_recorded(it: &Value, answer: &Answer) -> bool {
    let expected = it["answer"].as_str().unwrap_or_default();
    let said = match parsed(expected) {
        Some(expected) => serde_json::from_slice(&answer.body).is_ok_and(|got: Value| fits(&expected, &got)),
        None => answer.body == expected.as_bytes(),
    };
    let has = |name: &str| it.get(name).is_none_or(|it| answer.header(name) == it.as_str());
    u64::from(answer.status) == it["status"] && said && has("content-type") && has("allow")
}

/// Returns the differences that the document lists: the rows of its table.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(project_root().join("docs/protocols/broker.md")).unwrap();
    let (_, table) = text.split_once("<!-- recorded answers that differ -->").unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .flat_map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            assert!(cells.len() == 3 && cells[2].len() > 9, "a difference without a reason: {row}");
            let group = cells[0].trim_matches('`').to_owned();
            cells[1].split(',').map(|it| format!("{group} {}", it.trim())).collect::<Vec<_>>()
        })
        .collect()
}

/// The group's exchanges in their order; those that differ, and what came instead.
fn replayed(group: &str, exchanges: &[Value], log: &[String]) -> BTreeMap<String, String> {
    let world = configured(group);
    let daemon = world.start();
    let broker = Http::broker(&world);
    let shifted = Shifted::of(group, exchanges);
    let fits_shifted = |it: &Value, answer: &Answer| {
        shifted.as_ref().is_some_and(|shifted| shifted.explains(it, answer.status, &answer.body))
    };
    let mut differing = BTreeMap::new();
    for it in exchanges {
        let name = format!("{group} {}", it["k"]);
        let mut answer = send(broker, it);
        // The window has to pass before some things are said; they come in no other order.
        if group.starts_with("detector-") && it["method"] == "GET" && !documented().contains(&name) {
            within(std::time::Duration::from_secs(4), || {
                let is_said = as_recorded(it, &answer);
                if !is_said {
                    answer = send(broker, it);
                }
                is_said
            });
        }
        if !as_recorded(it, &answer) && !fits_shifted(it, &answer) {
            let got = String::from_utf8_lossy(&answer.body);
            differing.insert(name, format!("{it}\n    got {} {:?} {got}", answer.status, answer.headers));
        }
    }
    daemon.stop();
    let path = world.repo().join(".git-paw/broker.log");
    let lines = fs::read_to_string(path).unwrap_or_default();
    let log = shifted.map_or_else(|| log.to_vec(), |it| it.lines(log));
    if lines.lines().map(masked).ne(log) {
        differing.insert(format!("{group} log"), lines);
    }
    differing
}

/// A line of the log, its time taken out.
fn masked(line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (n, _, rest) = (words.next(), words.next(), words.next());
    format!("{} <TS> {}", n.unwrap_or_default(), rest.unwrap_or_default())
}

fn check(here: impl Fn(&str) -> bool) {
    let mut differing = BTreeMap::new();
    let mut tried = 0;
    for (group, (exchanges, log)) in groups().into_iter().filter(|(group, _)| here(group)) {
        tried += exchanges.len();
        differing.extend(replayed(&group, &exchanges, &log));
    }
    assert!(tried > 0);
    let mine = |name: &&String| here(name.rsplit_once(' ').unwrap().0);
    let documented = documented();
    let untold: Vec<String> = differing
        .iter()
        .filter(|(name, _)| !documented.contains(*name))
        .map(|(name, got)| format!("{name}: {got}"))
        .collect();
    let gone: Vec<&String> =
        documented.iter().filter(mine).filter(|name| !differing.contains_key(*name)).collect();
    assert!(
        untold.is_empty() && gone.is_empty(),
        "{} not in the document:\n{}\nno difference: {gone:#?}",
        untold.len(),
        untold.join("\n")
    );
}

#[test]
fn http_is_answered_as_recorded() {
    check(|group| group == "http-surface");
}

#[test]
fn names_are_taken_as_recorded() {
    check(|group| group == "agent-id");
}

#[test]
fn every_kind_of_message_is_answered_as_recorded() {
    check(|group| group == "variants");
}

#[test]
fn messages_go_where_recorded() {
    check(|group| matches!(group, "routing" | "nudge" | "watch" | "status-derivation"));
}

#[test]
fn conflicts_are_told_as_recorded() {
    check(|group| group.starts_with("detector-") && !is_slow(group));
}

#[test]
fn conflicts_that_last_are_told_as_recorded() {
    check(is_slow);
}

fn is_slow(group: &str) -> bool {
    group.starts_with("detector-inflight") || group == "detector-additive"
}

#[test]
fn every_exchange_is_replayed() {
    let all: usize = groups().values().map(|(exchanges, _)| exchanges.len()).sum();
    assert_eq!(all, 453);
}

#[test]
fn an_answer_that_lacks_something_does_not_fit() {
    let expected = parsed(r#"{"a":<N>,"b":[{"c":"d"}]}"#).unwrap();
    for (got, good) in [
        (r#"{"a":7,"b":[{"c":"d","ours":1}]}"#, true),
        (r#"{"a":"7","b":[{"c":"d"}]}"#, false),
        (r#"{"a":7,"b":[]}"#, false),
        (r#"{"a":7,"b":[{"c":"d"},{"c":"d"}]}"#, false),
        (r#"{"b":[{"c":"d"}]}"#, false),
    ] {
        assert_eq!(fits(&expected, &serde_json::from_str(got).unwrap()), good, "{got}");
    }
}
