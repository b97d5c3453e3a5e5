//! Callers over loopback HTTP: processes of this user, each request of which may speak as an agent.

use std::sync::Arc;

use super::keys::KeyRing;
use super::{Rejected, role};
use crate::base::AgentId;
use crate::domain::{Door, Principal};

/// Whoever sent a request that was let in.
#[derive(Clone)]
pub struct Caller {
    door: Door,
    keys: Arc<KeyRing>,
}

impl Caller {
    /// A process of this user at a door, as the kernel says; `keys` tells which names are reserved.
    pub fn peer(door: Door, keys: Arc<KeyRing>) -> Self {
        Self { door, keys }
    }

    /// The caller under the name that it gives itself, which must be free for anyone to take.
    ///
    /// # Errors
    /// [`Rejected::Reserved`].
    pub fn speaks_as(&self, agent: AgentId) -> Result<Principal, Rejected> {
        if role::is_reserved(&agent) || self.keys.is_reserved(&agent) {
            return Err(Rejected::Reserved);
        }
        Ok(role::on_loopback(agent, self.door))
    }
}
