//! Notices to addresses elsewhere: a real daemon, and servers that take what it sends.

mod documented;
mod services;
mod troubles;

use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use provost::base::Secret;
use provost::effects::webhook_signatures;
use serde_json::{Value, json};

use crate::support::receiver::{Heard, Receiver, status};
use crate::support::rules::{ASK, ask, policy};
use crate::support::{Daemon, World, eventually};

/// Of the specification's own example.
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_KEY: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Stores a secret for notices.
fn keep(world: &World, name: &str, value: &str) {
    let file = world.path(&format!("{name}.value"));
    std::fs::write(&file, value).unwrap();
    let mut command = world.command(&["secret", "add", name, "--daemon"]);
    let output = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A world whose delegations wait for an approver, with these entries.
fn world(entries: &str) -> World {
    let world = World::new();
    keep(&world, "hook-key", KEY);
    world.configure(entries);
    world.rule(ASK);
    world
}

/// The entry of a webhook.
fn webhook(name: &str, url: &str, more: &str) -> String {
    format!("[notify.{name}]\ntype = \"webhook\"\nurl = \"{url}\"\nkeys = [\"hook-key\"]\n{more}\n")
}

/// Delegates something that waits for approval.
fn asks(world: &World, daemon: &Daemon, goal: &str) -> String {
    let (task, reply) = world.client(daemon, "orch:a").delegate("shell", goal, json!({}));
    reply.ack();
    task
}

fn said(mut command: Command) -> (i32, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

/// The addresses, as `provost notify list --json` has them.
fn listed(world: &World) -> Vec<Value> {
    let output = world.command(&["notify", "list", "--json"]).output().unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap().as_array().unwrap().clone()
}

fn row(world: &World, name: &str) -> Value {
    listed(world).into_iter().find(|it| it["name"] == name).unwrap()
}

/// Standard Webhooks, "Verifying signatures": what a receiver does that shares no code with us.
fn is_signed(heard: &Heard, key: &str) -> bool {
    let key = BASE64_STANDARD.decode(key.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).unwrap();
    let signed =
        format!("{}.{}.{}", heard.header("webhook-id"), heard.header("webhook-timestamp"), heard.body);
    mac.update(signed.as_bytes());
    let expected = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
    heard.header("webhook-signature").split(' ').any(|it| it == expected)
}

#[test]
fn the_published_example_has_the_published_signature() {
    let sign = |keys: &[&str]| {
        let keys: Vec<Secret> = keys.iter().map(|it| Secret::new(it.as_bytes().to_vec())).collect();
        webhook_signatures(&keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#)
    };
    let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(sign(&[KEY]).unwrap(), expected);
    let two = sign(&[OTHER_KEY, KEY]).unwrap();
    assert!(two.ends_with(&format!(" {expected}")) && two.split(' ').count() == 2, "{two}");
    for wrong in
        ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_abc", "whsec_####", "whsec_MfKQ9r8GKYqrTwjUPD8="]
    {
        let why = sign(&[wrong]).unwrap_err();
        assert!(why.contains("whsec_") && (wrong.len() < 7 || !why.contains(wrong)), "{why}");
    }
    assert!(sign(&[]).unwrap_err().contains("no key"));
}

#[test]
fn a_question_is_sent_signed_with_facts_alone_and_leads_to_exactly_this_question() {
    let receiver = Receiver::tls();
    let url = format!("https://hooks.example:{}/in?channel=a", receiver.port);
    let world = World::new();
    keep(&world, "old-key", OTHER_KEY);
    keep(&world, "hook-key", KEY);
    std::fs::write(world.config_dir().join("ca.pem"), &receiver.authority).unwrap();
    world.configure(&format!(
        "[web]\nenabled = true\nport = 0\n[notify.team]\ntype = \"webhook\"\nurl = \"{url}\"\naddress = \"127.0.0.1\"\n\
         authority = \"ca.pem\"\nkeys = [\"hook-key\", \"old-key\"]\n"
    ));
    world.rule(ASK);
    let daemon = world.start();
    let task = asks(&world, &daemon, "echo the words of an agent");
    let heard = receiver.hears(1).remove(0);
    assert_eq!(heard.line, "POST /in?channel=a HTTP/1.1");
    assert_eq!(heard.header("host"), format!("hooks.example:{}", receiver.port));
    assert_eq!(heard.header("content-type"), "application/json");
    let sent: u64 = heard.header("webhook-timestamp").parse().unwrap();
    assert!(heard.at.abs_diff(sent) <= 5, "receivers take five minutes");
    for key in [KEY, OTHER_KEY] {
        assert!(is_signed(&heard, key), "{heard:?}");
    }
    assert!(!is_signed(&Heard { body: heard.body.replace("shell", "other"), ..heard.clone() }, KEY));
    assert!(heard.body.len() < 20_000 && !heard.body.contains("words of an agent"), "{}", heard.body);
    let body = heard.json();
    assert_eq!(body["type"], "provost.approval.asked");
    let data = &body["data"];
    let facts = &data["approval"];
    assert_eq!(
        (&facts["task"], &facts["worker"], &facts["asker"]),
        (&json!(task), &json!("shell"), &json!("orch:a"))
    );
    assert_eq!((&facts["rule"], &facts["by"]), (&json!("test.ask"), &json!("human")));
    let digest = facts["shown"].as_str().unwrap();
    let link = data["link"].as_str().unwrap();
    assert!(link.starts_with("http://provost.localhost:"), "{link}");
    assert!(link.ends_with(&format!("/a/{}?d={}", facts["approval"], &digest[..6])), "{link}");
    let id = format!("_{}", data["event"]);
    assert!(heard.header("webhook-id").starts_with("evt_") && heard.header("webhook-id").ends_with(&id));
    eventually("it is settled", || row(&world, "team")["owed"] == 0);
    assert_eq!(row(&world, "team")["last"]["delivered"], true);
    assert_eq!(receiver.heard().len(), 1, "once");
}

#[test]
fn words_of_agents_go_along_where_the_entry_says_so_marked_as_such() {
    let receiver = Receiver::plain();
    let world = world(&webhook("full", &receiver.url(), "detail = \"full\""));
    let daemon = world.start();
    asks(&world, &daemon, "echo \u{1b}[2Jthe words \u{202e}of an agent");
    let body = receiver.hears(1).remove(0).json();
    let words = &body["data"]["words"];
    assert!(words["note"].as_str().unwrap().contains("unchecked"));
    assert_eq!(words["texts"]["goal"], "echo \\u{1b}[2Jthe words \\u{202e}of an agent");
    assert!(body["data"]["link"].is_null(), "no page is open");
    assert_eq!(body["data"]["commands"], json!(["provost approval list"]));
}

#[test]
fn a_sample_says_in_words_what_the_address_answers() {
    let receiver = Receiver::plain();
    let world = world(&webhook("team", &receiver.url(), ""));
    let _daemon = world.start();
    let (code, text) = said(world.command(&["notify", "test", "team"]));
    assert_eq!((code, text.as_str()), (0, "team: it has taken the notice (status 200: ok)\n"));
    let sample = receiver.hears(1).remove(0);
    assert_eq!(sample.json()["type"], "provost.sample");
    assert!(is_signed(&sample, KEY));
    for (answer, words) in [
        ("401 Unauthorized", "does not take the notice (status 401: ok)"),
        ("302 Found", "it leads elsewhere (status 302); provost follows no redirect"),
        ("410 Gone", "wants no more notices"),
        ("429 Too Many Requests", "wants fewer notices"),
        ("503 Service Unavailable", "out of order (status 503"),
    ] {
        receiver.be(status(answer));
        let (code, text) = said(world.command(&["notify", "test", "team"]));
        assert!(code != 0 && text.contains(words), "{answer}: {text}");
    }
    assert_eq!(row(&world, "team")["last"]["delivered"], false);
    let (code, text) = said(world.command(&["notify", "test", "nothing"]));
    assert!(code != 0 && text.contains("no address `nothing`"), "{text}");
    let (_, text) = said(world.command(&["status"]));
    assert!(text.contains("notices team") && text.contains("status 503"), "{text}");
    let (_, text) = said(world.command(&["doctor"]));
    assert!(text.contains("provost notify test team"), "{text}");
}

#[test]
fn an_agent_has_no_samples_sent() {
    let receiver = Receiver::plain();
    let world = world(&webhook("team", &receiver.url(), ""));
    let _daemon = world.start();
    let body = json!({ "name": "team" });
    let (code, answer) = crate::support::desk::ask(&world, "coder", "POST /test-notice", &body);
    assert_eq!(code, 403, "{answer}");
    assert!(receiver.heard().is_empty());
}

#[test]
fn entries_that_make_no_sense_are_refused_alone_and_said() {
    let receiver = Receiver::plain();
    let bad = [
        ("a", "type = \"webhook\"\nurl = \"https://x.example/\"", "`keys` is missing"),
        ("b", "type = \"webhook\"\nkeys = [\"hook-key\"]", "`url` is missing"),
        ("c", "type = \"slack\"\nurl = \"http://x.example/\"", "without TLS"),
        ("d", "type = \"slack\"\nurl = \"http://192.168.1.5/\"", "without TLS"),
        ("e", "type = \"slack\"\nurl = \"https://user:pw@x.example/\"", "user or a password"),
        ("f", "type = \"slack\"\nurl = \"https://x.example/a b\"", "characters of an address"),
        ("g", "type = \"slack\"\nurl = \"file:///etc/passwd\"", "must begin with https://"),
        ("h", "type = \"slack\"\nurl = \"https://x.example/\"\nurl_secret = \"s\"", "remove one"),
        ("i", "type = \"pigeon\"\nurl = \"https://x.example/\"", "expected one of"),
        ("j", "url = \"https://x.example/\"", "`type` is missing"),
        ("k", "type = \"slack\"\nurl = \"https://x.example/\"\ndetails = \"full\"", "did you mean `detail`"),
        ("l", "type = \"slack\"\nurl = \"https://x.example/\"\nkinds = []", "`kinds` is empty"),
        ("m", "type = \"slack\"\nurl = \"https://2130706433/\"", "looks like an address"),
        ("n", "type = \"slack\"\nurl = \"https://x.example/\"\nkeys = [\"k\"]", "of no use here"),
        (
            "o",
            "type = \"slack\"\nurl = \"https://x.example/\"\naddress = \"localhost\"",
            "must be an IP address",
        ),
    ];
    let entries: String = bad.iter().map(|(name, text, _)| format!("[notify.{name}]\n{text}\n")).collect();
    let world = world(&format!("{entries}{}", webhook("good", &receiver.url(), "")));
    let daemon = world.start();
    let listed = listed(&world);
    for (name, _, expected) in bad {
        let row = listed.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}: {listed:?}"));
        assert!(row["broken"].as_str().unwrap().contains(expected), "{row}");
    }
    let (_, text) = said(world.command(&["doctor"]));
    assert!(text.contains("notices a") && text.contains("`keys` is missing"), "{text}");
    asks(&world, &daemon, "echo");
    receiver.hears(1);
}

#[test]
fn a_repository_cannot_say_where_notices_go() {
    let receiver = Receiver::plain();
    let world = world("");
    let file = world.repo().join(".provost/provost.toml");
    world.put(&file, &webhook("theirs", &receiver.url(), ""));
    let (code, text) = said(world.command(&["config", "allow", ".provost/provost.toml", "--yes"]));
    assert_eq!(code, 0, "{text}");
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    assert!(listed(&world).is_empty());
    let (_, text) = said(world.command(&["doctor"]));
    assert!(text.contains("may not say where notices go"), "{text}");
}

#[test]
fn no_worker_gets_a_secret_of_notices() {
    let worker = "[workers.w]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nsecrets = [\"hook-key\"]\n";
    let world = world(worker);
    let daemon = world.start();
    let (_, reply) = world.client(&daemon, "orch:a").delegate("w", "env", json!({}));
    let answer = format!("{reply:?}");
    assert!(answer.contains("no worker gets it"), "{answer}");
    // And none of a worker's is sent.
    let (file, receiver) = (world.path("v"), Receiver::plain());
    std::fs::write(&file, KEY).unwrap();
    let mut add = world.command(&["secret", "add", "workers-own", "--env", "TOKEN"]);
    assert!(add.stdin(std::fs::File::open(&file).unwrap()).status().unwrap().success());
    world.configure(&webhook("team", &receiver.url(), "").replace("hook-key", "workers-own"));
    assert_eq!(said(world.command(&["daemon", "reload"])).0, 0);
    let (code, text) = said(world.command(&["notify", "test", "team"]));
    assert!(code != 0 && text.contains("is for workers"), "{text}");
    assert!(receiver.heard().is_empty());
}

#[test]
fn a_question_that_is_asked_again_is_told_again_over_a_kill_and_the_journal_holds() {
    let receiver = Receiver::plain();
    let world = world(&webhook("team", &receiver.url(), "kinds = [\"approval\", \"answered\"]"));
    let lines = ["when.action = [\"delegate\"]", "approve.ask_again = 2"];
    world.rule(&policy([ask("\"human\"", &lines)]).replace("\"5m\"", "\"2s\""));
    let mut daemon = world.start();
    asks(&world, &daemon, "echo");
    receiver.hears(1);
    daemon.kill();
    let daemon = world.start();
    // What a killed daemon had not noted as delivered comes once more, under the same id.
    let each_once = || {
        let mut ids = std::collections::BTreeSet::new();
        let heard = receiver.heard();
        heard.into_iter().filter(|it| ids.insert(it.header("webhook-id").to_owned())).collect::<Vec<_>>()
    };
    eventually("four events", || each_once().len() >= 4);
    let heard = each_once();
    let types: Vec<Value> = heard.iter().map(|it| it.json()["type"].clone()).collect();
    let expected =
        ["asked", "asked_again", "asked_again", "expired"].map(|it| json!(format!("provost.approval.{it}")));
    assert_eq!(types, expected);
    let shown: Vec<Value> = heard.iter().map(|it| it.json()["data"]["approval"]["shown"].clone()).collect();
    assert!(shown.iter().all(|it| *it == shown[0]), "{shown:?}");
    daemon.stop();
    let (code, text) = said(world.command(&["journal", "verify"]));
    assert_eq!(code, 0, "{text}");
}
