//! A host that speaks MCP to `provost mcp`, line by line, with code that shares nothing with the product's.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::World;

/// Every tool, DevIt's names included.
pub(crate) const EVERY: &str = "all,devit";

/// A host's server process.
pub(crate) struct Host {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
    /// The members that every request of the newer era has.
    pub(crate) meta: Option<Value>,
    /// The notifications of the server that no test has read yet.
    pub(crate) told: Vec<Value>,
}

impl Host {
    /// The server process as a command starts it. Nothing is said yet.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from, next: 0, meta: None, told: Vec::new() }
    }

    /// With a handshake, as hosts up to 2025-11-25 begin.
    pub(crate) fn old(world: &World, agent: &str) -> Self {
        Self::of(world.command(&["mcp", "--as", agent, "--tools", EVERY])).greeting(json!({}))
    }

    /// Without one, as hosts do since 2026-07-28.
    pub(crate) fn new_era(world: &World, agent: &str) -> Self {
        Self::of(world.command(&["mcp", "--as", agent, "--tools", EVERY])).declaring(json!({}))
    }

    /// The handshake, with what the host can do.
    pub(crate) fn greeting(mut self, capabilities: Value) -> Self {
        let hello = self.ask(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": { "name": "host", "version": "1" } }),
        );
        assert_eq!(hello["protocolVersion"], "2025-11-25");
        assert!(hello["instructions"].as_str().unwrap().len() < 2_048);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        self
    }

    /// Sets the host's capabilities, which every request of the newer era states.
    pub(crate) fn declaring(mut self, capabilities: Value) -> Self {
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        self
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    /// Sends a line as it is.
    pub(crate) fn write(&mut self, line: &str) {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Goes without a word, as a host does that was killed.
    pub(crate) fn leave(&mut self) {
        self.to = None;
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for the server's end.
    pub(crate) fn ended(&mut self) {
        self.child.wait().unwrap();
    }

    /// Sends a request without waiting for its answer; what is its id.
    pub(crate) fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        if let Some(meta) = &self.meta {
            for (name, value) in meta.as_object().unwrap() {
                params["_meta"][name] = value.clone();
            }
        }
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    /// Returns the next message of the server, of any kind.
    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the server has gone");
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request; what comes before is put aside.
    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.told.push(message);
        }
    }

    pub(crate) fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer_to(id)
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Returns a tool's answer, with its shape checked.
    pub(crate) fn does(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty());
        result["structuredContent"].clone()
    }

    /// Why a tool does not do it.
    pub(crate) fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for a task as a model would, call by call.
    pub(crate) fn follow(&mut self, task: &str) -> Value {
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
