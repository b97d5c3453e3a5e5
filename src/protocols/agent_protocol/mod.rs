//! Agent Protocol: JSON over loopback HTTP, for agents that coordinate claims on files, tasks and hand-offs.
//!
//! Proof is the peer: a process of this user. Promises: every answer is JSON. Leaves who may ask at all to the shell
//! around it.
#![forbid(unsafe_code)]

use hyper::StatusCode;

use super::loopback::{Answer, Asked, LoopbackDoor, whole};
use crate::base::limits::AGENT_PROTOCOL_BODY_BYTES_MAX;
use crate::domain::Door;

/// The door.
#[derive(Clone, Debug, Default)]
pub struct AgentProtocol;

impl LoopbackDoor for AgentProtocol {
    fn door(&self) -> Door {
        Door::AgentProtocol
    }

    fn body_bytes_max(&self) -> usize {
        AGENT_PROTOCOL_BODY_BYTES_MAX
    }

    async fn answer(&self, _asked: Asked) -> Answer {
        fault(StatusCode::NOT_FOUND, "Not found")
    }

    fn refuse(&self) -> Answer {
        fault(StatusCode::FORBIDDEN, "Forbidden")
    }
}

/// An error in the protocol's form.
fn fault(status: StatusCode, says: &str) -> Answer {
    let body = serde_json::json!({ "error": says }).to_string();
    whole(status, "application/json; charset=utf-8", body)
}
