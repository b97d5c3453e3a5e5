//! Other rules are asked what they would have decided of the requests on record: by the own API, at a terminal and on the page.

use std::collections::BTreeSet;

use provost::domain::{Event, JudgedRequest};
use provost::policy::{Layer, NotAskable, Request, Ruling};
use provost_test_equipment::naive;
use serde_json::{Value, json};

use super::{LOOKS, OPEN, at, examine};
use crate::support::browser::Browser;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::passkeys::get;
use crate::support::proxied::Elsewhere;
use crate::support::rules::{allow, ask, policy, rule};
use crate::support::{Daemon, World};

/// In force: the root is free, `private` is denied, and what takes a minute is asked about.
fn in_force() -> String {
    policy([
        allow("free", &["when.action = [\"delegate\"]"]),
        ask("\"human\"", &["when.action = [\"delegate\"]", "when.client = [\"asker\"]"]),
        rule("private", "deny", "not there", &["when.action = [\"delegate\"]", "when.cwd = [\"private\"]"]),
    ])
}

/// Others, which differ in each way.
fn others() -> Vec<String> {
    let delegate = "when.action = [\"delegate\"]";
    vec![
        policy([allow("all", &[delegate])]),
        policy([rule("none", "deny", "closed", &[delegate])]),
        policy([
            allow("shell", &[delegate, "when.worker = [\"shell\"]"]),
            ask("\"human\"", &[delegate, "when.goal_bytes_over = 20"]),
            rule("door", "deny", "not by this door", &[delegate, "when.door = [\"own\"]"]),
        ]),
        policy([allow("proof", &[delegate, "when.proof = [\"shared_key\"]"])]),
        policy([allow("asker", &[delegate, "when.client = [\"asker\"]", "when.running_over = 0"])]),
        include_str!("../../../../policy/strict.toml").to_owned(),
        include_str!("../../../../policy/open.toml").to_owned(),
    ]
}

/// A world in which each kind of decision was made, some by each door.
fn decided() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(OPEN);
    world.rule(&in_force());
    world.write("private/key", "x");
    world.write("src/a.py", "x = 1\n");
    let daemon = world.start();
    let door = Http::web(&world);
    for (agent, goal, more) in [
        ("orch", "true", json!({})),
        ("asker", "true", json!({})),
        ("orch", "echo a longer goal than the others", json!({ "working_dir": "src" })),
        ("orch", "true", json!({ "working_dir": "private" })),
        ("asker", "echo another long goal of an agent", json!({ "working_dir": "src" })),
    ] {
        let _decided = world.client(&daemon, agent).delegate("shell", goal, more);
    }
    let done = world.command(&["delegate", "true", "--wait"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    (world, daemon, door)
}

/// The requests on record, with the number of their events and what was decided.
fn on_record(world: &World) -> Vec<(u64, JudgedRequest, &'static str)> {
    let events = get(world, "/events?after=0&limit=500");
    let events = events["events"].as_array().unwrap().iter();
    let read = events.filter_map(|it| {
        let event: Event = serde_json::from_value(raw(it)).ok()?;
        let (judged, was) = event.kind.judged()?;
        Some((event.seq.0, judged.clone(), was))
    });
    read.collect()
}

/// An event of the own API as the journal has it: its time is a number there.
fn raw(event: &Value) -> Value {
    let mut event = event.clone();
    let at = event["at"].as_str().unwrap();
    event["at"] = json!(chrono::DateTime::parse_from_rfc3339(at).unwrap().timestamp_millis());
    event
}

fn replayed(world: &World, body: &Value) -> Value {
    let (status, said) = own(world, ("POST", "/replay-rules"), &[], body);
    assert_eq!(status, 200, "{said}");
    said
}

#[test]
fn the_rules_of_then_decide_the_same_and_others_as_a_second_judge_says() {
    let (world, _daemon, _door) = decided();
    let recorded = on_record(&world);
    let said: BTreeSet<&str> = recorded.iter().map(|it| it.2).collect();
    assert_eq!(said, BTreeSet::from(["allow", "approve", "deny"]), "{recorded:?}");
    assert_eq!(recorded.len(), 6);
    // What is on record is all that these rules look at.
    let same = replayed(&world, &json!({ "text": in_force() }));
    assert_eq!((&same["asked"], &same["changed"]), (&json!(6), &json!([])), "{same}");
    let root = std::fs::canonicalize(world.repo()).unwrap();
    let root = root.to_str().unwrap();
    let mut differed = 0;
    for text in others() {
        let layer = Layer::parse(&text, "other.toml").unwrap();
        let expected: BTreeSet<(u64, String, String)> = recorded
            .iter()
            .filter_map(|(seq, judged, was)| {
                let request = Request::on_record(judged, None, root).unwrap();
                let would = ruling(&naive::decide(&[layer.file()], &request));
                (would.name() != *was).then(|| (*seq, (*was).to_owned(), would.name().to_owned()))
            })
            .collect();
        let told = replayed(&world, &json!({ "text": text }));
        let told: BTreeSet<(u64, String, String)> = told["changed"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                let of = |it: &Value| it.as_str().unwrap().to_owned();
                (it["seq"].as_u64().unwrap(), of(&it["was"]), of(&it["would"]["decision"]))
            })
            .collect();
        assert_eq!(told, expected, "{text}");
        differed += expected.len();
    }
    assert!(differed > 10, "{differed}");
    // The command reads the store and finds as many.
    let file = world.path("none.toml");
    std::fs::write(&file, &others()[1]).unwrap();
    let output = world.command(&["policy", "diff", file.to_str().unwrap(), "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((&said["requests"], said["changed"].as_array().unwrap().len()), (&json!(6), 5), "{said}");
    let last = ["policy", "diff", file.to_str().unwrap(), "--last", "2", "--json"];
    let said: Value = serde_json::from_slice(&world.command(&last).output().unwrap().stdout).unwrap();
    assert_eq!(said["requests"], json!(2));
}

fn ruling(it: &provost::domain::Decision) -> Ruling {
    use provost::domain::Decision;
    match it {
        Decision::Allow { .. } => Ruling::Allow,
        Decision::NeedApproval { .. } => Ruling::Approve,
        Decision::Deny { .. } => Ruling::Deny,
    }
}

#[test]
fn what_is_no_question_is_refused_and_bounds_are_kept() {
    let (world, _daemon, _door) = decided();
    for (body, says) in [
        (json!({}), "name ready-made rules"),
        (json!({ "builtin": "strict", "text": "x" }), "name ready-made rules"),
        (json!({ "builtin": "no\u{202e}ne" }), "there are no ready-made rules"),
        (json!({ "text": "version = 1\n[[rule]]\nid = 7" }), "these rules cannot be used"),
        (json!({ "text": "\u{0}" }), "these rules cannot be used"),
        (json!({ "builtin": "open", "last": 0 }), "last: 1 to"),
        (json!({ "builtin": "open", "last": 1_000_000 }), "last: 1 to"),
        (json!({ "builtin": "open", "write": true }), "write"),
    ] {
        let (status, said) = own(&world, ("POST", "/replay-rules"), &[], &body);
        assert!([400, 422].contains(&status), "{body}: {status} {said}");
        assert!(said["message"].as_str().unwrap().contains(says), "{body}: {said}");
        assert!(!said.to_string().contains('\u{202e}'), "{said}");
    }
    let two = replayed(&world, &json!({ "builtin": "strict", "last": 2 }));
    assert_eq!(two["asked"], json!(2), "{two}");
    // Nothing was put on record by all that, and the rules in force are what they were.
    let rules = get(&world, "/rules");
    assert!(rules["rules"].to_string().contains("test.private"), "{rules}");
    assert_eq!(on_record(&world).len(), 6);
}

#[test]
fn a_command_is_on_record_by_its_digest_and_another_one_is_not_taken_for_it() {
    let (world, _daemon, _door) = decided();
    let (_, mut judged, _) = on_record(&world).remove(0);
    judged.work.as_mut().unwrap().command = Some(provost::base::Digest::of(b"make test"));
    assert_eq!(Request::on_record(&judged, None, "/r"), Err(NotAskable::Command));
    assert_eq!(Request::on_record(&judged, Some("make tests"), "/r"), Err(NotAskable::Command));
    let request = Request::on_record(&judged, Some("make test"), "/r").unwrap();
    assert_eq!(request.command.as_deref(), Some("make test"));
    // No words of a goal or a command are in what is recorded.
    let events = get(&world, "/events?after=0&limit=500").to_string();
    assert!(!events.contains("longer goal"), "{events}");
}

#[test]
fn a_person_asks_other_rules_on_the_page_and_nothing_changes() {
    let (world, _daemon, door) = decided();
    let browser = Browser::start();
    let tab = browser.open(&at(door, "/audit"));
    tab.until("the form", "document.querySelector('.replay details')");
    tab.eval("document.querySelector('.replay details').open = true");
    tab.click("button[data-does=replay-rules]");
    tab.shows("of 6 requests would have been decided otherwise");
    // Rules that are written there: a mistake is told, and then they are asked.
    tab.eval("document.querySelector('.replay textarea').focus()");
    tab.write("version = 1\n<script>");
    tab.click("button[data-does=replay-rules]");
    tab.shows("these rules cannot be used");
    assert_eq!(tab.eval("document.querySelectorAll('main script').length"), json!(0));
    tab.eval("document.querySelector('.replay textarea').value = ''");
    tab.eval("document.querySelector('.replay textarea').focus()");
    tab.write(&others()[1]);
    tab.click("button[data-does=replay-rules]");
    tab.shows("5 of 6 requests would have been decided otherwise");
    tab.shows("test.none: closed");
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "/audit", (width, scheme), "replay"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tab.looks(1280, 800, "light");
    // A row leads to the event of the decision.
    tab.eval("document.querySelector('.replay tr[data-key]').focus()");
    tab.press("o");
    tab.until("the event", "location.pathname.startsWith('/e/')");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
    let rules = get(&world, "/rules");
    assert!(rules["rules"].to_string().contains("test.private"), "{rules}");
    // A form of another page cannot ask, nor can a page without an origin.
    let body = json!({ "builtin": "strict" }).to_string();
    let host = ("Host", "provost.localhost:PORT");
    for headers in [
        vec![host, ("Content-Type", "application/json")],
        vec![host, ("Content-Type", "text/plain"), ("Origin", "http://provost.localhost:PORT")],
        vec![host, ("Content-Type", "application/json"), ("Origin", "http://evil.example")],
    ] {
        let said = door.bare("POST /replay-rules", &headers, body.as_bytes());
        assert!(said.status >= 400, "{headers:?}: {said:?}");
    }
}

#[test]
fn who_was_invited_and_who_is_not_signed_in_asks_no_rules() {
    let page = Elsewhere::new();
    let body = json!({ "builtin": "strict" });
    assert_eq!(page.post("/replay-rules", "", &body).status, 401, "without a session");
    // Who was invited is refused with the other things that are sent: `who_was_invited_sees_states_and_no_words_and_signs_nothing`.
    let mut key = page.enrolled();
    let cookie = page.sign_in(&mut key);
    let said = page.post("/replay-rules", &cookie, &body);
    assert_eq!(said.status, 200, "{said:?}");
}
