//! Artifacts at the A6s door: made by an agent, compared and applied in the way of each editor.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::a6s_client::{OPEN, Socket};
use crate::support::desk::{Desk, errors};
use crate::support::loopback_client::Http;

/// Stands in for a language model, and says so.
pub(crate) const STAND_IN: &str = include_str!("../fixtures/agents/stand_in.py");

/// Everything may be asked for and written.
pub(crate) const ALL: &str = "version = 1\n[[rule]]\nid = \"all\"\ndecision = \"allow\"\nreason = \"a test\"\n\
    when.action = [\"delegate\", \"apply\"]\n";

/// A workspace with an agent, in which these rules hold.
pub(crate) fn desk(policy: &str, a6s: &str, agent: &str) -> Desk {
    let world = World::new();
    let tools = world.path("tools");
    world.put(&tools.join("stand_in.py"), STAND_IN);
    for place in [&tools, &tools.join("stand_in.py")] {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tools = tools.display();
    if !policy.is_empty() {
        world.rule(policy);
    }
    world.configure(&format!(
        "{OPEN}{a6s}\n[[agent]]\nid = \"coder-ai\"\nread_only = [\"{tools}\"]\n\
         command = [\"/usr/bin/python3\", \"{tools}/stand_in.py\", \"lines\"]\n{agent}"
    ));
    let daemon = world.start();
    Desk { world, daemon }
}

pub(crate) fn socket(desk: &Desk) -> Socket {
    let socket = Socket::open(Http::a6s(&desk.world));
    socket.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Returns the artifacts that the agent has made of the workspace.
pub(crate) fn made(socket: &mut Socket, steps: &str) -> Vec<Value> {
    let ask = json!({ "agentType": "coder-ai", "task": format!("Please.\n{steps}") });
    let begun = socket.result("agents.invoke", &ask);
    completed(socket, &begun["executionId"])
}

/// Returns the artifacts of an execution.
pub(crate) fn completed(socket: &mut Socket, execution: &Value) -> Vec<Value> {
    loop {
        let message = match socket.aside.is_empty() {
            true => socket.message(),
            false => socket.aside.remove(0),
        };
        if message["type"] == "execution.complete" && message["data"]["executionId"] == *execution {
            assert_eq!(message["data"]["status"], "success", "{message}");
            return message["data"]["artifacts"].as_array().unwrap().clone();
        }
    }
}

/// How an editor sends back what it was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Editor {
    /// All that it was told, members in no order.
    Neovim,
    /// A list of objects as one object.
    Emacs,
    /// The members that it knows alone.
    Sublime,
}

impl Editor {
    pub(crate) fn text(self, id: &str, method: &str, artifacts: &[Value]) -> String {
        match self {
            Self::Neovim => {
                json!({ "method": method, "params": { "artifacts": artifacts }, "id": id }).to_string()
            }
            Self::Sublime => {
                let known = ["id", "type", "path", "content", "language"];
                let one = |it: &Value| {
                    known.iter().map(|name| ((*name).to_owned(), it[*name].clone())).collect::<Value>()
                };
                let all: Vec<Value> = artifacts.iter().map(one).collect();
                json!({ "id": id, "method": method, "params": { "artifacts": all } }).to_string()
            }
            Self::Emacs => {
                let one = |it: &Value| {
                    let mut members = it.as_object().unwrap().iter();
                    let (first, value) = members.next().unwrap();
                    let rest = members.flat_map(|(name, value)| [json!(name), value.clone()]);
                    let values: Vec<Value> = std::iter::once(value.clone()).chain(rest).collect();
                    format!("{}:{}", json!(first), json!(values))
                };
                let all: Vec<String> = artifacts.iter().map(one).collect();
                let all = if all.is_empty() { "null".into() } else { format!("{{{}}}", all.join(",")) };
                format!(r#"{{"id":"{id}","method":"{method}","params":{{"artifacts":{all}}}}}"#)
            }
        }
    }

    pub(crate) fn result(self, socket: &mut Socket, method: &str, artifacts: &[Value]) -> Value {
        let answer = self.answer(socket, method, artifacts);
        assert!(answer.get("error").is_none(), "{self:?}: {answer}");
        assert!(!answer.to_string().contains(":null"), "nothing is null");
        if method == "artifacts.apply" {
            let count = |name: &str| answer["result"][name].as_u64().unwrap() as usize;
            let all = count("applied") + count("skipped") + errors(&answer["result"]).len();
            assert_eq!(all, artifacts.len(), "each is counted once: {answer}");
        }
        answer["result"].clone()
    }

    pub(crate) fn answer(self, socket: &mut Socket, method: &str, artifacts: &[Value]) -> Value {
        let id = format!("own_{method}");
        socket.text(&self.text(&id, method, artifacts));
        socket.answer(&id)
    }
}

pub(crate) const PREVIEW: &str = "artifacts.preview";

pub(crate) const APPLY: &str = "artifacts.apply";

pub(crate) fn file(path: &str, content: &str) -> Value {
    json!({ "id": "x", "type": "file", "path": path, "content": content, "language": "" })
}

/// The reasons in the error of an apply that has written nothing.
pub(crate) fn nothing_written(answer: &Value) -> Vec<String> {
    let error = answer["error"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let mut lines = error.lines();
    assert_eq!(lines.next(), Some("Nothing was written"), "{error}");
    lines.map(str::to_owned).collect()
}

pub(crate) fn row<'a>(preview: &'a Value, path: &str) -> &'a Value {
    let files = preview["files"].as_array().unwrap();
    files.iter().find(|it| it["path"] == path).unwrap_or_else(|| panic!("{path}: {preview}"))
}
