//! `provost acp`: an editor of our own, which can misbehave, an agent of our own, which does, and the real program between them.

mod again;
mod bytes;
mod clients;
mod ends;
mod held;
mod jailed;
mod modes;
mod mutated;
mod odd;
mod permissions;
mod retold;
mod setup;
mod shared;
mod strict;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::rules::policy;
use crate::support::waits::until_some;

const AGENT: &str = include_str!("acp/agent.py");
const PATIENCE: Duration = Duration::from_secs(60);

/// An editor with the proxy that it has started.
struct Editor {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Vec<u8>>,
    /// The messages that were read while the test waited for another message.
    seen: Vec<Value>,
    log: PathBuf,
    errors: PathBuf,
    next: u64,
}

/// The command of the agent, with a way in which it misbehaves.
fn agent(world: &World, how: &[&str]) -> Vec<String> {
    let at = world.path("agent.py");
    fs::write(&at, AGENT).unwrap();
    let words = ["/usr/bin/python3", at.to_str().unwrap()];
    words.iter().chain(how).map(|it| (*it).to_owned()).collect()
}

impl Editor {
    /// Begins with an agent that behaves well, and a session.
    fn new(world: &World) -> Self {
        let mut editor = Self::with(world, &[], &[]);
        editor.begin(world);
        editor
    }

    fn with(world: &World, args: &[&str], how: &[&str]) -> Self {
        let mut command = world.command(&[&["acp"], args, &["--"]].concat());
        command.args(agent(world, how));
        Self::start(world, command)
    }

    fn start(world: &World, mut command: Command) -> Self {
        let name = format!("agent-{}.log", uuid::Uuid::new_v4().simple());
        let (log, errors) = (world.path(&name), world.path(&format!("{name}.errors")));
        command.env("AGENT_LOG", &log).stderr(fs::File::create(&errors).unwrap());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, out) = (child.stdin.take(), child.stdout.take().unwrap());
        let (give, from) = channel();
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            loop {
                let mut line = Vec::new();
                match out.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => drop(give.send(line)),
                }
            }
        });
        Self { child, to, from, seen: Vec::new(), log, errors, next: 100 }
    }

    fn raw(&mut self, line: &[u8]) {
        let to = self.to.as_mut().unwrap();
        to.write_all(line).and_then(|()| to.write_all(b"\n")).unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.raw(message.to_string().as_bytes());
    }

    /// The next line, as it came.
    #[track_caller]
    fn line(&mut self) -> Vec<u8> {
        self.from.recv_timeout(PATIENCE).unwrap_or_else(|err| panic!("no line: {err}: {}", self.complaints()))
    }

    /// The next message for which this holds; those before it are kept.
    #[track_caller]
    fn until(&mut self, what: &str, mut is_it: impl FnMut(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&mut is_it) {
            return self.seen.remove(at);
        }
        loop {
            let line = match self.from.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(err) => panic!("{what}: {err}: {:#?}\n{}", self.seen, self.complaints()),
            };
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            if is_it(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    fn complaints(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    #[track_caller]
    fn answer(&mut self, id: u64) -> Value {
        self.until(&format!("the answer to {id}"), |it| it["id"] == id && it.get("method").is_none())
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Begins a session in the repository; its id.
    #[track_caller]
    fn begin(&mut self, world: &World) -> String {
        let made = self.call("session/new", &json!({ "cwd": world.repo(), "mcpServers": [] }));
        made["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    fn prompt(&mut self, session: &str, lines: &[&str]) -> u64 {
        let prompt = json!([{ "type": "text", "text": lines.join("\n") }]);
        self.ask("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    /// The permission request that the editor shows.
    #[track_caller]
    fn dialog(&mut self) -> Value {
        self.until("a dialog", |it| it["method"] == "session/request_permission")
    }

    fn choose(&mut self, id: &Value, option: &str) {
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": outcome }));
    }

    /// Returns the message that the agent says that it has received.
    #[track_caller]
    fn heard(&mut self) -> Value {
        let is_it = |it: &Value| text(it).is_some_and(|it| it.starts_with("heard "));
        let said = self.until("what the agent has heard", is_it);
        serde_json::from_str(text(&said).unwrap().strip_prefix("heard ").unwrap()).unwrap()
    }

    /// The lines that the agent has got.
    fn agent_got(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned();
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn agent_gets(&self, what: &str) -> String {
        until_some(what, || self.agent_got().into_iter().find(|it| it.contains(what)))
    }

    /// Nothing is sent for a while.
    #[track_caller]
    fn hears_nothing(&mut self) {
        match self.from.recv_timeout(Duration::from_millis(200)) {
            Err(RecvTimeoutError::Timeout) => {}
            other => panic!("{:?}", other.map(|it| String::from_utf8_lossy(&it).into_owned())),
        }
    }

    /// The editor closes its side; how the proxy ends.
    fn close(&mut self) -> ExitStatus {
        self.to = None;
        self.ended()
    }

    #[track_caller]
    fn ended(&mut self) -> ExitStatus {
        until_some("the proxy has ended", || self.child.try_wait().unwrap())
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// The text of an agent's words.
fn text(message: &Value) -> Option<&str> {
    message.pointer("/params/update/content/text")?.as_str()
}

/// An edit of a file, as Claude Code asks about one.
fn edit(path: &str, old: &str, new: &str) -> String {
    json!({
        "toolCallId": "c1", "name": "Edit", "kind": "edit", "title": format!("Edit {path}"), "status": "pending",
        "rawInput": { "file_path": path, "old_string": old, "new_string": new },
        "content": [{ "type": "diff", "path": path, "oldText": old, "newText": new }],
        "locations": [{ "path": path }],
    })
    .to_string()
}

fn command(line: &str) -> String {
    json!({ "toolCallId": "c2", "kind": "execute", "title": line, "rawInput": { "command": line } })
        .to_string()
}

/// Returns the held symbols, each with its holder.
fn held(world: &World) -> Vec<String> {
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    let line = |it: &Value| format!("{} {}", it["symbol"].as_str().unwrap(), it["holder"].as_str().unwrap());
    let mut lines: Vec<String> = locks.as_array().unwrap().iter().map(line).collect();
    lines.sort();
    lines
}

const CODE: &str = "export function login(a: string): string { return a }\n\n\
                    export function logout(b: string): string { return b }\n";

/// A world with a file of two functions, in which no rule speaks of permissions.
fn world() -> World {
    let world = World::new();
    world.configure("");
    world.rule(&policy([]));
    world.write("src/auth.ts", CODE);
    world
}

fn file(world: &World) -> String {
    world.repo().join("src/auth.ts").to_str().unwrap().to_owned()
}
