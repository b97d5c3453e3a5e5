//! The common parts of tests of artifacts: a world in which they may be applied, and the own API by hand.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{Daemon, World};

/// Everybody may have files written.
pub(crate) const FREELY: &str = "version = 1\ndefault = \"deny\"\n
[[rule]]\nid = \"test.apply\"\ndecision = \"allow\"\nreason = \"a test\"\nwhen.action = [\"apply\"]
example.allow = [{ action = \"apply\" }]\n";

/// A repository with a daemon through which an editor has files written.
pub(crate) struct Desk {
    pub(crate) world: World,
    pub(crate) daemon: Daemon,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(FREELY, "")
    }

    pub(crate) fn with(policy: &str, config: &str) -> Self {
        let world = World::new();
        if !policy.is_empty() {
            world.rule(policy);
        }
        if !config.is_empty() {
            world.configure(config);
        }
        let daemon = world.start();
        Self { world, daemon }
    }

    pub(crate) fn at(&self, file: &str) -> PathBuf {
        self.world.repo().join(file)
    }

    pub(crate) fn put(&self, file: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(file).parent().unwrap()).unwrap();
        fs::write(self.at(file), text).unwrap();
    }

    /// Returns a file's text; `-` if there is no file.
    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.at(file)).unwrap_or_else(|_| "-".into())
    }

    /// A request as an agent; the answer's status and body.
    pub(crate) fn ask(&self, agent: &str, line: &str, body: &Value) -> (u16, Value) {
        ask(&self.world, agent, line, body)
    }

    pub(crate) fn preview(&self, artifacts: &Value) -> Vec<Value> {
        let (status, answer) = self.ask("ed", "POST /preview-artifacts", &json!({ "artifacts": artifacts }));
        assert_eq!(status, 200, "{answer}");
        answer.as_array().unwrap().clone()
    }

    pub(crate) fn apply(&self, artifacts: &Value) -> Value {
        self.apply_as("ed", artifacts)
    }

    pub(crate) fn apply_as(&self, agent: &str, artifacts: &Value) -> Value {
        let (status, answer) = self.ask(agent, "POST /apply-artifacts", &json!({ "artifacts": artifacts }));
        assert_eq!(status, 200, "{answer}");
        let count = |name: &str| answer[name].as_u64().unwrap() as usize;
        if answer["state"] == "applied" {
            let all = count("applied") + count("skipped") + answer["errors"].as_array().unwrap().len();
            assert_eq!(all, artifacts.as_array().unwrap().len(), "each is counted once: {answer}");
        }
        answer
    }

    /// Returns the files and folders of the workspace except git's, to check that none was left.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.world.repo(), "", &mut found);
        found.sort();
        found
    }

    /// Events of a kind, as the log has them.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let (_, answer) = self.ask("ed", "GET /events?after=0&limit=1000", &Value::Null);
        let events = answer["events"].as_array().unwrap().iter();
        let inner = |it: &Value| {
            let kinds = [&it["kind"]["apply"], &it["kind"]["crew"]];
            kinds.iter().find_map(|it| it.get(kind).cloned())
        };
        events.filter_map(inner).collect()
    }
}

fn walk(at: &std::path::Path, below: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(at).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if path == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), &path, found);
        } else {
            found.push(path);
        }
    }
}

/// A request to the own API, byte by byte.
pub(crate) fn ask(world: &World, agent: &str, line: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{line} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nx-provost-agent: {agent}\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = UnixStream::connect(world.own_socket()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// A file as a worker would have it.
pub(crate) fn file(path: &str, content: &str) -> Value {
    json!({ "id": format!("art_{path}"), "type": "file", "path": path, "content": content })
}

/// The same, made for what this says.
pub(crate) fn file_for(base: &str, path: &str, content: &str) -> Value {
    let mut artifact = file(path, content);
    artifact["base_hash"] = json!(sha(base));
    artifact
}

/// A file that is to go.
pub(crate) fn gone(path: &str) -> Value {
    json!({ "id": format!("art_{path}"), "type": "delete", "path": path, "content": "" })
}

pub(crate) fn sha(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The errors of an answer.
pub(crate) fn errors(answer: &Value) -> Vec<String> {
    answer["errors"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}
