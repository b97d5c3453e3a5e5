//! The requests of a hostile page to each route of the doors over loopback HTTP: they would change something, if a
//! process of this user sent them.

use provost::protocols::{agent_protocol, broker};
use serde_json::{Value, json};

use super::*;

/// A method, a path with its names filled in, and a body.
pub(super) type Attack = (&'static str, String, String);

/// The state before the page comes: an agent that leads and has a file, a task and a hand-off.
pub(super) struct Prey {
    task: String,
    handoff: String,
}

impl Prey {
    pub(super) fn new(world: &World) -> Self {
        let door = Http::agent_protocol(world);
        let id = |path: &str, body: Value| {
            let answer = door.post(path, &body);
            assert!(matches!(answer.status, 200 | 201), "{path}: {answer:?}");
            answer.json()["id"].as_str().unwrap_or_default().to_owned()
        };
        id("/agents/announce", json!({ "id": "victim", "tool": "t" }));
        id("/resources/claim", json!({ "agent_id": "victim", "path": "src/mine.rs" }));
        let task = id("/tasks", json!({ "title": "t", "assigned_by": "victim", "assigned_to": "victim" }));
        let handoff = json!({ "from_agent": "victim", "task_id": "t", "summary": "s" });
        Self { task, handoff: id("/handoffs", handoff) }
    }

    /// The body for a route that changes something, and what this user's own process is answered for it.
    fn body(&self, world: &World, route: (&str, &str)) -> Option<(Value, u16)> {
        let status = json!({ "status": "working", "modified_files": ["src/mine.rs"] });
        Some(match route {
            ("POST", "/agents/announce") => (json!({ "id": "intruder", "tool": "t", "role": "lead" }), 201),
            ("POST", "/agents/:id/heartbeat") => (json!({ "id": "victim" }), 200),
            ("PATCH", "/agents/:id/status") => (json!({ "status": "blocked" }), 200),
            ("DELETE", "/agents/:id") => (json!({ "id": "victim" }), 200),
            ("POST", "/resources/claim") => (json!({ "agent_id": "victim", "path": "src/free.rs" }), 200),
            ("POST", "/resources/release" | "/resources/lock" | "/resources/unlock") => {
                (json!({ "agent_id": "victim", "path": "src/mine.rs" }), 200)
            }
            ("POST", "/tasks") => (json!({ "title": "mine now", "assigned_by": "victim" }), 201),
            ("PATCH", "/tasks/:id") => (json!({ "status": "done", "agent_id": "victim" }), 200),
            ("POST", "/handoffs") => {
                (json!({ "from_agent": "victim", "task_id": "t", "summary": "mine now" }), 201)
            }
            ("PATCH", "/handoffs/:id/accept" | "/handoffs/:id/reject") => {
                (json!({ "agent_id": "victim" }), 200)
            }
            ("POST", "/events") => (json!({ "agent_id": "victim", "action": "escalation" }), 201),
            // For a person alone, and nobody over HTTP.
            ("POST", "/lead") => (json!({ "agent_id": "victim" }), 403),
            ("POST", "/publish") => {
                (json!({ "type": "agent.status", "agent_id": "feat-intruder", "payload": status }), 202)
            }
            ("POST", "/watch") => {
                let path = world.repo().canonicalize().unwrap();
                (json!({ "agent_id": "feat-intruder", "worktree_path": path }), 202)
            }
            _ => return None,
        })
    }

    /// One attack for each route of a door. A route without a body here is one that nobody has thought of.
    pub(super) fn attacks<'a>(
        &'a self,
        world: &'a World,
        routes: impl Iterator<Item = (&'static str, &'static str)> + 'a,
    ) -> impl Iterator<Item = (Attack, u16)> + 'a {
        routes.map(|(methods, path)| {
            let method = methods.split(',').next().unwrap();
            let name = if path.starts_with("/tasks") {
                &self.task
            } else if path.starts_with("/handoffs") {
                &self.handoff
            } else {
                "victim"
            };
            let at = path.replace(":id", name).replace('*', "src/mine.rs");
            let (body, status) = match method {
                "GET" => (Value::Null, 200),
                _ => {
                    self.body(world, (method, path)).unwrap_or_else(|| panic!("no attack on {method} {path}"))
                }
            };
            ((method, at, body.to_string()), status)
        })
    }
}

/// Returns the routes of each of the doors.
pub(super) fn doors(world: &World) -> [(Http, Vec<(&'static str, &'static str)>); 2] {
    [
        (Http::agent_protocol(world), agent_protocol::routes().collect()),
        (Http::broker(world), broker::ROUTES.to_vec()),
    ]
}
