//! Hosts that follow tasks by themselves: the tasks extension, answered from what the daemon has on disk.

use std::fs;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::rules::{ALLOW, ASK};
use crate::support::waits::within;

/// Returns the capabilities of a host that follows tasks.
fn tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

fn host(world: &World, agent: &str) -> Host {
    Host::of(world.command(&["mcp", "--as", agent, "--tools", "all"])).declaring(tasks())
}

/// A command that ends when the test says so.
const UNTIL_TOLD: &str = "echo begun; while ! test -e go; do sleep 0.05; done; echo over";

fn delegation(task: &str, goal: &str) -> Value {
    json!({ "name": "delegate", "arguments": { "goal": goal, "worker": "shell", "task_id": task } })
}

/// Where a task stands.
fn get(host: &mut Host, task: &str) -> Value {
    host.ask("tasks/get", json!({ "taskId": task }))
}

/// Asks until a task has ended, as hosts do, though faster.
fn ended(host: &mut Host, task: &str) -> Value {
    let mut now = Value::Null;
    let has_ended = within(std::time::Duration::from_secs(60), || {
        now = get(host, task);
        now["status"] != "working"
    });
    assert!(has_ended, "task {task} does not end");
    now
}

fn unknown(host: &mut Host, method: &str, task: &str) -> String {
    let mut params = json!({ "taskId": task });
    if method == "tasks/update" {
        params["inputResponses"] = json!({});
    }
    let answer = host.answer(method, params);
    assert_eq!(answer["error"]["code"], -32_602, "{method} {task}: {answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_host_that_follows_tasks_gets_a_handle_and_later_what_the_tool_would_have_said() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut host = host(&world, "coder");
    let said = host.ask("server/discover", json!({}));
    assert!(said["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{said}");

    let handle = host.ask("tools/call", delegation("t1", UNTIL_TOLD));
    assert_eq!((&handle["resultType"], &handle["taskId"]), (&json!("task"), &json!("t1")));
    assert_eq!((&handle["status"], &handle["ttlMs"]), (&json!("working"), &Value::Null));
    assert!(handle["pollIntervalMs"].as_u64().unwrap() > 0);
    let now = get(&mut host, "t1");
    assert_eq!((&now["resultType"], &now["status"]), (&json!("complete"), &json!("working")));
    assert!(now.get("result").is_none(), "{now}");

    fs::write(world.repo().join("go"), "").unwrap();
    let over = ended(&mut host, "t1");
    assert_eq!(over["status"], "completed");
    let result = &over["result"];
    assert_eq!((&result["isError"], &result["structuredContent"]["exit_code"]), (&json!(false), &json!(0)));
    let tools = host.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    let promised = tools.iter().find(|tool| tool["name"] == "delegate").unwrap()["outputSchema"].clone();
    let shape = jsonschema::validator_for(&promised).unwrap();
    assert!(shape.is_valid(&result["structuredContent"]), "{result}");

    let again = host.ask("tools/call", delegation("t1", UNTIL_TOLD));
    assert_eq!(again["resultType"], "complete", "what is over is answered, not followed: {again}");
    assert_eq!(again["structuredContent"]["state"], "completed");
}

#[test]
fn a_worker_that_fails_has_answered_its_call_with_an_error() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut host = host(&world, "coder");
    host.ask("tools/call", delegation("t1", "exit 3"));
    let over = ended(&mut host, "t1");
    assert_eq!((&over["status"], &over["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert_eq!(over["result"]["structuredContent"]["exit_code"], 3);
    assert!(over["result"]["content"][0]["text"].as_str().unwrap().contains("failed"));
}

#[test]
fn a_host_that_does_not_say_that_it_follows_tasks_gets_none() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut host = Host::new_era(&world, "coder");
    let begun = host.does("delegate", json!({ "goal": "true", "worker": "shell", "task_id": "t1" }));
    assert_eq!(begun["task_id"], "t1");
    let refused = host.answer("tasks/get", json!({ "taskId": "t1" }));
    assert_eq!(refused["error"]["code"], -32_021, "{refused}");
    let needs = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
    assert!(needs["io.modelcontextprotocol/tasks"].is_object(), "{refused}");
}

#[test]
fn a_task_is_cancelled_by_its_handle_and_stays_so() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut host = host(&world, "coder");
    host.ask("tools/call", delegation("t1", UNTIL_TOLD));
    let done = host.ask("tasks/cancel", json!({ "taskId": "t1" }));
    assert_eq!(done["resultType"], "complete");
    assert_eq!(ended(&mut host, "t1")["status"], "cancelled");
    let again = host.ask("tasks/cancel", json!({ "taskId": "t1" }));
    assert_eq!(again["resultType"], "complete", "once more is the same as once");
    assert_eq!(get(&mut host, "t1")["status"], "cancelled");
}

#[test]
fn tasks_of_others_are_as_unknown_as_those_that_never_were() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let (mut one, mut other) = (host(&world, "one"), host(&world, "other"));
    one.ask("tools/call", delegation("t1", UNTIL_TOLD));
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let theirs = unknown(&mut other, method, "t1");
        assert_eq!(theirs, unknown(&mut other, method, "never"), "{method}");
        unknown(&mut other, method, "../../etc/passwd");
        unknown(&mut other, method, &"x".repeat(10_000));
    }
    assert_eq!(get(&mut one, "t1")["status"], "working", "nobody else has ended it");
    one.ask("tasks/cancel", json!({ "taskId": "t1" }));
}

#[test]
fn a_handle_outlives_the_host_and_a_daemon_that_is_killed() {
    let world = World::new();
    world.rule(ASK);
    let mut daemon = world.start();
    let mut first = host(&world, "coder");
    let handle = first.ask("tools/call", delegation("t1", "true"));
    assert!(handle["statusMessage"].as_str().unwrap().contains("approval"), "{handle}");
    drop(first);
    daemon.kill();
    let _daemon = world.start();
    let mut second = host(&world, "coder");
    let now = get(&mut second, "t1");
    assert_eq!((&now["status"], &now["createdAt"]), (&json!("working"), &handle["createdAt"]));
    assert_eq!(now["statusMessage"], handle["statusMessage"]);
    second.ask("tasks/cancel", json!({ "taskId": "t1" }));
    assert_eq!(get(&mut second, "t1")["status"], "cancelled");
}
