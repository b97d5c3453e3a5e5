//! Requests to the page's door, by raw requests: only a word counts that a passkey has signed, from the page's own origin, as
//! JSON, within bounds.

use std::process::Command;

use provost::base::limits::{CHALLENGES_PER_MINUTE_MAX, WEB_BODY_BYTES_MAX, WORDS_PER_MINUTE_MAX};
use serde_json::{Value, json};

use super::{OPEN, at};
use crate::support::authenticator::{Authenticator, Kind, UP};
use crate::support::loopback_client::{Answer, Http};
use crate::support::passkeys::{answered, asks, assertion, code, enrol, get, rules_by, waits};
use crate::support::{Daemon, World};

const OWN: (&str, &str) = ("Host", "provost.localhost:PORT");
const PAGE: (&str, &str) = ("Origin", "http://provost.localhost:PORT");
const IS_JSON: (&str, &str) = ("Content-Type", "application/json");

/// Each path at which something is taken.
const PATHS: [&str; 8] = [
    "/word-challenge",
    "/signed-word",
    "/begin-passkey",
    "/finish-passkey",
    "/confirm-passkey",
    "/begin-push",
    "/offer-push",
    "/snooze-push",
];

fn world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(OPEN);
    world.rule(&rules_by("\"passkey\""));
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// A key whose browser is at the page, enrolled.
fn key(world: &World, door: Http) -> Authenticator {
    let mut key = Authenticator::new(Kind::Es256);
    key.origin = at(door, "");
    let (status, said) = enrol(world, &mut key, "phone", None);
    assert_eq!(status, 200, "{said}");
    key
}

/// Sends a request as the page does.
fn post(door: Http, path: &str, body: &Value) -> Answer {
    door.bare(&format!("POST {path}"), &[OWN, PAGE, IS_JSON], body.to_string().as_bytes())
}

fn challenge(door: Http, body: &Value) -> Value {
    let answer = post(door, "/word-challenge", body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn hand_in(door: Http, challenge: &Value, assertion: &Value) -> Answer {
    post(door, "/signed-word", &json!({ "nonce": challenge["nonce"], "assertion": assertion }))
}

#[test]
fn a_signature_answers_over_the_page_and_a_request_without_one_answers_nothing() {
    let (world, _daemon, door) = world();
    let mut key = key(&world, door);
    let approval = asks(&world, "true");
    let yes = json!({ "approval": approval, "grant": true });
    // As any process of the user can: without a signature, with a made-up one, with that of another key.
    let none = json!({ "credential": "", "client_data": "", "authenticator_data": "", "signature": "" });
    let asked = challenge(door, &yes);
    assert_eq!(hand_in(door, &asked, &none).status, 403);
    let asked = challenge(door, &yes);
    assert_eq!(post(door, "/signed-word", &json!({ "nonce": asked["nonce"], "grant": true })).status, 400);
    let mut own = Authenticator::new(Kind::Es256);
    own.origin = at(door, "");
    let asked = challenge(door, &yes);
    let signed = assertion(&mut own, &asked);
    assert_eq!(hand_in(door, &asked, &signed).status, 403, "a key of its own");
    own.id.clone_from(&key.id);
    let asked = challenge(door, &yes);
    let signed = assertion(&mut own, &asked);
    assert_eq!(hand_in(door, &asked, &signed).status, 403, "a key of its own under the name of a known one");
    assert!(waits(&world, approval));
    let asked = challenge(door, &yes);
    let answer = hand_in(door, &asked, &assertion(&mut key, &asked));
    assert_eq!((answer.status, answer.json()["approval"].clone()), (200, json!(approval)), "{answer:?}");
    assert!(answered(&world, approval).to_string().contains("\"proof\":\"passkey\""));
}

#[test]
fn a_page_at_another_port_or_name_and_a_touch_without_verification_are_refused() {
    let (world, _daemon, door) = world();
    let mut key = key(&world, door);
    let approval = asks(&world, "true");
    let own = key.origin.clone();
    // The port of the default is none of ours while the page is elsewhere.
    let foreign = [
        "http://provost.localhost:4720".to_owned(),
        format!("http://provost.localhost:{}", u32::from(door.port) + 1),
        format!("http://localhost:{}", door.port),
        format!("http://127.0.0.1:{}", door.port),
        format!("https://provost.localhost:{}", door.port),
        "https://evil.example".to_owned(),
    ];
    for origin in foreign {
        key.origin = origin;
        let asked = challenge(door, &json!({ "approval": approval, "grant": true }));
        let answer = hand_in(door, &asked, &assertion(&mut key, &asked));
        assert_eq!((answer.status, &*key.origin), (403, &*key.origin), "{answer:?}");
        assert!(answer.json()["message"].as_str().unwrap().contains("origin"), "{answer:?}");
    }
    (key.origin, key.flags) = (own, UP);
    let asked = challenge(door, &json!({ "approval": approval, "grant": true }));
    let answer = hand_in(door, &asked, &assertion(&mut key, &asked));
    assert!(answer.json()["message"].as_str().unwrap().contains("not verified its user"), "{answer:?}");
    assert!(waits(&world, approval));
}

#[test]
fn what_was_signed_counts_once_for_one_verdict_and_one_approval() {
    let (world, _daemon, door) = world();
    let mut key = key(&world, door);
    let (first, second) = (asks(&world, "true"), asks(&world, "false"));
    let view = get(&world, &format!("/approval?id={first}"))["view_digest"].clone();
    let no = challenge(door, &json!({ "approval": first, "grant": false, "note": "no", "view": view }));
    let yes = challenge(door, &json!({ "approval": first, "grant": true, "view": view }));
    let other = challenge(door, &json!({ "approval": second, "grant": true }));
    let signed = assertion(&mut key, &no);
    for wanted in [&yes, &other] {
        assert_eq!(hand_in(door, wanted, &signed).status, 403);
        // It was used up by that.
        assert_eq!(hand_in(door, wanted, &signed).status, 410);
    }
    let changed = post(door, "/word-challenge", &json!({ "approval": second, "grant": true, "view": view }));
    assert_eq!((changed.status, changed.json()["error"].clone()), (409, json!("approval_changed")));
    assert_eq!(hand_in(door, &no, &signed).status, 200);
    assert_eq!(hand_in(door, &no, &signed).status, 410, "a replay");
    assert!(!waits(&world, first) && waits(&world, second));
}

#[test]
fn only_json_of_the_page_itself_is_taken_within_its_bounds() {
    let (world, _daemon, door) = world();
    let approval = asks(&world, "true");
    let body = json!({ "approval": approval, "grant": true }).to_string();
    let kinds = [
        "text/plain",
        "text/plain;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "application/jsonp",
        "application/json, text/plain",
        "application/json\r\nContent-Type: text/plain",
        "",
    ];
    for path in PATHS {
        for kind in kinds {
            let headers = [OWN, PAGE, ("Content-Type", kind)];
            let answer = door.bare(&format!("POST {path}"), &headers, body.as_bytes());
            assert_eq!(answer.status, 415, "{path} {kind}");
        }
        assert_eq!(door.bare(&format!("POST {path}"), &[OWN, PAGE], body.as_bytes()).status, 415, "{path}");
        for site in ["none", "cross-site", "same-site"] {
            let headers = [OWN, PAGE, IS_JSON, ("Sec-Fetch-Site", site)];
            let answer = door.bare(&format!("POST {path}"), &headers, body.as_bytes());
            assert_eq!(answer.status, 403, "{path} {site}");
        }
        // Pages ask first whether they may send this, and hear nothing that lets them.
        let headers = [OWN, ("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")];
        let asked = door.bare(&format!("OPTIONS {path}"), &headers, b"");
        assert_eq!(asked.status, 403);
        assert!(!asked.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{asked:?}");
        for broken in ["", "{", "[]", "\"x\"", "{\"nonce\":1}", "{}}", "\u{feff}{}"] {
            let answer = door.bare(&format!("POST {path}"), &[OWN, PAGE, IS_JSON], broken.as_bytes());
            assert_eq!(answer.status, 400, "{path} {broken:?}: {answer:?}");
        }
        let deep = "[".repeat(10_000);
        assert_eq!(door.bare(&format!("POST {path}"), &[OWN, PAGE, IS_JSON], deep.as_bytes()).status, 400);
        let large = vec![b' '; WEB_BODY_BYTES_MAX + 1];
        assert_eq!(door.bare(&format!("POST {path}"), &[OWN, PAGE, IS_JSON], &large).status, 413, "{path}");
        for method in ["PUT", "PATCH", "DELETE"] {
            let answer = door.bare(&format!("{method} {path}"), &[OWN, PAGE, IS_JSON], body.as_bytes());
            assert_eq!(answer.status, 405, "{method} {path}");
        }
        // No look changes anything.
        let query = format!("{path}?approval={approval}&grant=true&revoke=x&code=x&name=x");
        assert_eq!(door.look(&query).status, 404, "{query}");
    }
    let socket =
        [OWN, PAGE, ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13")];
    for path in PATHS.iter().chain(&["/event-stream", "/"]) {
        let answer =
            door.bare(&format!("GET {path}"), &[&socket[..], &[("Connection", "close")]].concat(), b"");
        assert_ne!(answer.status, 101, "{path}");
        if *path == "/event-stream" {
            continue;
        }
        assert_ne!(answer.status, 500, "{path}");
    }
    let json =
        [OWN, PAGE, ("Content-Type", "Application/JSON; charset=utf-8"), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(door.bare("POST /word-challenge", &json, body.as_bytes()).status, 200);
    assert!(waits(&world, approval));
}

#[test]
fn one_process_asks_often_enough_for_a_person_and_leaves_others_alone() {
    let (world, _daemon, door) = world();
    let approval = asks(&world, "true");
    let yes = json!({ "approval": approval, "grant": true });
    for n in 0..CHALLENGES_PER_MINUTE_MAX {
        assert_eq!(post(door, "/word-challenge", &yes).status, 200, "{n}");
    }
    let answer = post(door, "/word-challenge", &yes);
    assert_eq!((answer.status, answer.json()["error"].clone()), (429, json!("too_often")), "{answer:?}");
    let word = json!({ "nonce": "AAAA", "assertion": {
        "credential": "", "client_data": "", "authenticator_data": "", "signature": "" } });
    for n in 0..WORDS_PER_MINUTE_MAX {
        assert_eq!(post(door, "/signed-word", &word).status, 410, "{n}");
    }
    assert_eq!(post(door, "/signed-word", &word).status, 429);
    // The browser of a person is another process, which this one cannot wear down.
    let own = format!("http://provost.localhost:{}", door.port);
    let other = Command::new("curl")
        .args(["--silent", "--resolve", &format!("provost.localhost:{}:127.0.0.1", door.port)])
        .args([
            "-H",
            &format!("Origin: {own}"),
            "-H",
            "Content-Type: application/json",
            "-d",
            &yes.to_string(),
        ])
        .arg(format!("{own}/word-challenge"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(said.contains("\"transcript\""), "{said}");
}

#[test]
fn a_code_bears_five_tries_and_a_key_of_its_own_needs_one() {
    let (world, _daemon, door) = world();
    let good = code(&world);
    let begin = |code: &str| {
        post(door, "/begin-passkey", &json!({ "code": code, "name": "mine", "origin": at(door, "") }))
    };
    for n in 0..5 {
        assert_eq!(begin("AAAABBBBCCCC").json()["error"], "code_wrong", "{n}");
    }
    let answer = begin(&good);
    assert_eq!((answer.status, answer.json()["error"].clone()), (403, json!("code_gone")), "{answer:?}");
    let elsewhere = json!({ "code": code(&world), "name": "mine", "origin": "http://evil.example" });
    assert_eq!(post(door, "/begin-passkey", &elsewhere).status, 403);
    assert_eq!(get(&world, "/passkeys")["passkeys"], json!([]));
}

#[test]
fn a_signed_verb_is_one_of_a_few_with_just_its_arguments() {
    let (world, _daemon, door) = world();
    let mut key = key(&world, door);
    let approval = asks(&world, "true");
    let task = get(&world, "/approvals")[0]["task"].clone();
    let other = {
        asks(&world, "false");
        get(&world, "/approvals")[1]["task"].clone()
    };
    for (body, says) in [
        (json!({ "verb": "reset-passkeys", "arguments": {} }), "a passkey signs"),
        (json!({ "verb": "cancel-task", "arguments": {} }), "arguments"),
        (json!({ "verb": "cancel-task" }), "say approval"),
        (json!({ "verb": "unlock", "arguments": { "symbol": "a.py:f", "force": true } }), "reason"),
        (
            json!({ "verb": "unlock", "arguments": { "symbol": "a.py:f", "force": true, "reason": " " } }),
            "reason",
        ),
        (json!({ "verb": "cancel-task", "arguments": { "task": "x".repeat(9_000) } }), "bytes"),
        (
            json!({ "verb": "cancel-task", "arguments": { "task": task }, "approval": approval }),
            "say approval",
        ),
    ] {
        let answer = post(door, "/word-challenge", &body);
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.json()["message"].as_str().unwrap().contains(says), "{body}: {answer:?}");
    }
    let cancel =
        |task: &Value| challenge(door, &json!({ "verb": "cancel-task", "arguments": { "task": task } }));
    // The signature is for this task, and counts once.
    let (first, second) = (cancel(&task), cancel(&other));
    let signed = assertion(&mut key, &first);
    assert_eq!(hand_in(door, &second, &signed).status, 403);
    assert!(waits(&world, approval));
    let answer = hand_in(door, &first, &signed);
    assert_eq!((answer.status, answer.json()["verb"].clone()), (200, json!("cancel-task")), "{answer:?}");
    assert!(!waits(&world, approval));
    assert_eq!(hand_in(door, &first, &signed).status, 410);
    // What was signed and is refused afterwards is on record, and changes nothing.
    let asked = cancel(&json!("there-is-none"));
    let answer = hand_in(door, &asked, &assertion(&mut key, &asked));
    assert_eq!(answer.status, 404, "{answer:?}");
}

#[test]
fn the_audit_says_in_words_what_was_decided_and_shows_no_signature() {
    let (world, _daemon, door) = world();
    let mut key = key(&world, door);
    let approval = asks(&world, "true");
    let asked =
        challenge(door, &json!({ "approval": approval, "grant": false, "note": "not on a heron day" }));
    let signed = assertion(&mut key, &asked);
    assert_eq!(hand_in(door, &asked, &signed).status, 200);
    let said = crate::support::waits::until_some("the decision", || {
        let said = Http::look(door, "/rows/audit").json();
        let lists = said["blocks"].as_array().unwrap().clone();
        let list = lists
            .into_iter()
            .find(|it| it["title"].as_str().is_some_and(|it| it.starts_with("Decided last")))?;
        (!list["rows"].as_array().unwrap().is_empty()).then_some(list)
    });
    let short = said["rows"][0]["cells"][3]["text"].as_str().unwrap();
    assert!(
        short.contains("passkey") && short.contains("denied") && short.contains("not on a heron day"),
        "{short}"
    );
    for member in ["credential", "client_data", "authenticator_data", "signature"] {
        let part = &signed[member].as_str().unwrap()[..16];
        assert!(!said.to_string().contains(part), "{member}: {said}");
    }
    // The note is found by its words, and no part of the signature is.
    let found = |words: &str| {
        let said = Http::look(door, &format!("/rows/search?q={words}")).json();
        said["blocks"].to_string().contains("approval_answered")
    };
    assert!(found("heron"));
    assert!(!found(signed["credential"].as_str().unwrap()));
}
