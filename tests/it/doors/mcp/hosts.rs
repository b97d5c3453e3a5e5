//! Hosts over MCP, in both eras of the protocol: tasks, approvals and locks.

use serde_json::json;

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::rules::{ALLOW, ASK};

#[test]
fn a_host_of_either_era_delegates_and_waits_and_reads() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    for (number, begin) in [Host::old, Host::new_era].into_iter().enumerate() {
        let mut host = begin(&world, "coder");
        let task = format!("t{number}");
        let asked = json!({ "goal": "echo one; sleep 1; echo two >&2", "worker": "shell", "task_id": task });
        let begun = host.does("delegate", asked.clone());
        assert_eq!((&begun["task_id"], &begun["state"]), (&json!(task), &json!("queued")));
        let over = host.follow(&task);
        assert_eq!((&over["state"], &over["exit_code"]), (&json!("completed"), &json!(0)));
        assert_eq!(host.does("delegate", asked)["state"], "completed", "the same id is the same task");
        let output = host.does("task_output", json!({ "task_id": task }));
        assert_eq!((&output["text"], &output["is_over"]), (&json!("one\ntwo\n"), &json!(true)));
        let rest = host.does("task_output", json!({ "task_id": task, "cursor": output["cursor"] }));
        assert_eq!((&rest["text"], &rest["is_over"]), (&json!(""), &json!(true)));
        let listed = host.does("task_status", json!({ "limit": 100 }));
        assert_eq!(listed["tasks"].as_array().unwrap().len(), number + 1);
    }
}

#[test]
fn every_tool_is_described_and_answers_in_the_shape_that_it_promises() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut host = Host::new_era(&world, "coder");
    let tools = host.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["description"].as_str().unwrap().len() < 2_048, "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{name}");
    }
    let calls = [
        ("delegate", json!({ "goal": "true", "worker": "shell", "task_id": "t1" })),
        ("task_wait", json!({ "task_id": "t1" })),
        ("task_status", json!({})),
        ("task_output", json!({ "task_id": "t1" })),
        ("approvals_list", json!({})),
        ("lock_acquire", json!({ "symbol": "a.py:f", "reason": "a new name" })),
        ("locks_list", json!({ "mine": true })),
        ("lock_release", json!({ "symbol": "a.py:f" })),
    ];
    for (name, arguments) in calls {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let answer = host.does(name, arguments);
        let shape = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        assert!(shape.is_valid(&answer), "{name}: {answer}");
    }
}

#[test]
fn what_a_tool_refuses_is_its_answer_with_what_to_do_next() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let (mut one, mut other) = (Host::old(&world, "one"), Host::new_era(&world, "other"));
    let wrong = one.fails("delegate", json!({ "goal": 5 }));
    assert!(wrong.contains("`goal`") && wrong.contains("string"), "{wrong}");
    assert!(one.fails("task_wait", json!({ "task_id": "none" })).contains("no such task"));
    one.does("lock_acquire", json!({ "symbol": "a.py:f", "reason": "mine first" }));
    let held = other.fails("lock_acquire", json!({ "symbol": "a.py:f" }));
    assert!(held.contains("one"), "who has it is said: {held}");
    assert!(other.fails("lock_release", json!({ "symbol": "a.py:f" })).contains("one"));
    let unknown = one.answer("tools/call", json!({ "name": "no_such_tool", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32_602);
    one.does("lock_release", json!({ "symbol": "a.py:f" }));
    other.does("lock_acquire", json!({ "symbol": "a.py:f" }));
}

#[test]
fn nobody_says_yes_to_their_own_request() {
    let world = World::new();
    world.rule(ASK);
    let _daemon = world.start();
    let (mut one, mut other) = (Host::old(&world, "one"), Host::new_era(&world, "other"));
    let begun = one.does("delegate", json!({ "goal": "true", "worker": "shell", "task_id": "t1" }));
    assert_eq!(begun["state"], "awaiting");
    let waiting = one.does("approvals_list", json!({}))["approvals"][0].clone();
    assert_eq!((&waiting["approval_id"], &waiting["asked_by"]), (&begun["approval_id"], &json!("one")));
    let yes = json!({ "approval_id": waiting["approval_id"], "grant": true, "digest": waiting["digest"] });
    for host in [&mut one, &mut other] {
        let refused = host.fails("approval_decide", yes.clone());
        assert!(!refused.is_empty());
    }
    assert_eq!(one.does("task_status", json!({ "task_id": "t1" }))["tasks"][0]["state"], "awaiting");
    one.does("task_cancel", json!({ "task_id": "t1", "reason": "not needed" }));
    assert_eq!(one.follow("t1")["state"], "cancelled");
}
