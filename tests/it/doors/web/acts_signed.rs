//! A person's acts over the page's door, by raw requests: messages, answers, delegated work, applies, undos and ends of waits count
//! with a signature over exactly that, once, for this repository, and with nothing less.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::OPEN;
use crate::support::World;
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::passkeys::{asks, assertion, get, rules_by};
use crate::support::rules::{ALLOW, allow, ask, policy};
use crate::support::signing_desk::SigningDesk as Desk;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;

const OWN: (&str, &str) = ("Host", "provost.localhost:PORT");
const PAGE: (&str, &str) = ("Origin", "http://provost.localhost:PORT");
const IS_JSON: (&str, &str) = ("Content-Type", "application/json");

trait Sees {
    fn posts(&self) -> Vec<Value>;
    fn done(&self, script: &str) -> String;
}

impl Sees for Desk {
    fn posts(&self) -> Vec<Value> {
        get(&self.world, "/posts?limit=50")["posts"].as_array().unwrap().clone()
    }

    fn done(&self, script: &str) -> String {
        let asked = ["delegate", "--worker", "coder", script, "--wait", "--json"];
        let done = self.world.command(&asked).output().unwrap();
        let task: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        task["id"].as_str().unwrap().to_owned()
    }
}

/// Each new verb with arguments of its own.
fn each() -> [(&'static str, Value); 7] {
    [
        ("message-agents", json!({ "to": ["feat-a"], "text": "stop" })),
        ("answer-question", json!({ "question": 1, "text": "yes" })),
        ("end-wait", json!({ "ticket": 1, "reason": "no" })),
        ("discard-task", json!({ "task": "none" })),
        ("apply-task", json!({ "task": "none", "seen": "x" })),
        ("undo", json!({ "apply": 1, "seen": "x" })),
        (
            "delegate",
            json!({ "task": "t-1", "goal": "true", "worker": "shell",
                    "rules": { "digest": "x", "decision": "allow", "rule": "test.all" } }),
        ),
    ]
}

#[test]
fn no_page_and_no_process_does_any_of_it_without_a_signature() {
    let desk = Desk::new(ALLOW);
    let none = json!({ "credential": "", "client_data": "", "authenticator_data": "", "signature": "" });
    let other = World::new();
    other.configure(OPEN);
    other.rule(ALLOW);
    let _other_daemon = other.start();
    let elsewhere = Http::web(&other);
    let before = desk.posts().len();
    for (verb, arguments) in each() {
        // No address of the page's takes the verb itself.
        for path in [format!("/{verb}"), format!("/rows/{verb}")] {
            assert_eq!(desk.post(&path, &arguments).status, 405, "{path}");
        }
        let asked = desk.challenge(verb, &arguments);
        assert_eq!(desk.hand_in(&asked, &none).status, 403, "{verb}: no signature");
        // One process has ten signatures looked at in a minute.
        if verb == "message-agents" {
            assert_eq!(desk.hand_in(&asked, &none).status, 410, "its challenge was used up");
        }
        // What another repository's daemon asks for is nothing here.
        let headers = [OWN, PAGE, IS_JSON];
        let body = json!({ "verb": verb, "arguments": arguments }).to_string();
        let asked = elsewhere.bare("POST /word-challenge", &headers, body.as_bytes());
        assert_eq!(asked.status, 200, "{asked:?}");
    }
    assert_eq!(desk.posts().len(), before);
    assert!(get(&desk.world, "/tasks")["active"].as_array().unwrap().is_empty());
}

#[test]
fn a_signature_for_one_repository_is_none_for_another() {
    let mut desk = Desk::new(ALLOW);
    let other = World::new();
    other.configure(OPEN);
    other.rule(ALLOW);
    let _daemon = other.start();
    let elsewhere = Http::web(&other);
    let message = json!({ "to": ["feat-a"], "text": "stop" });
    let body = json!({ "verb": "message-agents", "arguments": message }).to_string();
    let asked = elsewhere.bare("POST /word-challenge", &[OWN, PAGE, IS_JSON], body.as_bytes()).json();
    let signed = assertion(&mut desk.key, &asked);
    assert_eq!(desk.hand_in(&asked, &signed).status, 410, "this daemon has not asked for it");
    let own = desk.challenge("message-agents", &message);
    assert_eq!(desk.hand_in(&own, &signed).status, 403, "the same words, for another daemon");
    assert!(desk.posts().is_empty());
}

#[test]
fn a_person_writes_to_agents_and_answers_questions_and_is_shown_as_one() {
    let mut desk = Desk::new(ALLOW);
    let question = json!({ "kind": "question", "text": "tabs or spaces?" });
    let (status, sent) =
        own(&desk.world, ("POST", "/send-message"), &[("x-provost-agent", "feat-q")], &question);
    assert_eq!(status, 200, "{sent}");
    let both = json!({ "to": ["feat-a", "feat-b"], "text": "<b>wait</b> \u{1b}[31m for each other" });
    let first = desk.challenge("message-agents", &both);
    let signed = assertion(&mut desk.key, &first);
    let answer = desk.hand_in(&first, &signed);
    assert_eq!((answer.status, answer.json()["said"].clone()), (200, json!("Sent to feat-a and feat-b.")));
    assert_eq!(desk.hand_in(&first, &signed).status, 410, "a replay");
    let said = desk.posts();
    let to: Vec<&str> =
        said.iter().filter(|it| it["kind"] == "feedback").filter_map(|it| it["to"].as_str()).collect();
    assert_eq!(to, ["feat-b", "feat-a"], "newest first: {said:?}");
    assert!(said.iter().filter(|it| it["kind"] == "feedback").all(|it| it["proof"] == "passkey"));
    // The page shows a person, as text.
    let rows = desk.door.look("/rows/messages").json().to_string();
    assert!(rows.contains("a person") && rows.contains("<b>wait</b>") && !rows.contains('\u{1b}'), "{rows}");
    let number = get(&desk.world, "/questions")[0]["seq"].as_u64().unwrap();
    let answer = desk.act("answer-question", &json!({ "question": number, "text": "spaces" }));
    assert_eq!(
        (answer.status, answer.json()["said"].clone()),
        (200, json!("feat-q has the answer.")),
        "{answer:?}"
    );
    assert_eq!(get(&desk.world, "/questions"), json!([]));
    let again = desk.act("answer-question", &json!({ "question": number, "text": "tabs" }));
    assert_eq!((again.status, again.json()["error"].clone()), (404, json!("question_not_found")));
    // What cannot be sent is told before it is signed.
    for (arguments, says) in [
        (json!({ "to": [], "text": "x" }), "1 to 64 agents"),
        (json!({ "to": ["a", "a"], "text": "x" }), "once"),
        (json!({ "to": ["a"], "text": " " }), "text is empty"),
        (json!({ "to": (0..65).map(|n| format!("a{n}")).collect::<Vec<_>>(), "text": "x" }), "1 to 64"),
    ] {
        let answer =
            desk.post("/word-challenge", &json!({ "verb": "message-agents", "arguments": arguments }));
        assert!(
            answer.status == 400 && answer.json()["message"].as_str().unwrap().contains(says),
            "{answer:?}"
        );
    }
}

/// Returns the rules' answer that the page shows, as it is signed.
fn rules_of(desk: &Desk, worker: &str) -> Value {
    let said = desk.door.look(&format!("/rows/would-delegate?worker={worker}")).json();
    let outcome = &said["outcome"];
    json!({ "digest": said["digest"], "decision": outcome["decision"], "rule": outcome["rule"] })
}

#[test]
fn work_is_handed_out_as_the_rules_were_shown_and_not_after_they_changed() {
    let passkey = ["when.action = [\"delegate\"]", "when.proof = [\"passkey\"]"];
    let mut desk = Desk::new(&policy([allow("person", &passkey)]));
    let rules = rules_of(&desk, "coder");
    assert_eq!((&rules["decision"], &rules["rule"]), (&json!("allow"), &json!("test.person")), "{rules}");
    let work = |task: &str, rules: &Value| json!({ "task": task, "goal": "true", "worker": "coder", "timeout_s": 60, "rules": rules });
    let first = desk.challenge("delegate", &work("by-page-1", &rules));
    let signed = assertion(&mut desk.key, &first);
    let answer = desk.hand_in(&first, &signed);
    assert_eq!((answer.status, answer.json()["task"].clone()), (200, json!("by-page-1")), "{answer:?}");
    assert_eq!(desk.hand_in(&first, &signed).status, 410, "a replay");
    let task = get(&desk.world, "/task?id=by-page-1");
    assert!(task["asked_by"].as_str().unwrap().starts_with("user:"), "{task}");
    // A process of this user is no person by it: the rule is for the proof.
    let plain = json!({ "goal": "true", "worker": "coder" });
    let (_, denied) = own(&desk.world, ("POST", "/delegate"), &[], &plain);
    assert_eq!(denied["state"], "denied", "{denied}");
    // What was shown is not what counts now.
    desk.world.rule(&policy([ask("\"passkey\"", &passkey)]));
    let reloaded = desk.world.command(&["daemon", "reload"]).output().unwrap();
    assert!(reloaded.status.success(), "{reloaded:?}");
    let answer = desk.act("delegate", &work("by-page-2", &rules));
    assert_eq!((answer.status, answer.json()["error"].clone()), (409, json!("rules_changed")), "{answer:?}");
    let now = rules_of(&desk, "coder");
    assert_eq!(now["decision"], "approve", "{now}");
    let answer = desk.act("delegate", &work("by-page-3", &now));
    let said = answer.json();
    assert_eq!(
        (answer.status, said["said"].as_str()),
        (200, Some("Task by-page-3 waits for approval 1.")),
        "{said}"
    );
    assert_eq!(own(&desk.world, ("GET", "/task?id=by-page-2"), &[], &json!({})).0, 404);
    // One without the rules' answer, and one of no goal.
    for arguments in [json!({ "goal": "x", "worker": "coder" }), work("by-page-4", &Value::Null), {
        json!({ "goal": " ", "worker": "coder", "rules": now })
    }] {
        let answer = desk.post("/word-challenge", &json!({ "verb": "delegate", "arguments": arguments }));
        assert_eq!(answer.status, 400, "{arguments}: {answer:?}");
    }
}

/// Returns the changes that would be written, as the page gets them.
fn would(desk: &Desk, query: &str) -> Value {
    let answer = desk.door.look(&format!("/rows/would-write?{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Agent `agent-a` takes the file that the run has changed, or gives it back.
fn lock(world: &World, does: &str) {
    let output = world.command(&["lock", does, "src/a.py"]).env("PROVOST_AGENT", "agent-a").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_is_written_and_brought_back_is_what_was_shown() {
    let both = ["when.action = [\"delegate\", \"apply\"]"];
    let mut desk = Desk::new(&policy([allow("both", &both)]));
    let task = desk.done("sed -i 's/return 1/return 2/' src/a.py");
    let read = |desk: &Desk| std::fs::read_to_string(desk.world.repo().join("src/a.py")).unwrap();
    let seen = would(&desk, &format!("task={task}"));
    assert!(seen["view"].as_str().unwrap().contains("return 2"), "{seen}");
    // Another agent takes the file after it was shown.
    lock(&desk.world, "acquire");
    let apply = |seen: &Value| json!({ "task": task, "seen": seen["view_digest"] });
    let answer = desk.act("apply-task", &apply(&seen));
    assert_eq!((answer.status, answer.json()["error"].clone()), (409, json!("apply_changed")), "{answer:?}");
    assert!(read(&desk).contains("return 1"), "nothing was written");
    lock(&desk.world, "release");
    let seen = would(&desk, &format!("task={task}"));
    let asked = desk.challenge("apply-task", &apply(&seen));
    let signed = assertion(&mut desk.key, &asked);
    let answer = desk.hand_in(&asked, &signed);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        answer.json()["said"].as_str().unwrap().starts_with("Written: 1 file; this was apply "),
        "{answer:?}"
    );
    assert!(read(&desk).contains("return 2"));
    assert_eq!(desk.hand_in(&asked, &signed).status, 410, "a replay");
    // It is among what its task has written, and comes back as it is shown.
    let number = get(&desk.world, "/applies")[0]["apply"].as_u64().unwrap();
    let shown = desk.door.look(&format!("/rows/task?id={task}")).json().to_string();
    assert!(shown.contains("Written into your files (1)"), "{shown}");
    let back = would(&desk, &format!("apply={number}"));
    assert!(back["view"].as_str().unwrap().contains("return 1"), "{back}");
    let missing = desk.post("/word-challenge", &json!({ "verb": "undo", "arguments": { "apply": number } }));
    assert_eq!(missing.status, 400, "{missing:?}");
    let answer = desk.act("undo", &json!({ "apply": number, "force": true, "seen": back["view_digest"] }));
    assert!(answer.status == 200 || answer.status == 409, "{answer:?}");
    let back = would(&desk, &format!("apply={number}"));
    if read(&desk).contains("return 2") {
        let answer = desk.act("undo", &json!({ "apply": number, "seen": back["view_digest"] }));
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert!(read(&desk).contains("return 1"), "{}", read(&desk));
    // Discarded, for good.
    let other = desk.done("echo y > y.py");
    let answer = desk.act("discard-task", &json!({ "task": other }));
    assert_eq!(
        (answer.status, answer.json()["said"].clone()),
        (200, json!("The changes in 1 file are discarded."))
    );
    assert_eq!(desk.door.look(&format!("/rows/would-write?task={other}")).status, 410);
    let verified = desk.world.command(&["journal", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn what_another_agent_has_locked_can_be_read_with_who_holds_it() {
    let both = ["when.action = [\"delegate\", \"apply\"]"];
    let mut desk = Desk::new(&policy([allow("both", &both)]));
    let task = desk.done("sed -i 's/return 1/return 2/' src/a.py; echo z > z.py");
    let lock = ["lock", "acquire", "src/a.py", "--reason", "mine"];
    let held = desk.world.command(&lock).env("PROVOST_AGENT", "agent-a").output().unwrap();
    assert!(held.status.success(), "{held:?}");
    let shown = desk.door.look(&format!("/rows/changes?id={task}")).json();
    let files = shown["blocks"][0]["files"].as_array().unwrap().clone();
    let of =
        |path: &str| files.iter().find(|it| it["path"].as_str().unwrap().starts_with(path)).unwrap().clone();
    let kept = of("src/a.py");
    assert!(kept["path"].as_str().unwrap().contains("agent-a"), "{kept}");
    assert!(kept["lines"].to_string().contains("return 2"), "{kept}");
    let seen = would(&desk, &format!("task={task}"));
    let view = seen["view"].as_str().unwrap();
    assert!(
        view.contains("Not written: src/a.py") && view.contains("agent-a") && view.contains("z.py"),
        "{view}"
    );
    let answer = desk.act("apply-task", &json!({ "task": task, "seen": seen["view_digest"] }));
    assert!(
        answer.status == 200 && answer.json()["said"].as_str().unwrap().contains("agent-a"),
        "{answer:?}"
    );
    let now = std::fs::read_to_string(desk.world.repo().join("src/a.py")).unwrap();
    assert!(now.contains("return 1"), "{now}");
    assert!(desk.world.repo().join("z.py").exists());
}

/// An agent that waits for a lock.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn a_wait_ends_by_a_signed_word_with_a_reason_and_by_no_agents() {
    let mut desk = Desk::new(ALLOW);
    let lock = ["lock", "acquire", "src/a.py", "--reason", "mine"];
    let held = desk.world.command(&lock).env("PROVOST_AGENT", "agent-a").output().unwrap();
    assert!(held.status.success(), "{held:?}");
    let mut waits = desk.world.command(&["lock", "acquire", "src/a.py", "--wait", "5m"]);
    let waits = waits.env("PROVOST_AGENT", "agent-b").stdout(Stdio::null()).stderr(Stdio::null());
    let mut waiting = Waiting(waits.spawn().unwrap());
    let ticket = until_some("the wait", || get(&desk.world, "/waits")["waits"][0]["ticket"].as_u64());
    let (status, refused) = own(
        &desk.world,
        ("POST", "/end-wait"),
        &[("x-provost-agent", "agent-c")],
        &json!({ "ticket": ticket }),
    );
    assert_eq!(status, 403, "{refused}");
    let bare =
        desk.post("/word-challenge", &json!({ "verb": "end-wait", "arguments": { "ticket": ticket } }));
    assert!(bare.status == 400 && bare.json()["message"].as_str().unwrap().contains("reason"), "{bare:?}");
    let rows = desk.door.look("/rows/waits").json().to_string();
    assert!(
        rows.contains("Message both") && rows.contains("end-wait") && rows.contains("\"unlock\""),
        "{rows}"
    );
    let answer = desk.act("end-wait", &json!({ "ticket": ticket, "reason": "it stands still" }));
    assert_eq!(
        (answer.status, answer.json()["said"].as_str().unwrap().contains("agent-b")),
        (200, true),
        "{answer:?}"
    );
    let ended = until_some("the end of the one that waits", || waiting.0.try_wait().unwrap());
    assert_eq!(ended.code(), Some(5), "it is refused the lock");
    let again = desk.act("end-wait", &json!({ "ticket": ticket, "reason": "twice" }));
    assert_eq!((again.status, again.json()["error"].clone()), (404, json!("wait_not_found")));
    drop(desk.daemon);
}

#[test]
fn an_approval_that_is_answered_says_at_a_terminal_who_has_answered_it_when_and_how() {
    let mut desk = Desk::new(&rules_by("\"passkey\""));
    let approval = asks(&desk.world, "true");
    let asked =
        desk.post("/word-challenge", &json!({ "approval": approval, "grant": false, "note": "no" })).json();
    let signed = assertion(&mut desk.key, &asked);
    assert_eq!(desk.hand_in(&asked, &signed).status, 200);
    let late = desk.world.command(&["approve", &approval.to_string()]).output().unwrap();
    let text = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(!late.status.success(), "{late:?}");
    for part in ["denied (proof: passkey, phone), by user:", ", at 20"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let never = desk.world.command(&["approve", "4711"]).output().unwrap();
    assert!(String::from_utf8_lossy(&never.stderr).contains("never existed"), "{never:?}");
}

#[test]
fn what_the_daemon_has_to_say_of_itself_is_said_once_in_the_view_of_its_health() {
    let desk = Desk::new(ALLOW);
    let reset = at_the_terminal(&desk.world, "passkey reset --yes");
    assert!(reset.status.success(), "{reset:?}");
    let note = get(&desk.world, "/about")["notes"][0].as_str().unwrap().to_owned();
    assert!(note.starts_with("all passkeys were given up"), "{note}");
    let view = desk.door.look("/rows/health").json().to_string();
    assert_eq!(view.matches(&note).count(), 1, "{note}: {view}");
    let needs = desk.door.look("/rows/needs-you").json().to_string();
    assert!(needs.contains(&note), "{needs}");
}
