//! Hosts that speak MCP to `provost mcp`, line by line, in both eras of the protocol.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::World;

/// A host's server process.
struct Host {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
    /// What every request of the newer era brings along.
    meta: Option<Value>,
}

impl Host {
    fn new(world: &World, agent: &str) -> Self {
        let mut command = world.command(&["mcp", "--as", agent]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from, next: 0, meta: None }
    }

    /// With a handshake, as hosts up to 2025-11-25 begin.
    fn old(world: &World, agent: &str) -> Self {
        let mut host = Self::new(world, agent);
        let hello = host.ask(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "host", "version": "1" } }),
        );
        assert_eq!(hello["protocolVersion"], "2025-11-25");
        assert!(hello["instructions"].as_str().unwrap().len() < 2_048);
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    /// Without one, as hosts do since 2026-07-28.
    fn new_era(world: &World, agent: &str) -> Self {
        let mut host = Self::new(world, agent);
        host.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        host
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    fn answer(&mut self, method: &str, mut params: Value) -> Value {
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the server has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// What a tool answers, with its shape.
    fn does(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty());
        result["structuredContent"].clone()
    }

    /// Why a tool does not do it.
    fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for a task as a model would, call by call.
    fn follow(&mut self, task: &str) -> Value {
        let mut cursor = Value::Null;
        for _ in 0..100 {
            let now = self.does("task_wait", json!({ "task_id": task, "cursor": cursor, "max_wait_s": 5 }));
            if now["is_over"] == true {
                return now;
            }
            cursor = now["cursor"].clone();
        }
        panic!("task {task} does not end");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.to.take());
        self.child.wait().unwrap();
    }
}

const ALLOW: &str = "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"test.all\"\ndecision = \"allow\"\nreason = \"a test\"\n\
                     when.action = [\"delegate\"]\n";
const ASK: &str = "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"test.ask\"\ndecision = \"approve\"\nreason = \"a test\"\n\
                   when.action = [\"delegate\"]\napprove.by = [\"human\"]\n";

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
        assert_eq!((&output["text"], &output["is_over"]), (&json!("one\ntwo\n"), &json!(false)));
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
    assert_eq!((&waiting["approval"], &waiting["asked_by"]), (&begun["approval"], &json!("one")));
    let yes = json!({ "approval": waiting["approval"], "grant": true, "digest": waiting["digest"] });
    for host in [&mut one, &mut other] {
        let refused = host.fails("approval_decide", yes.clone());
        assert!(!refused.is_empty());
    }
    assert_eq!(one.does("task_status", json!({ "task_id": "t1" }))["tasks"][0]["state"], "awaiting");
    one.does("task_cancel", json!({ "task_id": "t1", "reason": "not needed" }));
    assert_eq!(one.follow("t1")["state"], "cancelled");
}
