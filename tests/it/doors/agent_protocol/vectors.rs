//! Recorded answers of the published server, asked of ours in the same order, on the same files.
//!
//! The differences are listed in `docs/protocols/agent-protocol.md` with their reasons: no more, and no less. The
//! recording goes on from the earlier answers, so a difference may come from an earlier one; the reason says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::loopback_client::Http;
use crate::support::source::project_root;

fn recorded() -> Vec<Value> {
    let path = project_root().join("tests/it/vectors/agent_protocol/requests.jsonl");
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Names that the recording server gave, with those that ours gave in their place.
type Names = BTreeMap<String, String>;

fn renamed(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
}

fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|it| it.is_ascii_hexdigit() && !it.is_ascii_uppercase())
}

/// An answer without what is another one each time.
fn masked(value: &Value) -> Value {
    const TIMES: [&str; 7] = [
        "timestamp",
        "joined_at",
        "last_heartbeat",
        "claimed_at",
        "created_at",
        "started_at",
        "completed_at",
    ];
    match value {
        Value::String(text) if text.starts_with("evt_") && text.len() == 16 => json!("<event>"),
        Value::String(text) if is_hash(text) => json!("<hash>"),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(members) => {
            let member = |(name, it): (&String, &Value)| {
                let time = TIMES.contains(&name.as_str()) && it.is_number();
                let masked = match name.as_str() {
                    _ if time => json!("<ms>"),
                    "port" => json!("<port>"),
                    "project" => json!("<project>"),
                    _ => masked(it),
                };
                (name.clone(), masked)
            };
            members.iter().map(member).collect()
        }
        other => other.clone(),
    }
}

fn world() -> World {
    let world = World::new();
    world.write("src/a.ts", "export const a = 1\n");
    world
}

struct Replay {
    http: Http,
    names: Names,
    tag: String,
    differing: BTreeSet<String>,
    same: usize,
}

impl Replay {
    fn ask(&mut self, vector: &Value) {
        let (request, wanted) = (&vector["request"], &vector["response"]);
        let (method, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
        let mut headers: Vec<(String, String)> = Vec::new();
        let body = match &request["body"] {
            Value::Null => String::new(),
            // Texts were sent as they are.
            Value::String(text) => text.clone(),
            body => body.to_string(),
        };
        if !body.is_empty() {
            headers.push(("Content-Type".into(), "application/json".into()));
        }
        if !request["headers"]["if-none-match"].is_null() {
            // The recording's tag was of an answer of that moment.
            self.tag = self.http.get(path).header("etag").unwrap().to_owned();
        }
        let mut host = format!("127.0.0.1:{}", self.http.port);
        for (name, value) in request["headers"].as_object().into_iter().flatten() {
            let value = match name.as_str() {
                "if-none-match" => self.tag.clone(),
                _ => value.as_str().unwrap().to_owned(),
            };
            match name.as_str() {
                "host" => host = value,
                "content-type" => headers = vec![("Content-Type".into(), value)],
                _ => headers.push((name.clone(), value)),
            }
        }
        headers.push(("Host".into(), host));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let path = renamed(path, &self.names);
        let got =
            self.http.bare(&format!("{method} {path}"), &headers, renamed(&body, &self.names).as_bytes());
        let mut fits = wanted["status"] == got.status;
        // Pages are not compared: ours are JSON, but for the one for people.
        if let Some(expected) = wanted.get("json") {
            let said = serde_json::from_slice(&got.body).unwrap_or(Value::Null);
            if let (Some(theirs), Some(ours)) = (expected["id"].as_str(), said["id"].as_str())
                && theirs != ours
            {
                self.names.insert(theirs.into(), ours.into());
            }
            let expected: Value = serde_json::from_str(&renamed(&expected.to_string(), &self.names)).unwrap();
            fits &= masked(&expected) == masked(&said);
        }
        let name = vector["name"].as_str().unwrap();
        if fits {
            self.same += 1;
        } else {
            self.differing.insert(name.into());
            eprintln!("{name}: {wanted}\n    got {} {}", got.status, String::from_utf8_lossy(&got.body));
        }
    }
}

/// Returns the differences that the document lists: the rows of its table.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(project_root().join("docs/protocols/agent-protocol.md")).unwrap();
    let (_, table) = text.split_once("<!-- recorded answers that differ -->").unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 2 && cells[1].len() > 9, "a difference without a reason: {row}");
        cells[0].trim_matches('`').into()
    })
    .collect()
}

#[test]
fn recorded_requests_are_answered_as_recorded_but_for_what_the_document_lists() {
    let world = world();
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    let mut replay =
        Replay { http, names: Names::new(), tag: String::new(), differing: BTreeSet::new(), same: 0 };
    let vectors = recorded();
    assert_eq!(vectors.len(), 161);
    vectors.iter().for_each(|vector| replay.ask(vector));
    let documented = documented();
    let untold: Vec<_> = replay.differing.difference(&documented).collect();
    let gone: Vec<_> = documented.difference(&replay.differing).collect();
    assert!(
        untold.is_empty() && gone.is_empty(),
        "not in the document: {untold:#?}\nno difference: {gone:#?}"
    );
    assert_eq!(replay.same + documented.len(), 161);
}
