//! A person with a passkey: a page that asks the own API, and an authenticator behind it.

use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind, ORIGIN, b64, unb64};
use crate::support::own_api::own;
use crate::support::rules::{allow, approvers, ask, policy};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{Daemon, World};

/// A world whose rule lets only these answer delegations of agents; it runs.
pub(crate) fn world_by(by: &str) -> (World, Daemon) {
    let world = World::new();
    world.configure(&format!("[passkeys]\norigins = [\"{ORIGIN}\"]\n"));
    world.rule(&rules_by(by));
    let daemon = world.start();
    (world, daemon)
}

/// Rules that let only these answer delegations of agents.
pub(crate) fn rules_by(by: &str) -> String {
    policy([
        ask(by, &["when.action = [\"delegate\"]"]),
        approvers(),
        allow("own", &["when.action = [\"token\"]"]),
    ])
}

/// A request of the page.
pub(crate) fn page(world: &World, path: &str, body: &Value) -> (u16, Value) {
    own(world, ("POST", path), &[], body)
}

pub(crate) fn get(world: &World, path: &str) -> Value {
    let (status, answer) = own(world, ("GET", path), &[], &json!({}));
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// The JSON that a command at a terminal prints.
pub(crate) fn json_at_the_terminal(world: &World, line: &str) -> Value {
    let output = at_the_terminal(world, line);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (from, to) = (text.find('{'), text.rfind('}'));
    let found = from.zip(to).and_then(|(from, to)| serde_json::from_str(&text[from..=to]).ok());
    found.unwrap_or_else(|| panic!("{line}: {text}"))
}

pub(crate) fn code(world: &World) -> String {
    json_at_the_terminal(world, "passkey add --even-so --json")["code"].as_str().unwrap().to_owned()
}

pub(crate) fn assertion(key: &mut Authenticator, challenge: &Value) -> Value {
    let (client, data, signature) = key.sign(&unb64(challenge["challenge"].as_str().unwrap()));
    json!({
        "credential": b64(&key.id), "client_data": b64(&client), "authenticator_data": b64(&data),
        "signature": b64(&signature),
    })
}

/// Brings a new key as far as the challenge that it is to sign.
pub(crate) fn finish(world: &World, key: &Authenticator, name: &str) -> (u16, Value) {
    let begun = json!({ "code": code(world), "name": name, "origin": key.origin });
    let (status, options) = page(world, "/begin-passkey", &begun);
    if status != 200 {
        return (status, options);
    }
    let (client, object) = key.register(&unb64(options["challenge"].as_str().unwrap()));
    let finished = json!({
        "nonce": options["nonce"], "client_data": b64(&client), "attestation_object": b64(&object),
        "transports": ["internal"],
    });
    page(world, "/finish-passkey", &finished)
}

/// Enrols a key; `vouching` is a known one that signs for it.
pub(crate) fn enrol(
    world: &World,
    key: &mut Authenticator,
    name: &str,
    vouching: Option<&mut Authenticator>,
) -> (u16, Value) {
    let (status, challenge) = finish(world, key, name);
    if status != 200 {
        return (status, challenge);
    }
    let own = assertion(key, &challenge);
    let vouch = vouching.map(|it| assertion(it, &challenge));
    page(world, "/confirm-passkey", &json!({ "nonce": challenge["nonce"], "own": own, "vouch": vouch }))
}

/// A passkey that counts.
pub(crate) fn enrolled(world: &World, kind: Kind) -> Authenticator {
    let mut key = Authenticator::new(kind);
    let (status, answer) = enrol(world, &mut key, "phone", None);
    assert_eq!(status, 200, "{answer}");
    key
}

/// An agent asks for work; the number of the approval that waits.
pub(crate) fn asks(world: &World, goal: &str) -> u64 {
    let body = json!({ "goal": goal, "worker": "shell" });
    let (status, answer) = own(world, ("POST", "/delegate"), &[("x-provost-agent", "asker")], &body);
    assert!(status == 200 || status == 202, "{status}: {answer}");
    answer["approval"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

pub(crate) fn challenge(world: &World, word: &Value) -> Value {
    let (status, answer) = page(world, "/word-challenge", word);
    assert_eq!(status, 200, "{answer}");
    answer
}

/// Hands an assertion over this challenge in.
pub(crate) fn say(world: &World, key: &mut Authenticator, challenge: &Value) -> (u16, Value) {
    let assertion = assertion(key, challenge);
    page(world, "/signed-word", &json!({ "nonce": challenge["nonce"], "assertion": assertion }))
}

/// Signs an answer, from the beginning.
pub(crate) fn answer(world: &World, key: &mut Authenticator, approval: u64, grant: bool) -> (u16, Value) {
    let challenge = challenge(world, &json!({ "approval": approval, "grant": grant }));
    say(world, key, &challenge)
}

pub(crate) fn waits(world: &World, approval: u64) -> bool {
    get(world, "/approvals").as_array().unwrap().iter().any(|it| it["id"] == approval)
}

/// The event by which an approval was answered.
pub(crate) fn answered(world: &World, approval: u64) -> Value {
    until_some("the answer in the journal", || {
        let events = get(world, "/events?after=0&limit=1000");
        let events = events["events"].as_array().unwrap_or_else(|| panic!("{events}")).clone();
        let of = |it: &Value| it["kind"]["approval_answered"]["approval"] == approval;
        events.into_iter().find(of)
    })
}
