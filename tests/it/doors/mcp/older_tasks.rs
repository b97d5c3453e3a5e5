//! Hosts that ask for tasks in the form of revision 2025-11-25, and hosts that want to hear of tasks and of
//! calls that wait.

use std::fs;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::rules::{ALLOW, ASK};

/// A command that ends when the test says so.
const UNTIL_TOLD: &str = "while ! test -e go; do sleep 0.05; done; echo over";

fn older(world: &World, agent: &str) -> Host {
    Host::of(world.command(&["mcp", "--as", agent, "--tools", "all"])).greeting(json!({}))
}

fn delegation(task: &str, goal: &str) -> Value {
    let arguments = json!({ "goal": goal, "worker": "shell", "task_id": task });
    json!({ "name": "delegate", "arguments": arguments, "task": { "ttl": 60_000 } })
}

/// The next message with this method.
fn next(host: &mut Host, method: &str) -> Value {
    loop {
        let message = host.read();
        if message["method"] == method {
            return message["params"].clone();
        }
    }
}

#[test]
fn a_host_of_2025_11_25_asks_for_a_task_and_fetches_its_result() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut host = Host::of(world.command(&["mcp", "--as", "coder", "--tools", "all"]));
    let said = host.ask(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "host", "version": "1" } }),
    );
    assert_eq!(
        said["capabilities"]["tasks"],
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
    );
    assert_eq!(said["serverInfo"]["name"], "provost");
    host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let tools = host.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    for tool in tools {
        let support = &tool["execution"]["taskSupport"];
        assert_eq!(support == "optional", tool["name"] == "delegate");
    }

    let begun = host.ask("tools/call", delegation("t1", UNTIL_TOLD));
    let task = &begun["task"];
    assert_eq!(
        (&task["taskId"], &task["status"], &task["ttl"]),
        (&json!("t1"), &json!("working"), &Value::Null)
    );
    assert!(task["createdAt"].is_string() && task["lastUpdatedAt"].is_string());
    assert!(task["pollInterval"].as_u64().unwrap() > 0);
    assert!(begun["_meta"]["io.modelcontextprotocol/model-immediate-response"].is_string());
    assert_eq!(host.ask("tasks/get", json!({ "taskId": "t1" }))["status"], "working");

    let waiting = host.begin("tasks/result", json!({ "taskId": "t1" }));
    assert_eq!(host.ask("tasks/get", json!({ "taskId": "t1" }))["status"], "working", "it answers meanwhile");
    fs::write(world.repo().join("go"), "").unwrap();
    let result = host.answer_to(waiting)["result"].clone();
    assert_eq!((&result["isError"], &result["structuredContent"]["exit_code"]), (&json!(false), &json!(0)));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], "t1");
    assert_eq!(host.ask("tasks/get", json!({ "taskId": "t1" }))["status"], "completed");
    let told = host
        .told
        .iter()
        .any(|it| it["method"] == "notifications/tasks/status" && it["params"]["taskId"] == "t1");
    assert!(told || next(&mut host, "notifications/tasks/status")["taskId"] == "t1");
}

#[test]
fn what_cannot_be_a_task_and_what_is_no_task_is_refused_as_that_revision_says() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let (mut host, mut other) = (older(&world, "coder"), older(&world, "other"));
    let mut looks = delegation("t0", "true");
    looks["name"] = json!("task_status");
    assert_eq!(host.answer("tools/call", looks)["error"]["code"], -32_601);
    let mut wrong = delegation("t0", "true");
    wrong["arguments"]["working_dir"] = json!("../outside");
    let refused = host.answer("tools/call", wrong);
    assert!(refused["error"]["message"].as_str().unwrap().contains("outside"), "{refused}");

    host.ask("tools/call", delegation("t1", "exit 4"));
    let result = host.ask("tasks/result", json!({ "taskId": "t1" }));
    assert_eq!((&result["isError"], &result["structuredContent"]["exit_code"]), (&json!(true), &json!(4)));
    assert_eq!(host.ask("tasks/get", json!({ "taskId": "t1" }))["status"], "failed");
    assert_eq!(
        host.answer("tasks/cancel", json!({ "taskId": "t1" }))["error"]["code"],
        -32_602,
        "it is over"
    );
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(other.answer(method, json!({ "taskId": "t1" }))["error"]["code"], -32_602, "{method}");
        assert_eq!(host.answer(method, json!({ "taskId": "never" }))["error"]["code"], -32_602, "{method}");
        assert!(host.answer(method, json!({ "taskId": 5 })).get("error").is_some(), "{method}");
    }
    assert_eq!(other.ask("tasks/list", json!({}))["tasks"], json!([]));
    assert_eq!(other.answer("tasks/list", json!({ "cursor": "never" }))["error"]["code"], -32_602);

    host.ask("tools/call", delegation("t2", UNTIL_TOLD));
    assert_eq!(host.ask("tasks/cancel", json!({ "taskId": "t2" }))["status"], "cancelled");
    assert_eq!(host.ask("tasks/result", json!({ "taskId": "t2" }))["isError"], true);
}

#[test]
fn an_agents_tasks_are_listed_page_by_page_and_nobody_elses() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let (mut host, mut other) = (older(&world, "coder"), older(&world, "other"));
    let mut wanted: Vec<String> = (0..60).map(|n| format!("t{n:02}")).collect();
    for task in &wanted {
        host.ask("tools/call", delegation(task, "true"));
        if task.ends_with('5') {
            other.ask("tools/call", delegation(&format!("o{task}"), "true"));
        }
    }
    for task in &wanted {
        host.ask("tasks/result", json!({ "taskId": task }));
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let asked = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = host.ask("tasks/list", asked);
        seen.extend(
            page["tasks"].as_array().unwrap().iter().map(|it| it["taskId"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    seen.sort();
    wanted.sort();
    assert_eq!(seen, wanted);
    assert!(pages > 1);
}

#[test]
fn a_task_of_either_form_is_the_same_after_the_daemon_was_killed() {
    let world = World::new();
    world.rule(ASK);
    let mut daemon = world.start();
    let begun = older(&world, "coder").ask("tools/call", delegation("t1", "true"))["task"].clone();
    assert_eq!(begun["status"], "working");
    daemon.kill();
    let _daemon = world.start();
    let mut host = older(&world, "coder");
    let now = host.ask("tasks/get", json!({ "taskId": "t1" }));
    assert_eq!((&now["createdAt"], &now["statusMessage"]), (&begun["createdAt"], &begun["statusMessage"]));
    let mut newer = Host::of(world.command(&["mcp", "--as", "coder", "--tools", "all"]))
        .declaring(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
    assert_eq!(newer.ask("tasks/get", json!({ "taskId": "t1" }))["createdAt"], begun["createdAt"]);
    assert_eq!(
        newer.answer("tasks/list", json!({}))["error"]["code"],
        -32_601,
        "which later hosts do not have"
    );
    host.ask("tasks/cancel", json!({ "taskId": "t1" }));
}

#[test]
fn a_host_hears_of_the_tasks_that_it_has_named() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let follows = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut host = Host::of(world.command(&["mcp", "--as", "coder", "--tools", "all"])).declaring(follows);
    let mut other = Host::new_era(&world, "other");
    other.does("delegate", json!({ "goal": "true", "worker": "shell", "task_id": "theirs" }));
    let arguments = json!({ "goal": UNTIL_TOLD, "worker": "shell", "task_id": "t1" });
    host.ask("tools/call", json!({ "name": "delegate", "arguments": arguments }));

    let id = host.begin(
        "subscriptions/listen",
        json!({ "notifications": { "taskIds": ["t1", "theirs", "never", "t1"] } }),
    );
    let agreed = next(&mut host, "notifications/subscriptions/acknowledged");
    assert_eq!(agreed["notifications"]["taskIds"], json!(["t1"]), "its own, once");
    assert_eq!(agreed["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id));
    let first = next(&mut host, "notifications/tasks");
    assert_eq!((&first["taskId"], &first["status"]), (&json!("t1"), &json!("working")));
    assert_eq!(first["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id));
    fs::write(world.repo().join("go"), "").unwrap();
    let last = loop {
        let told = next(&mut host, "notifications/tasks");
        if told["status"] != "working" {
            break told;
        }
    };
    assert_eq!((&last["status"], &last["result"]["isError"]), (&json!("completed"), &json!(false)));
    host.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    host.ask("server/discover", json!({}));

    let refused = other.answer("subscriptions/listen", json!({ "notifications": { "taskIds": ["theirs"] } }));
    assert_eq!(refused["error"]["code"], -32_021, "{refused}");
    let many: Vec<String> = (0..1_000).map(|n| format!("t{n}")).collect();
    let refused = host.answer("subscriptions/listen", json!({ "notifications": { "taskIds": many } }));
    assert_eq!(refused["error"]["code"], -32_602);
}

#[test]
fn a_host_that_waits_hears_what_the_worker_says() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    for mut host in [Host::old(&world, "coder"), Host::new_era(&world, "coder")] {
        // It says so again and again: what it has said before the daemon listens for this host is not told.
        let goal = "rm -f go; while ! test -e go; do echo half of it; sleep 0.1; done";
        let task = host.does("delegate", json!({ "goal": goal, "worker": "shell" }))["task_id"].clone();
        // The worker is waited for, since its start is a change, too.
        let mut now = host.does("task_wait", json!({ "task_id": task }));
        while now["state"] != "running" {
            now =
                host.does("task_wait", json!({ "task_id": task, "cursor": now["cursor"], "max_wait_s": 5 }));
        }
        let wait = json!({ "task_id": task, "cursor": now["cursor"], "max_wait_s": 45 });
        let call = json!({ "name": "task_wait", "arguments": wait, "_meta": { "progressToken": "p" } });
        let waiting = host.begin("tools/call", call);
        let heard = loop {
            let heard = next(&mut host, "notifications/progress");
            assert_eq!(
                (&heard["progressToken"], heard["progress"].as_f64().unwrap() > 0.0),
                (&json!("p"), true)
            );
            // On a slow machine a beat comes first.
            if heard["message"] != format!("Task {} is running", task.as_str().unwrap()) {
                break heard;
            }
        };
        assert_eq!(heard["message"], "half of it");
        fs::write(world.repo().join("go"), "").unwrap();
        let over = host.answer_to(waiting);
        assert!(over["result"]["structuredContent"]["state"].is_string(), "{over}");
        let numbers: Vec<f64> = host
            .told
            .iter()
            .filter(|it| it["method"] == "notifications/progress")
            .map(|it| it["params"]["progress"].as_f64().unwrap())
            .collect();
        assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{numbers:?}");
        host.follow(task.as_str().unwrap());
    }
}

#[test]
fn a_call_that_is_given_up_does_not_go_on() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let (mut holder, mut host) = (Host::new_era(&world, "holder"), Host::new_era(&world, "coder"));
    holder.does("lock_acquire", json!({ "symbol": "a.py:f" }));
    let arguments = json!({ "symbol": "a.py:f", "wait_s": 45 });
    let waiting = host.begin("tools/call", json!({ "name": "lock_acquire", "arguments": arguments }));
    let queued =
        |holder: &mut Host| holder.does("locks_list", json!({}))["waiting"].as_array().unwrap().len();
    while queued(&mut holder) == 0 {}
    host.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": waiting } }),
    );
    while queued(&mut holder) == 1 {}
    holder.does("lock_release", json!({ "symbol": "a.py:f" }));
    assert_eq!(holder.does("locks_list", json!({}))["locks"], json!([]), "nobody has got it");
}
