//! Answers and their schemas: every tool is called with something in every list, by the official clients in
//! Python and in TypeScript, which hold what comes against what was promised.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::mcp_examiners::{environment, node};
use crate::support::mcp_host::Host;
use crate::support::repositories::well;
use crate::support::rules::{allow, ask, policy, rule};
use crate::support::{World, provost};

const CODE: &str = "def parse(text):\n    return text\n\n\ndef render(tree):\n    return parse(tree)\n\n\ndef other():\n    pass\n";

const CONFIG: &str = "[screenshot]\nenabled = true\nbackend = \"scrot\"\n[workers.slow]\ntype = \"polling\"\n\
     [workers.kept]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = \"kept\"\n\
     [workers.talks]\ntype = \"acp\"\nbinary = \"/bin/sleep\"\nargs = [\"600\"]\n";

/// The built-in worker runs at once; a worker that collects its tasks, and pictures, wait for a person.
fn rules() -> String {
    let action = "when.action = [\"delegate\"]";
    let see = ["when.action = [\"screenshot\"]", "approve.by = [\"human\"]"];
    policy([
        allow("run", &[action, "when.worker = [\"shell\", \"kept\", \"talks\"]"]),
        ask("\"human\"", &[action, "when.worker = [\"slow\"]"]),
        rule("see", "approve", "a test", &see),
    ])
}

/// The calls, in order; `keep` names the members of an answer that later calls need, and `until` the member for which a
/// call is repeated: each wait for a task ends with a change of it, and their number depends on how fast it runs.
fn steps(given: &Value) -> Vec<Value> {
    let mut all = json!([
        { "tool": "delegate", "arguments": { "goal": "seq 3; touch seen.txt", "worker": "shell", "task_id": given["task"], "watch_patterns": ["*.txt"] } },
        { "tool": "delegate", "arguments": { "goal": "echo new > kept.txt", "worker": "kept", "task_id": given["kept"] } },
        { "tool": "task_wait", "arguments": { "task_id": given["kept"] }, "until": "is_over" },
        { "tool": "task_diff", "arguments": { "task_id": given["kept"] } },
        { "tool": "task_apply", "arguments": { "task_id": given["kept"], "files": ["kept.txt"] } },
        { "tool": "task_discard", "arguments": { "task_id": given["kept"] } },
        { "tool": "task_wait", "arguments": { "task_id": given["task"] }, "keep": { "cursor": "/cursor" } },
        { "tool": "task_wait", "arguments": { "task_id": given["task"], "cursor": "$cursor", "max_wait_s": 10 } },
        { "tool": "delegate", "arguments": { "goal": "wait", "worker": "slow", "task_id": given["waits"] } },
        { "tool": "task_status", "arguments": {} },
        { "tool": "task_status", "arguments": { "limit": 1 } },
        { "tool": "task_status", "arguments": { "task_id": given["task"] } },
        { "tool": "task_output", "arguments": { "task_id": given["task"] } },
        { "tool": "notify", "arguments": { "task_id": given["task"], "status": "ack" } },
        { "tool": "delegate", "arguments": { "goal": "wait", "worker": "talks" }, "keep": { "talks": "/task_id" } },
        { "tool": "task_say", "arguments": { "task_id": "$talks", "text": "Leave the tests." } },
        { "tool": "task_cancel", "arguments": { "task_id": "$talks" } },
        { "tool": "task_cancel", "arguments": { "task_id": given["waits"] } },
        { "tool": "approvals_list", "arguments": {}, "keep": { "approval": "/approvals/0/approval_id", "digest": "/approvals/0/digest" } },
        { "tool": "approval_decide", "arguments": { "approval_id": "$approval", "digest": "$digest", "grant": true, "reason": "fine" } },
        { "tool": "lock_acquire", "arguments": { "symbol": "a.py:render", "reason": "faster" } },
        { "tool": "lock_acquire", "arguments": { "symbol": "a.py:nothing" } },
        { "tool": "locks_list", "arguments": {} },
        { "tool": "locks_list", "arguments": { "limit": 1 } },
        { "tool": "lock_release", "arguments": { "symbol": "a.py:nothing" } },
        { "tool": "intent_declare", "arguments": { "description": "make it fast", "files": ["a.py"], "symbols": ["parse"] }, "keep": { "intent": "/intent/intent_id" } },
        { "tool": "intent_update", "arguments": { "intent_id": "$intent", "status": "active" } },
        { "tool": "intents_list", "arguments": {} },
        { "tool": "conflicts_check", "arguments": { "files": ["a.py"], "symbols": ["render"] } },
        { "tool": "contract_propose", "arguments": { "symbol": "a.py:render" } },
        { "tool": "contract_respond", "arguments": { "contract_id": given["contract"], "answer": "accept" } },
        { "tool": "contracts_list", "arguments": {} },
        { "tool": "contracts_check", "arguments": { "files": ["a.py"], "given": [{ "path": "a.py", "content": "def other(x):\n    pass\n" }] } },
        { "tool": "claim_acquire", "arguments": { "path": given["file"], "task": "t" } },
        { "tool": "claims", "arguments": {} },
        { "tool": "claim_release", "arguments": { "path": given["file"] } },
        { "tool": "handoff_list", "arguments": {} },
        { "tool": "handoff_offer", "arguments": { "task": "docs", "summary": "half", "blockers": ["time"], "files_created": ["x"] } },
        { "tool": "handoff_accept", "arguments": { "handoff_id": given["take"] } },
        { "tool": "handoff_reject", "arguments": { "handoff_id": given["leave"], "reason": "busy" } },
        { "tool": "handoff_list", "arguments": { "answered": true } },
        { "tool": "message_send", "arguments": { "to": "other", "text": "hello" } },
        { "tool": "inbox_read", "arguments": {} },
        { "tool": "inbox_read", "arguments": { "limit": 1 } },
        { "tool": "workers_list", "arguments": {} },
        { "tool": "work_begin", "arguments": { "description": "tidy", "places": ["a.py:render", "new.py"], "ttl_s": 600 }, "keep": { "work": "/intent_id" } },
        { "tool": "work_end", "arguments": { "intent_id": "$work" } },
        { "tool": "screenshot", "arguments": { "max_wait_s": 0 } },
    ]);
    let mut all = all.as_array_mut().map(std::mem::take).unwrap_or_default();
    for tool in ["merge_preview", "merge_queue_add"] {
        all.push(json!({ "tool": tool, "arguments": { "branches": ["side"] } }));
    }
    all
}

/// Gives the client something to find in every list, and says what of it has an id.
fn prepared(other: &mut Host, third: &mut Host, who: &str) -> Value {
    for (host, symbol) in [(&mut *other, "a.py:parse"), (&mut *third, "a.py:other")] {
        host.does("lock_acquire", json!({ "symbol": symbol, "reason": "a new name" }));
    }
    let files = json!({ "description": "another way", "files": ["a.py"], "ttl_s": 600 });
    other.does("intent_declare", files);
    other.does("claim_acquire", json!({ "path": "b.py", "task": "t1" }));
    other.does("message_send", json!({ "to": who, "text": "first\nsecond" }));
    other.does(
        "delegate",
        json!({ "goal": "later", "worker": "slow", "task_id": crate::support::fresh("asked") }),
    );
    let hand = |other: &mut Host| {
        let work = json!({ "to": who, "task": "parser", "summary": "done", "files_modified": ["a.py"] });
        other.does("handoff_offer", work)["handoff_id"].clone()
    };
    let (take, leave) = (hand(other), hand(other));
    let contract = other.does("contract_propose", json!({ "symbol": "a.py:other" }))["contract_id"].clone();
    json!({
        "task": crate::support::fresh(who), "kept": crate::support::fresh(who), "waits": crate::support::fresh(who), "file": format!("{who}.txt"),
        "take": take, "leave": leave, "contract": contract,
    })
}

/// Returns a client's verdict on all calls.
fn examined(mut client: Command, world: &World) -> Value {
    client.env_clear().env("HOME", world.home()).env("PATH", "/usr/bin:/bin").current_dir(world.repo());
    let said = client.stdin(Stdio::null()).output().unwrap();
    serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("no JSON: {said:?}"))
}

#[test]
fn every_answer_is_what_its_schema_says_to_the_official_clients() {
    let world = World::new();
    world.rule(&rules());
    world.configure(CONFIG);
    std::fs::write(world.repo().join("a.py"), CODE).unwrap();
    for args in [&["add", "a.py"][..], &["commit", "-qm", "one"], &["branch", "side"]] {
        well(&world.repo(), args);
    }
    let _daemon = world.start();
    let (mut other, mut third) = (Host::old(&world, "other"), Host::old(&world, "third"));
    let mut waiting = Host::old(&world, "waiting");
    let python = PathBuf::from(std::env::var("PROVOST_TEST_MCP").expect("scripts/test says where"));
    let (node, modules) = node();
    let script = world.path("every_tool.mjs");
    std::fs::write(&script, include_str!("examined/every_tool.mjs")).unwrap();
    for (client, mode) in [("python", "legacy"), ("python", "auto"), ("node", "legacy"), ("node", "auto")] {
        let given = prepared(&mut other, &mut third, "judge");
        // Somebody waits for a lock of somebody else's.
        waiting.begin(
            "tools/call",
            json!({ "name": "lock_acquire", "arguments": { "symbol": "a.py:other", "wait_s": 45 } }),
        );
        let how = json!({
            "command": provost(), "args": ["mcp", "--as", "judge", "--tools", "all"], "env": environment(&world), "cwd": world.repo(), "mode": mode,
            "modules": modules, "steps": steps(&given),
        });
        let mut command = match client {
            "python" => Command::new(python.join("bin/python3")),
            _ => Command::new(&node),
        };
        match client {
            "python" => command.args(["-c", include_str!("examined/every_tool.py")]),
            _ => command.arg(&script),
        };
        command.arg(how.to_string());
        let said = examined(command, &world);
        let calls = said["calls"].as_array().unwrap();
        // Nobody answers for themselves, and no host has an approver's key: that one is refused, which has no
        // shape.
        let answered = |it: &&Value| it.get("answer").is_some() || it["tool"] == "approval_decide";
        let wrong: Vec<_> = calls.iter().filter(|it| !answered(it) || it.get("wrong").is_some()).collect();
        let waits = calls.iter().filter(|it| it["tool"] == "task_wait").collect::<Vec<_>>();
        assert!(wrong.is_empty(), "{client}, {mode}: {wrong:#?}; the waits for tasks were {waits:#?}");
        let called: BTreeSet<_> = calls.iter().map(|it| it["tool"].as_str().unwrap()).collect();
        let promised = said["tools"].as_object().unwrap().iter().filter(|(_, schema)| schema.is_object());
        let promised: BTreeSet<_> = promised.map(|(name, _)| name.as_str()).collect();
        assert_eq!(called, promised, "every tool that promises a shape is called");
        for (tool, list) in [
            ("locks_list", "/locks/0"),
            ("locks_list", "/waiting/0"),
            ("intents_list", "/rows/0"),
            ("claims", "/rows/0"),
            ("contracts_list", "/rows/0"),
            ("handoff_list", "/rows/0"),
            ("inbox_read", "/messages/0"),
            ("task_status", "/tasks/0"),
            ("task_diff", "/files/0"),
            ("approvals_list", "/approvals/0"),
            ("conflicts_check", "/conflicts/0"),
            ("merge_preview", "/order/0"),
            ("contracts_check", "/violations/0"),
            ("lock_acquire", "/warnings/0"),
            ("intent_declare", "/conflicts/0"),
        ] {
            let found = calls.iter().filter(|it| it["tool"] == tool);
            assert!(
                found.clone().any(|it| it["answer"].pointer(list).is_some()),
                "nothing at {list} of {tool}"
            );
        }
    }
}

/// Every schema of the tools that a host gets.
fn schemas(host: &mut Host) -> Vec<(String, Value)> {
    let tools = host.ask("tools/list", json!({}))["tools"].clone();
    let each = tools.as_array().unwrap().iter().flat_map(|tool| {
        let name = tool["name"].as_str().unwrap();
        ["inputSchema", "outputSchema"].map(|it| (format!("{name}.{it}"), tool[it].clone()))
    });
    each.collect()
}

#[test]
fn schemas_are_short_and_have_neither_references_nor_unions_with_null() {
    let world = World::new();
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    for (name, schema) in schemas(&mut host) {
        let text = schema.to_string();
        for word in ["$ref", "$defs", "\"null\"", "$schema"] {
            assert!(!text.contains(word), "{name} has {word}: {text}");
        }
        assert!(text.len() < 1_500, "{name}: {text}");
    }
}

#[test]
fn an_argument_that_a_tool_does_not_know_is_refused_with_those_that_it_knows() {
    let world = World::new();
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    let why = host.fails("lock_acquire", json!({ "symbol": "a.py", "ttl": 60 }));
    assert!(why.contains("`ttl`") && why.contains("ttl_s"), "{why}");
    assert_eq!(host.does("locks_list", json!({}))["locks"], json!([]), "nothing was done");
    let why =
        host.fails("contracts_check", json!({ "given": [{ "path": "a.py", "content": "", "mode": 1 }] }));
    assert!(why.contains("mode"), "{why}");
}
