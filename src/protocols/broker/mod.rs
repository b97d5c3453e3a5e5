//! The git-paw broker's protocol: JSON over loopback HTTP, for agents that tell each other what they do.
//!
//! Proof is the peer: a process of this user. Leaves who may ask at all to the shell around it.
#![forbid(unsafe_code)]

use hyper::StatusCode;

use super::loopback::{Answer, Asked, LoopbackDoor, empty};
use crate::base::limits::BROKER_BODY_BYTES_MAX;
use crate::domain::Door;

/// The door.
#[derive(Clone, Debug, Default)]
pub struct Broker;

impl LoopbackDoor for Broker {
    fn door(&self) -> Door {
        Door::Broker
    }

    fn body_bytes_max(&self) -> usize {
        BROKER_BODY_BYTES_MAX
    }

    async fn answer(&self, _asked: Asked) -> Answer {
        empty(StatusCode::NOT_FOUND)
    }

    fn refuse(&self) -> Answer {
        empty(StatusCode::FORBIDDEN)
    }
}
