//! DevIt's names for tools, as DevIt's clients call them.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::rules::ALLOW;

const DEVIT_ONLY: &str = "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"test.devit\"\ndecision = \"allow\"\nreason = \"a test\"\n\
                     when.action = [\"delegate\"]\nwhen.tool = [\"devit_delegate\"]\n";

/// Returns a tool's text, which is no error.
fn says(host: &mut Host, tool: &str, arguments: Value) -> String {
    let result = host.call(tool, arguments);
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The id in what `devit_delegate` says.
fn task_in(text: &str) -> String {
    let (_, rest) = text.split_once("**Task ID**: ").unwrap();
    rest.lines().next().unwrap().to_owned()
}

/// The JSON in what `devit_task_result` says.
fn fenced(text: &str) -> Value {
    let (_, rest) = text.split_once("```json\n").unwrap();
    serde_json::from_str(rest.split_once("\n```").unwrap().0).unwrap()
}

/// Why a call is an error of the protocol.
fn errs(host: &mut Host, tool: &str, arguments: Value) -> (i64, String) {
    let answer = host.answer("tools/call", json!({ "name": tool, "arguments": arguments }));
    let error = &answer["error"];
    assert!(error.is_object(), "{tool}: {answer}");
    let (message, code) = (error["message"].as_str().unwrap(), error["data"]["code"].as_str().unwrap());
    assert!(message.starts_with(&format!("{code}: ")), "{message}");
    (error["code"].as_i64().unwrap(), message.to_owned())
}

#[test]
fn a_task_goes_to_a_worker_and_its_result_comes_back_in_devits_words() {
    let world = World::new();
    world.rule(DEVIT_ONLY);
    let _daemon = world.start();
    let (mut asker, mut worker) = (Host::old(&world, "asker"), Host::new_era(&world, "claude_code"));
    let idle = worker.call("devit_poll_tasks", json!({}));
    assert_eq!(idle["metadata"]["status"], "idle");
    std::fs::create_dir(world.repo().join("src")).unwrap();
    let asked = json!({
        "goal": "look at it", "timeout": 120, "model": "m", "watch_patterns": ["*.rs"], "context": { "a": 1 },
        "working_dir": "src", "format": "compact",
    });
    let text = says(&mut asker, "devit_delegate", asked);
    let task = task_in(&text);
    assert_eq!(task.len(), 36, "a UUID: {task}");
    assert!(text.contains("claude_code"), "{text}");
    let listed = says(&mut asker, "devit_orchestration_status", json!({}));
    assert!(listed.contains("1 active, 0 completed, 0 failed") && listed.contains(&task), "{listed}");
    assert!(listed.contains("[pending]"), "{listed}");

    let work = worker.call("devit_poll_tasks", json!({ "wait": true }));
    let block = &work["content"][1];
    assert_eq!(block["type"], "json");
    let it = &block["json"];
    let expected = json!({
        "status": "assigned", "task_id": task, "goal": "look at it", "timeout_secs": 120, "watch_patterns": ["*.rs"],
        "working_dir": "src", "absolute_working_dir": world.repo().join("src"), "context": { "a": 1 },
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&it[name], value, "{name}");
    }
    assert_eq!((&it["raw_task"]["model"], &it["raw_task"]["format"]), (&json!("m"), &json!("compact")));
    assert!(it["received_at"].is_string());
    assert_eq!(
        worker.call("devit_poll_tasks", json!({}))["metadata"]["status"],
        "idle",
        "it is handed out once"
    );

    let word = |status: &str, summary: &str| json!({ "task_id": task, "status": status, "summary": summary, "details": { "n": 1 }, "evidence": { "log": "```" } });
    assert!(says(&mut worker, "devit_notify", word("progress", "half")).contains(&task));
    let half = fenced(&says(&mut asker, "devit_task_result", json!({ "task_id": task })));
    assert_eq!(half["result"]["summary"], "half", "any word ends the wait");
    says(&mut worker, "devit_notify", word("completed", "all of it"));
    let over = fenced(&says(&mut asker, "devit_task_result", json!({ "task_id": task })));
    let expected = json!({
        "task_id": task, "status": "completed", "goal": "look at it", "delegated_to": "claude_code",
        "timeout_secs": 120, "working_dir": "src", "format": "compact",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&over[name], value, "{name}");
    }
    let result = &over["result"];
    assert_eq!(
        (&result["summary"], &result["details"], &result["evidence"]),
        (&json!("all of it"), &json!({ "n": 1 }), &json!({ "log": "```" }))
    );
    says(&mut asker, "devit_notify", word("ack", "seen"));
    let all: Value =
        serde_json::from_str(&says(&mut asker, "devit_orchestration_status", json!({ "format": "json" })))
            .unwrap();
    assert_eq!(all["completed_tasks"][0]["id"], json!(task));
    assert_eq!((&all["summary"]["total_active"], &all["summary"]["total_completed"]), (&json!(0), &json!(1)));
    let table =
        says(&mut asker, "devit_orchestration_status", json!({ "format": "table", "filter": "completed" }));
    assert!(table.contains(&format!("| {task} | completed | claude_code | look at it |")), "{table}");
    let failed = says(&mut asker, "devit_orchestration_status", json!({ "filter": "failed" }));
    assert!(!failed.contains(&task), "{failed}");
}

#[test]
fn a_worker_hears_that_its_task_is_not_wanted_any_more() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let (mut asker, mut worker) = (Host::old(&world, "asker"), Host::old(&world, "claude_code"));
    let task = task_in(&says(&mut asker, "devit_delegate", json!({ "goal": "long work" })));
    asker.does("message_send", json!({ "to": "claude_code", "text": "hurry" }));
    assert_eq!(worker.call("devit_poll_tasks", json!({}))["content"][1]["json"]["task_id"], json!(task));
    asker.does("task_cancel", json!({ "task_id": task, "reason": "changed my mind" }));
    let word = worker.call("devit_poll_tasks", json!({ "wait": true }))["content"][1]["json"].clone();
    assert_eq!((&word["status"], &word["task_id"]), (&json!("cancelled"), &json!(task)));
    let inbox = worker.does("inbox_read", json!({}));
    assert_eq!(inbox["messages"][0]["text"], "hurry", "other messages are left where they are");
}

#[test]
fn what_is_wrong_is_an_error_of_the_protocol_with_devits_code() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let mut host = Host::new_era(&world, "asker");
    for (tool, arguments) in [
        ("devit_delegate", json!({})),
        ("devit_delegate", json!({ "goal": " " })),
        ("devit_delegate", json!({ "goal": "x", "format": "long" })),
        ("devit_delegate", json!({ "goal": "x", "context": "text" })),
        ("devit_delegate", json!({ "goal": "x", "timeout": 0 })),
        ("devit_notify", json!({ "task_id": "t", "status": "great", "summary": "s" })),
        ("devit_notify", json!({ "task_id": "t", "status": "failed", "summary": "" })),
        ("devit_notify", json!({ "task_id": "none", "status": "failed", "summary": "s" })),
        ("devit_orchestration_status", json!({ "format": "xml" })),
        ("devit_orchestration_status", json!({ "filter": "old" })),
        ("devit_task_result", json!({ "task_id": "none" })),
        ("devit_poll_tasks", json!({ "wait": "yes" })),
    ] {
        let (code, message) = errs(&mut host, tool, arguments.clone());
        assert_eq!(code, -32_602, "{tool} {arguments}: {message}");
        assert!(message.starts_with("E_VALIDATION"), "{message}");
    }
    let denied = host.call("devit_delegate", json!({ "goal": "x", "working_dir": "../.." }));
    let said = denied["content"][0]["text"].as_str().unwrap_or_default();
    assert!(denied["isError"] == true || said.contains("pending"), "{denied}");
}

#[test]
fn policy_sees_devits_names_and_ours_for_what_they_are_and_the_names_are_there_only_where_they_are_asked_for()
{
    let world = World::new();
    world.rule(DEVIT_ONLY);
    let daemon = world.start();
    let mut host = Host::old(&world, "asker");
    assert!(host.fails("delegate", json!({ "goal": "true", "worker": "shell" })).contains("denied"));
    assert!(
        says(&mut host, "devit_delegate", json!({ "goal": "true", "delegated_to": "shell" }))
            .contains("Task ID")
    );
    world.rule(&DEVIT_ONLY.replace("devit_delegate", "delegate"));
    drop(host);
    daemon.stop();
    let _daemon = world.start();
    let mut host = Host::of(world.command(&["mcp", "--as", "asker"])).greeting(json!({}));
    let tools = host.ask("tools/list", json!({}));
    let names: Vec<_> =
        tools["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.iter().all(|it| !it.starts_with("devit_")), "{names:?}");
    let gone =
        host.answer("tools/call", json!({ "name": "devit_delegate", "arguments": { "goal": "true" } }));
    assert_eq!(gone["error"]["code"], -32_602);
    host.does("delegate", json!({ "goal": "true", "worker": "shell" }));
}
