//! The dialect of the protocol document: a secret once, then a session token; results and errors as JSON-RPC.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::{Connection, Daemon, Reply, World, read_line};

struct Peer(Connection);

impl Peer {
    fn new(daemon: &Daemon) -> Self {
        Self(Connection::to(&daemon.socket).unwrap())
    }

    fn send(&mut self, value: &Value) {
        self.0.write_all(format!("{value}\n").as_bytes()).unwrap();
    }

    /// The answer to a request; notifications that come first are collected.
    fn ask(&mut self, method: &str, params: Value, seen: &mut Vec<Value>) -> Value {
        self.send(&json!({
            "msg_type": "request", "msg_id": "m-1", "method": method, "params": params,
            "timestamp": "2024-01-01T00:00:00Z",
        }));
        loop {
            let answer = read_line(&mut self.0).message();
            if answer["msg_type"] == "notification" {
                seen.push(answer);
                continue;
            }
            assert_eq!(
                (&answer["msg_type"], &answer["msg_id"]),
                (&json!("response"), &json!("m-1")),
                "{answer}"
            );
            return answer;
        }
    }

    fn authenticate(&mut self, secret: &str, ident: &str) -> String {
        let params = json!({ "secret": secret, "ident": ident });
        let answer = self.ask("authenticate", params, &mut Vec::new());
        answer["result"]["session_token"].as_str().unwrap().to_owned()
    }
}

#[cfg(unix)] // with a worker that needs a jail
#[test]
fn delegate_status_task_and_notify_work_and_results_are_pushed() {
    let world = World::new();
    let daemon = world.start();
    let mut peer = Peer::new(&daemon);
    peer.authenticate(&world.secret(), "doc:a");
    let mut pushed = Vec::new();
    let params = json!({ "goal": "echo from the document", "delegated_to": "shell", "timeout_s": 30 });
    let answer = peer.ask("delegate", params, &mut pushed);
    let task = answer["result"]["task_id"].as_str().unwrap().to_owned();
    assert!(task.starts_with("task_"), "{task}");
    let notification = pushed.pop().unwrap_or_else(|| read_line(&mut peer.0).message());
    assert_eq!(
        (&notification["msg_type"], &notification["method"]),
        (&json!("notification"), &json!("notify"))
    );
    assert_eq!(notification["params"]["task_id"], task.as_str());
    assert_eq!(notification["params"]["artifacts"]["summary"], "from the document");
    let shown = peer.ask("task", json!({ "task_id": task }), &mut pushed);
    assert_eq!(shown["result"]["status"], "completed");
    let status = peer.ask("status", json!({ "filter": "completed" }), &mut pushed);
    assert_eq!(status["result"]["completed_tasks"].as_array().unwrap().len(), 1);
    assert_eq!(status["result"]["active_tasks"], json!([]));
    let acked = peer.ask("notify", json!({ "task_id": task, "status": "ack" }), &mut pushed);
    assert_eq!(acked["result"]["ok"], true);
}

#[cfg(unix)] // with a worker that needs a jail
#[test]
fn errors_carry_the_documents_numbers() {
    let world = World::new();
    let daemon = world.start();
    let mut peer = Peer::new(&daemon);
    let early = peer.ask("status", json!({}), &mut Vec::new());
    assert_eq!(early["error"]["data"]["code"], 1001, "before authenticating");
    peer.authenticate(&world.secret(), "doc:a");
    let mut none = Vec::new();
    assert_eq!(peer.ask("task", json!({ "task_id": "x" }), &mut none)["error"]["data"]["code"], 1002);
    assert_eq!(peer.ask("delegate", json!({}), &mut none)["error"]["data"]["code"], 1003);
    assert_eq!(
        peer.ask("delegate", json!({ "goal": "g", "timeout_s": "soon" }), &mut none)["error"]["data"]["code"],
        1003
    );
    assert_eq!(
        peer.ask("notify", json!({ "task_id": "x", "status": "sideways" }), &mut none)["error"]["data"]["code"],
        1003
    );
    assert_eq!(peer.ask("no_such", json!({}), &mut none)["error"]["data"]["code"], 1003);
    let denied = peer.ask(
        "delegate",
        json!({ "goal": "x", "delegated_to": "shell", "working_dir": "../.." }),
        &mut none,
    );
    assert_eq!(denied["error"]["data"]["reason"], "E_SANDBOX");
}

#[test]
fn a_token_is_good_on_another_connection_and_a_made_up_one_is_not() {
    let world = World::new();
    let daemon = world.start();
    let token = Peer::new(&daemon).authenticate(&world.secret(), "doc:a");
    let mut none = Vec::new();
    let answer = Peer::new(&daemon).ask("status", json!({ "session_token": token }), &mut none);
    assert!(answer["result"]["summary"].is_object(), "{answer}");
    let answer = Peer::new(&daemon).ask("status", json!({ "session_token": "f".repeat(64) }), &mut none);
    assert_eq!(answer["error"]["data"]["code"], 1001);
}

#[test]
fn plain_json_rpc_is_understood() {
    let world = World::new();
    let daemon = world.start();
    let mut peer = Peer::new(&daemon);
    peer.send(
        &json!({ "jsonrpc": "2.0", "id": 7, "method": "auth", "params": { "secret": world.secret() } }),
    );
    let answer = read_line(&mut peer.0).message();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
    assert!(answer["result"]["session_token"].is_string());
    peer.send(&json!({ "jsonrpc": "2.0", "id": 8, "method": "task", "params": { "task_id": "x" } }));
    let answer = read_line(&mut peer.0).message();
    assert_eq!((&answer["id"], &answer["error"]["data"]["code"]), (&json!(8), &json!(1002)));
}

#[test]
fn a_wrong_secret_and_a_reserved_name_are_refused() {
    let world = World::new();
    let daemon = world.start();
    let own = world.secret();
    for (secret, ident) in [("wrong", "doc:a"), (own.as_str(), "client:approver"), (own.as_str(), "provost")]
    {
        let mut peer = Peer::new(&daemon);
        peer.send(&json!({ "method": "authenticate", "msg_id": "1", "params": { "secret": secret, "ident": ident } }));
        let Reply::Reset(words) = read_line(&mut peer.0) else { panic!("{ident} was not refused") };
        assert!(String::from_utf8_lossy(&words).contains("1001"));
    }
}

#[test]
fn the_dialect_can_be_switched_off() {
    let world = World::new();
    world.configure("[devit]\ndialect_document = false\n");
    let daemon = world.start();
    let mut peer = Peer::new(&daemon);
    peer.send(&json!({ "method": "authenticate", "msg_id": "1", "params": { "secret": world.secret() } }));
    assert_eq!(read_line(&mut peer.0).message()["payload"]["code"], "E_INVALID");
}
