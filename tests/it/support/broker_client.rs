//! A client of the broker door: what agents publish there, and how they poll.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::loopback_client::{Answer, Http};

pub(crate) fn status(agent: &str, status: &str, files: &[&str]) -> Value {
    json!({ "type": "agent.status", "agent_id": agent, "payload": { "status": status, "modified_files": files } })
}

pub(crate) fn feedback(to: &str, text: &str) -> Value {
    json!({ "type": "agent.feedback", "agent_id": to, "payload": { "from": "supervisor", "errors": [text] } })
}

pub(crate) fn publish(broker: Http, message: &Value) {
    let answer = broker.post("/publish", message);
    assert_eq!((answer.status, answer.body.len()), (202, 0), "{message}: {answer:?}");
}

/// A poll: the messages, and where the next one goes on.
pub(crate) fn poll(broker: Http, agent: &str, since: u64) -> (Vec<Value>, u64) {
    let answer = broker.get(&format!("/messages/{agent}?since={since}&numbered=1"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let it = answer.json();
    (it["messages"].as_array().unwrap().clone(), it["last_seq"].as_u64().unwrap())
}

/// A connection that is kept.
pub(crate) struct Kept {
    pub(crate) stream: TcpStream,
    pub(crate) broker: Http,
}

impl Kept {
    pub(crate) fn to(broker: Http) -> Self {
        Self { stream: broker.connect(), broker }
    }

    pub(crate) fn publish(&mut self, message: &Value) -> std::io::Result<Answer> {
        let host = format!("127.0.0.1:{}", self.broker.port);
        let headers = [("Host", host.as_str()), ("Content-Type", "application/json")];
        self.stream.write_all(&self.broker.bytes(
            "POST /publish",
            &headers,
            message.to_string().as_bytes(),
        ))?;
        Answer::read(&mut self.stream, false)
    }
}
