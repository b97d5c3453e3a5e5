//! Taking work from agents by signature, by raw requests: claimed files, intents, everything that an agent holds, and several tasks
//! at once.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::own_api::own;
use crate::support::passkeys::{assertion, get};
use crate::support::rules::ALLOW;
use crate::support::signing_desk::SigningDesk;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;

/// An agent of the crew with a claimed file, a lock and an intent.
fn busy(desk: &SigningDesk, agent: &str, file: &str) -> String {
    desk.world.write(file, "def g():\n    return 1\n");
    desk.as_agent(agent, &["claim", "acquire", file]);
    let intent = desk.as_agent(agent, &["intent", "declare", "new parser", "--file", file]);
    desk.as_agent(agent, &["lock", "acquire", &format!("@thing:{agent}")]);
    intent["intent"]["id"].as_str().unwrap_or_else(|| panic!("{intent}")).to_owned()
}

fn error_of(answer: &crate::support::loopback_client::Answer) -> (u16, Value) {
    (answer.status, answer.json()["error"].clone())
}

#[test]
fn a_claimed_file_and_an_intent_of_an_agent_end_by_signature_with_a_reason() {
    let mut desk = SigningDesk::new(ALLOW);
    let intent = busy(&desk, "feat-a", "src/b.py");
    let fence = get(&desk.world, "/claims")[0]["fence"].as_u64().unwrap();
    let claim = json!({ "path": "src/b.py", "force": true, "fence": fence, "reason": "it has gone" });
    // What has no reason, and what is no force, is told before anything is signed.
    let without = |of: &Value, name: &str| {
        let mut of = of.clone();
        of.as_object_mut().unwrap().remove(name);
        of
    };
    let end = json!({ "id": intent, "to": "abandoned", "force": true, "reason": "it has gone" });
    for (verb, arguments) in [
        ("release-claim", without(&claim, "reason")),
        ("release-claim", without(&claim, "force")),
        ("update-intent", without(&end, "reason")),
        ("update-intent", without(&end, "force")),
        ("release-agent", json!({ "agent": "feat-a" })),
    ] {
        let answer = desk.post("/word-challenge", &json!({ "verb": verb, "arguments": arguments }));
        assert_eq!(answer.status, 400, "{verb} {arguments}: {answer:?}");
    }
    // Another grant than the one that was shown is left alone.
    let mut other = claim.clone();
    other["fence"] = json!(fence + 1);
    assert_eq!(error_of(&desk.act("release-claim", &other)), (409, json!("file_held")));
    let asked = desk.challenge("release-claim", &claim);
    let signed = assertion(&mut desk.key, &asked);
    assert_eq!(desk.hand_in(&asked, &signed).status, 200);
    assert_eq!(desk.hand_in(&asked, &signed).status, 410, "a replay");
    assert_eq!(get(&desk.world, "/claims"), json!([]));
    assert_eq!(error_of(&desk.act("release-claim", &claim)), (404, json!("claim_not_found")));
    // An intent can be ended, and not be called done for its agent.
    let mut done = end.clone();
    done["to"] = json!("resolved");
    assert_eq!(desk.act("update-intent", &done).status, 400);
    assert_eq!(desk.act("update-intent", &end).status, 200);
    assert_eq!(get(&desk.world, "/intents"), json!([]));
    assert_eq!(desk.act("update-intent", &end).status, 409, "it is over");
    let journal = get(&desk.world, "/events?after=0").to_string();
    assert!(journal.contains("it has gone") && journal.contains("\"forced\""), "{journal}");
    let verified = desk.world.command(&["journal", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn all_that_an_agent_holds_is_taken_at_once_and_another_agents_stays() {
    let mut desk = SigningDesk::new(ALLOW);
    busy(&desk, "feat-a", "src/b.py");
    busy(&desk, "feat-b", "src/c.py");
    let rows = desk.door.look("/rows/agents").json().to_string();
    assert!(rows.contains("provost agent release feat-a") && rows.contains("release-agent"), "{rows}");
    let answer = desk.act("release-agent", &json!({ "agent": "feat-a", "reason": "it has gone" }));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["said"], "Taken from feat-a: 1 lock, 1 claimed file, 1 intent.");
    let holders = |path: &str, of: &str, who: &str| -> Vec<String> {
        let all = get(&desk.world, path);
        let all = if of.is_empty() { all } else { all[of].clone() };
        all.as_array().unwrap().iter().map(|it| it[who].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(holders("/locks", "locks", "holder"), ["feat-b"]);
    assert_eq!(holders("/claims", "", "holder"), ["feat-b"]);
    assert_eq!(holders("/intents", "", "agent"), ["feat-b"]);
    let again = desk.act("release-agent", &json!({ "agent": "feat-a", "reason": "twice" }));
    assert_eq!(again.json()["said"], "Taken from feat-a: nothing.");
    // At a terminal, the same for the other one.
    let said = at_the_terminal(&desk.world, "agent release feat-b");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(text.contains("taken from feat-b: 1 lock, 1 claimed file, 1 intent"), "{text}");
}

/// A command of an agent that waits; ended when dropped.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn no_agent_takes_from_another_one_and_a_process_without_a_name_below_an_agent_is_none_but_an_agent() {
    let desk = SigningDesk::new(ALLOW);
    let intent = busy(&desk, "feat-a", "src/b.py");
    let mut wait = desk.world.command(&["lock", "acquire", "@thing:feat-a", "--wait", "5m"]);
    let child = wait.env("PROVOST_AGENT", "feat-b").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _waiting = Waiting(child.unwrap());
    let ticket =
        until_some("the one that waits", || get(&desk.world, "/locks")["waiting"][0]["ticket"].as_u64());
    let requests = [
        ("/release-claim", json!({ "path": "src/b.py", "force": true })),
        ("/update-intent", json!({ "id": intent, "to": "abandoned", "force": true })),
        ("/release-agent", json!({ "agent": "feat-a" })),
        ("/unlock", json!({ "symbol": "@thing:feat-a", "force": true })),
        ("/end-wait", json!({ "ticket": ticket })),
    ];
    // This process has run commands as agents, so that it is no person where it leaves its name out.
    for headers in [&[("x-provost-agent", "feat-c")][..], &[("x-provost-agent", "web-page")], &[]] {
        for (path, body) in &requests {
            let (status, answer) = own(&desk.world, ("POST", path), headers, body);
            assert_eq!(status, 403, "{path} {headers:?}: {answer}");
        }
    }
    // Nor does a page, without a signature, or with one that is none.
    let none = json!({ "credential": "", "client_data": "", "authenticator_data": "", "signature": "" });
    let forced = json!({ "path": "src/b.py", "force": true, "reason": "x" });
    for (verb, arguments) in [
        ("release-claim", forced),
        ("update-intent", json!({ "id": intent, "to": "abandoned", "force": true, "reason": "x" })),
        ("release-agent", json!({ "agent": "feat-a", "reason": "x" })),
        ("cancel-tasks", json!({ "tasks": ["none"], "reason": "x" })),
    ] {
        for path in [format!("/{verb}"), format!("/rows/{verb}")] {
            assert_eq!(desk.post(&path, &arguments).status, 405, "{path}");
        }
        let asked = desk.challenge(verb, &arguments);
        assert_eq!(desk.hand_in(&asked, &none).status, 403, "{verb}");
    }
    assert_eq!(get(&desk.world, "/claims").as_array().unwrap().len(), 1);
    assert_eq!(get(&desk.world, "/intents").as_array().unwrap().len(), 1);
    let locks = get(&desk.world, "/locks");
    assert_eq!(
        (locks["locks"].as_array().unwrap().len(), locks["waiting"].as_array().unwrap().len()),
        (1, 1)
    );
}

#[test]
fn several_tasks_end_by_one_signature_and_what_is_over_stays_as_it_is() {
    let mut desk = SigningDesk::new(ALLOW);
    let begin = |goal: &str| {
        let asked = ["delegate", "--worker", "coder", goal, "--json"];
        let output = desk.world.command(&asked).output().unwrap();
        let task: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        task["id"].as_str().or(task["task"].as_str()).unwrap_or_else(|| panic!("{task}")).to_owned()
    };
    let over = begin("true");
    let state = |desk: &SigningDesk, id: &str| get(&desk.world, &format!("/task?id={id}"))["state"].clone();
    until_some("it is over", || (state(&desk, &over) == "completed").then_some(()));
    let (one, other) = (begin("sleep 600"), begin("sleep 601"));
    for tasks in
        [json!([]), json!([one, one]), json!([""]), json!((0..51).map(|n| n.to_string()).collect::<Vec<_>>())]
    {
        let body = json!({ "verb": "cancel-tasks", "arguments": { "tasks": tasks } });
        assert_eq!(desk.post("/word-challenge", &body).status, 400, "{tasks}");
    }
    let all = json!({ "tasks": [one, over, "never-was", other], "reason": "enough" });
    let asked = desk.challenge("cancel-tasks", &all);
    let signed = assertion(&mut desk.key, &asked);
    let answer = desk.hand_in(&asked, &signed);
    let said = answer.json()["said"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("2 tasks are cancelled. Not cancelled: ") && said.contains("never-was: "),
        "{said}"
    );
    assert_eq!(desk.hand_in(&asked, &signed).status, 410, "a replay");
    for id in [&one, &other] {
        assert_eq!(state(&desk, id), "cancelled");
    }
    assert_eq!(state(&desk, &over), "completed");
    let task = get(&desk.world, &format!("/task?id={one}")).to_string();
    assert!(task.contains("enough") && task.contains("user:"), "{task}");
}
