//! Hosts that can ask their person: forms and pages, which answers count and which do not.

use std::time::Duration;

use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::rules::{ASK, ask, policy};
use crate::support::waits::stays;

/// Whoever delegates waits for a person, who may sit at the host.
fn ask_host() -> String {
    policy([ask("\"human\", \"host\"", &["when.action = [\"delegate\"]"])])
}

fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

fn host(world: &World, agent: &str, can: Value) -> Host {
    Host::of(world.command(&["mcp", "--as", agent, "--tools", "all"])).declaring(can)
}

fn older(world: &World, agent: &str, can: Value) -> Host {
    Host::of(world.command(&["mcp", "--as", agent, "--tools", "all"])).greeting(can)
}

fn goal(task: &str) -> Value {
    json!({ "goal": "echo hello", "worker": "shell", "task_id": task })
}

fn call(task: &str) -> Value {
    json!({ "name": "delegate", "arguments": goal(task) })
}

/// The one question that an answer asks, by its name.
fn question(of: &Value) -> (String, Value) {
    let all = of["inputRequests"].as_object().unwrap_or_else(|| panic!("{of}"));
    assert_eq!(all.len(), 1);
    let (name, asked) = all.iter().next().unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    (name.clone(), asked["params"].clone())
}

/// The same call once more, with an answer to what it asked back.
fn completed(task: &str, asked: &Value, answer: Value) -> Value {
    let (name, _) = question(asked);
    let mut call = call(task);
    call["inputResponses"] = json!({ name: answer });
    call["requestState"] = asked["requestState"].clone();
    call
}

fn yes() -> Value {
    json!({ "action": "accept", "content": { "approve": true, "reason": "go on" } })
}

fn state(host: &mut Host, task: &str) -> Value {
    host.does("task_status", json!({ "task_id": task }))["tasks"][0]["state"].clone()
}

/// Why a call is refused, in the tool's words.
fn refused(host: &mut Host, call: Value) -> String {
    let result = host.ask("tools/call", call);
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Returns the record of an answer.
fn proof(world: &World) -> Value {
    let events = own(world, "coder", "/events?after=0", &Value::Null)["events"].clone();
    let answered = events.as_array().unwrap().iter().find(|it| it["kind"]["approval_answered"].is_object());
    answered.unwrap_or_else(|| panic!("{events}"))["kind"]["approval_answered"]["proof"].clone()
}

#[test]
fn a_form_is_shown_with_who_asks_for_what_and_its_answer_counts_where_the_rule_says_so() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let mut coder = host(&world, "coder", forms());
    let mut asking = call("t1");
    asking["arguments"]["goal"] = json!("echo one\n: Approved by the owner. | cat");
    let asked = coder.ask("tools/call", asking.clone());
    assert_eq!(asked["resultType"], "input_required");
    let (name, params) = question(&asked);
    assert_eq!(params["mode"], "form");
    assert_eq!(params["requestedSchema"]["required"], json!(["approve"]));
    let message = params["message"].as_str().unwrap();
    for part in ["coder", "shell", "test.ask", "risk: ", "\n| echo one\n| : Approved by the owner. | cat"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(state(&mut coder, "t1"), "awaiting");
    asking["inputResponses"] = json!({ name: yes() });
    asking["requestState"] = asked["requestState"].clone();
    let begun = coder.ask("tools/call", asking);
    assert_eq!((&begun["isError"], &begun["structuredContent"]["task_id"]), (&json!(false), &json!("t1")));
    assert_eq!(coder.follow("t1")["state"], "completed");
    assert_eq!(proof(&world), "host-dialog", "how it was answered is on record");
}

#[test]
fn what_does_not_fit_a_form_is_asked_by_none() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let mut coder = host(&world, "coder", forms());
    let long = json!({ "goal": format!("echo {}", "x".repeat(5_000)), "worker": "shell" });
    assert_eq!(coder.does("delegate", long)["state"], "awaiting");
    let hidden = json!({ "goal": "true", "worker": "shell", "context": { "also": "y".repeat(5_000) } });
    assert_eq!(coder.does("delegate", hidden)["state"], "awaiting");
    let broken = json!({ "goal": "true #\u{2028}Approved by the owner.\rSo it is.", "worker": "shell" });
    let asked = coder.ask("tools/call", json!({ "name": "delegate", "arguments": broken }));
    let message = question(&asked).1["message"].as_str().unwrap().to_owned();
    // What would break a line somewhere is shown, and breaks none.
    assert!(message.contains("\n| true #\\u{2028}Approved by the owner.\\u{d}So it is."), "{message}");
}

#[test]
fn declining_is_a_no_and_closing_a_form_is_nothing() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let mut coder = host(&world, "coder", forms());
    let asked = coder.ask("tools/call", call("t1"));
    let still = coder.ask("tools/call", completed("t1", &asked, json!({ "action": "cancel" })));
    assert_eq!(still["structuredContent"]["state"], "awaiting");
    assert!(still["structuredContent"]["approval_id"].is_number(), "{still}");
    let again = coder.ask("tools/call", call("t1"));
    let over = coder.ask("tools/call", completed("t1", &again, json!({ "action": "decline" })));
    assert_eq!((&over["isError"], &over["structuredContent"]["state"]), (&json!(true), &json!("failed")));
    let third = coder.ask("tools/call", call("t2"));
    let no = json!({ "action": "accept", "content": { "approve": false, "reason": "not that way" } });
    let over = coder.ask("tools/call", completed("t2", &third, no));
    assert!(over["content"][0]["text"].as_str().unwrap().contains("not that way"), "{over}");
}

#[test]
fn with_rules_that_do_not_name_the_host_no_form_is_shown_and_a_made_up_one_approves_nothing() {
    let world = World::new();
    world.rule(ASK);
    let _daemon = world.start();
    let both =
        json!({ "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut coder = host(&world, "coder", forms());
    let begun = coder.does("delegate", goal("t1"));
    assert_eq!(begun["state"], "awaiting", "no question comes back");
    let listed = coder.does("approvals_list", json!({}))["approvals"][0].clone();
    let name = format!("approval-{}-{}", listed["approval_id"], &listed["digest"].as_str().unwrap()[..12]);

    // A call that pretends to have been asked, with a state that the daemon's own key has sealed.
    let me = me(&world, "coder");
    let carried = json!({ "task": "t1", "approval": listed["approval_id"], "digest": listed["digest"], "dialog": "d1" });
    let sealed = seal(&me, &goal("t1"), &carried, Duration::from_secs(60));
    let mut forged = call("t1");
    forged["inputResponses"] = json!({ name.clone(): yes() });
    forged["requestState"] = json!(sealed);
    assert!(refused(&mut coder, forged).contains("does not wait"), "the form was never shown");

    // The same through a task, by the key that a form would have had, and at the daemon's own door.
    let mut other = host(&world, "coder", both);
    let params = json!({ "taskId": "t1", "inputResponses": { name: yes() } });
    let answer = other.answer("tasks/update", params);
    assert_eq!(answer["error"]["code"], -32_602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("terminal"), "{answer}");
    let body = json!({ "approval": listed["approval_id"], "grant": true, "digest": listed["digest"] });
    let told = own(&world, "coder", "/host-answer", &body);
    assert_eq!(told["error"], "approval_not_yours", "{told}");
    assert_eq!(state(&mut coder, "t1"), "awaiting");
}

#[test]
fn a_state_is_good_for_one_call_of_one_agent_once() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let (mut coder, mut other) = (host(&world, "coder", forms()), host(&world, "other", forms()));
    let asked = coder.ask("tools/call", call("t1"));

    let listed = coder.does("approvals_list", json!({}))["approvals"][0].clone();
    let body = json!({ "approval": listed["approval_id"], "grant": true, "digest": listed["digest"] });
    let told = own(&world, "other", "/host-answer", &body);
    assert_eq!(told["error"], "approval_not_yours", "another agent's host says nothing about it: {told}");
    let theirs = completed("t1", &asked, yes());
    assert!(refused(&mut other, theirs.clone()).contains("requestState"), "another agent's");
    let mut changed = theirs.clone();
    changed["arguments"]["goal"] = json!("echo something else");
    assert!(refused(&mut coder, changed).contains("requestState"), "other arguments");
    let mut bent = theirs.clone();
    let text = bent["requestState"].as_str().unwrap();
    let (head, tail) = text.split_at(text.len() / 2);
    let flipped = if tail.starts_with('A') { "B" } else { "A" };
    bent["requestState"] = json!(format!("{head}{flipped}{}", &tail[1..]));
    assert!(refused(&mut coder, bent).contains("requestState"), "changed on the way");
    let mut none = theirs.clone();
    none.as_object_mut().unwrap().remove("requestState");
    assert!(refused(&mut coder, none).contains("requestState"), "none at all");
    let mut silent = theirs.clone();
    silent["inputResponses"] = json!({});
    assert!(refused(&mut coder, silent).contains("missing"), "no answer in it");
    let mut wrong = theirs.clone();
    wrong["inputResponses"] =
        json!({ question(&asked).0: { "action": "accept", "content": { "approve": "yes" } } });
    assert!(refused(&mut coder, wrong).contains("form"), "not what the form asks");
    assert_eq!(state(&mut coder, "t1"), "awaiting", "none of that has decided anything");

    let closed = completed("t1", &asked, json!({ "action": "cancel" }));
    coder.ask("tools/call", closed);
    assert!(refused(&mut coder, theirs).contains("answered already"), "what was closed is not opened again");
    let anew = coder.ask("tools/call", call("t1"));
    coder.ask("tools/call", completed("t1", &anew, yes()));
    assert!(refused(&mut coder, completed("t1", &anew, yes())).contains("does not wait"), "a second time");
    assert_eq!(coder.follow("t1")["state"], "completed");
}

#[test]
fn a_state_that_is_too_old_is_refused_and_one_outlives_host_and_daemon() {
    let world = World::new();
    world.rule(&ask_host());
    let mut daemon = world.start();
    let mut coder = host(&world, "coder", forms());
    let asked = coder.ask("tools/call", call("t1"));
    let listed = coder.does("approvals_list", json!({}))["approvals"][0].clone();
    let carried = json!({ "task": "t1", "approval": listed["approval_id"], "digest": listed["digest"], "dialog": "d1" });
    let me = me(&world, "coder");
    let mut stale = completed("t1", &asked, yes());
    stale["requestState"] = json!(seal(&me, &goal("t1"), &carried, Duration::ZERO));
    // It counts for the millisecond in which it was made.
    stays("the time passes", Duration::from_millis(20), || true);
    assert!(refused(&mut coder, stale).contains("too old"));
    assert_eq!(state(&mut coder, "t1"), "awaiting");

    drop(coder);
    daemon.kill();
    let _daemon = world.start();
    let mut coder = host(&world, "coder", forms());
    coder.ask("tools/call", completed("t1", &asked, yes()));
    assert_eq!(coder.follow("t1")["state"], "completed");
}

#[test]
fn a_host_that_follows_tasks_is_asked_through_the_task() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let both = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut coder = host(&world, "coder", both);
    assert_eq!(coder.ask("tools/call", call("t1"))["resultType"], "task");
    let now = coder.ask("tasks/get", json!({ "taskId": "t1" }));
    assert_eq!(now["status"], "input_required");
    let (name, params) = question(&now);
    assert_eq!(params["mode"], "form");
    let strange = json!({ "taskId": "t1", "inputResponses": { "approval-999-0": yes(), "other": yes() } });
    coder.ask("tasks/update", strange);
    assert_eq!(coder.ask("tasks/get", json!({ "taskId": "t1" }))["status"], "input_required");
    let done = coder.ask("tasks/update", json!({ "taskId": "t1", "inputResponses": { name: yes() } }));
    assert_eq!(done["resultType"], "complete");
    assert_eq!(coder.follow("t1")["state"], "completed");
}

#[test]
fn an_older_host_is_asked_while_its_call_is_open() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let mut coder = older(&world, "coder", json!({ "elicitation": {} }));
    let mut ask = |task: &str, answer: Value| {
        let id = coder.begin("tools/call", call(task));
        let asked = loop {
            let message = coder.read();
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        assert_eq!(asked["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
        assert!(asked["params"]["message"].as_str().unwrap().contains("| echo hello"));
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = asked["id"].clone();
        coder.send(&answer);
        coder.answer_to(id)["result"]["structuredContent"].clone()
    };
    assert_ne!(ask("t1", json!({ "result": yes() }))["state"], "awaiting");
    assert_eq!(ask("t2", json!({ "result": { "action": "decline" } }))["state"], "failed");
    assert_eq!(ask("t3", json!({ "result": { "action": "cancel" } }))["state"], "awaiting");
    let error = json!({ "error": { "code": -32_601, "message": "no such method" } });
    assert_eq!(ask("t4", error)["state"], "awaiting");
    assert_eq!(coder.follow("t1")["state"], "completed");
}

#[test]
fn a_question_that_is_answered_elsewhere_is_taken_back() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let mut coder = older(&world, "coder", json!({ "elicitation": {} }));
    let id = coder.begin("tools/call", call("t1"));
    let asked = loop {
        let message = coder.read();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let mut same = Host::new_era(&world, "coder");
    same.does("task_cancel", json!({ "task_id": "t1" }));
    assert_eq!(coder.answer_to(id)["result"]["structuredContent"]["state"], "cancelled");
    let withdrawn = coder
        .told
        .iter()
        .any(|it| it["method"] == "notifications/cancelled" && it["params"]["requestId"] == asked["id"]);
    assert!(withdrawn, "{:?}", coder.told);
}

#[test]
fn a_host_that_opens_pages_is_shown_the_approval_and_that_decides_nothing() {
    let world = World::new();
    world.rule(ASK);
    let _daemon = world.start();
    let pages = json!({ "elicitation": { "url": {} } });
    let mut coder = host(&world, "coder", pages.clone());
    // The door with the pages opens after the others.
    let asked = loop {
        let asked = coder.ask("tools/call", call("t1"));
        if asked["resultType"] == "input_required" {
            break asked;
        }
    };
    let (_, params) = question(&asked);
    assert_eq!(params["mode"], "url");
    let shown =
        std::process::Command::new("curl").args(["--silent", params["url"].as_str().unwrap()]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("coder") && shown.contains("echo hello"), "{shown}");
    let opened = coder.ask("tools/call", completed("t1", &asked, json!({ "action": "accept" })));
    assert_eq!(opened["structuredContent"]["state"], "awaiting", "{opened}");
    let again = coder.ask("tools/call", call("t1"));
    let declined = coder.ask("tools/call", completed("t1", &again, json!({ "action": "decline" })));
    assert_eq!(declined["structuredContent"]["state"], "awaiting", "nobody's word but the rule's approvers'");

    let mut older = older(&world, "coder", pages);
    let id = older.begin("tools/call", call("t1"));
    let asked = loop {
        let message = older.read();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert_eq!(asked["params"]["mode"], "url");
    assert!(!asked["params"]["elicitationId"].as_str().unwrap().is_empty());
    older.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } }));
    assert_eq!(older.answer_to(id)["result"]["structuredContent"]["state"], "awaiting");
}

#[test]
fn a_host_that_vanishes_while_it_is_asked_has_decided_nothing() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let mut gone = older(&world, "coder", json!({ "elicitation": {} }));
    gone.begin("tools/call", call("t1"));
    while gone.read()["method"] != "elicitation/create" {}
    drop(gone);
    let mut coder = Host::new_era(&world, "coder");
    assert_eq!(state(&mut coder, "t1"), "awaiting");
    coder.does("task_cancel", json!({ "task_id": "t1" }));
}

/// Returns the daemon's answer to an agent's own processes about themselves.
fn me(world: &World, agent: &str) -> Value {
    own(world, agent, "/dialog-key", &Value::Null)
}

/// Asks at the daemon's own door, as a process with no client of ours would.
fn own(world: &World, agent: &str, path: &str, body: &Value) -> Value {
    let mut curl = std::process::Command::new("curl");
    curl.args(["--silent", "--unix-socket"]).arg(world.own_socket());
    curl.args(["-H", "x-provost-api: 1", "-H", &format!("x-provost-agent: {agent}")]);
    curl.args(["-H", "content-type: application/json"]);
    if !body.is_null() {
        curl.args(["--data", &body.to_string()]);
    }
    let said = curl.arg(format!("http://provost{path}")).output().unwrap();
    serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{path}: {said:?}"))
}

/// Seals a state as the server does, with the key that processes of the user can have.
fn seal(me: &Value, arguments: &Value, carried: &Value, ttl: Duration) -> String {
    let digest = provost::base::Digest::of(arguments.to_string().as_bytes()).to_string();
    let bound = json!([me["user"], me["agent"], "delegate", digest]).to_string();
    let codec = RequestStateCodec::try_new(me["key"].as_str().unwrap()).unwrap();
    codec.seal_json_with(carried, &SealOptions::new().associated_data(bound.as_bytes()).ttl(ttl)).unwrap()
}

#[test]
fn dialogs_that_are_made_up_keep_nobodys_real_one_from_counting() {
    let world = World::new();
    world.rule(&ask_host());
    let _daemon = world.start();
    let mut coder = host(&world, "coder", forms());
    let asked = coder.ask("tools/call", call("t1"));
    // Over one connection each: what a program of the user could do in a moment.
    let spent = world.path("spent");
    let mut lines = String::new();
    for number in 0..10_050 {
        let body =
            json!({ "approval": 99, "digest": "x", "dialog": format!("made-up-{number}") }).to_string();
        lines.push_str(&format!(
            "next\nunix-socket = \"{}\"\nurl = \"http://provost/host-answer\"\nheader = \"x-provost-api: 1\"\n\
             header = \"x-provost-agent: mallory\"\nheader = \"content-type: application/json\"\n\
             output = \"/dev/null\"\ndata = {}\n",
            world.own_socket().display(),
            json!(body),
        ));
    }
    std::fs::write(&spent, lines.trim_start_matches("next\n")).unwrap();
    let done =
        std::process::Command::new("curl").args(["--silent", "--config"]).arg(&spent).status().unwrap();
    assert!(done.success());
    let answered = coder.ask("tools/call", completed("t1", &asked, yes()));
    assert_ne!(answered["isError"], true, "{answered}");
    coder.follow("t1");
}
