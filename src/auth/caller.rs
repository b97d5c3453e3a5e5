//! Callers over loopback HTTP: processes of this user, each request of which may speak as an agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::keys::KeyRing;
use super::loopback::holders;
use super::{Rejected, role};
use crate::base::AgentId;
use crate::domain::{Door, Principal, Token};

/// Whoever sent a request that was let in.
#[derive(Clone)]
pub struct Caller {
    door: Door,
    keys: Arc<KeyRing>,
    token: Option<Arc<Token>>,
    socket: Option<u32>,
}

impl Caller {
    /// A process of this user at a door, as the kernel says; `keys` tells which names are reserved.
    pub fn peer(door: Door, keys: Arc<KeyRing>) -> Self {
        Self { door, keys, token: None, socket: None }
    }

    /// The same with the number of its socket, where the system tells it.
    #[must_use]
    pub fn at(self, socket: Option<u32>) -> Self {
        Self { socket, ..self }
    }

    /// The process that asks; `None` where that cannot be found out. Blocking, for some milliseconds: it is looked for
    /// among all processes.
    pub fn process(&self) -> Option<i32> {
        let socket = self.socket?;
        holders(BTreeSet::from([socket])).remove(&socket)
    }

    /// The same with a token that is good.
    #[must_use]
    pub fn with(self, token: Option<Arc<Token>>) -> Self {
        Self { token, ..self }
    }

    /// Whose token the request has shown, if it has shown one.
    pub fn agent(&self) -> Option<&AgentId> {
        self.token.as_ref().map(|token| &token.agent)
    }

    /// The token that the request has shown, if it has shown one.
    pub fn token(&self) -> Option<&Arc<Token>> {
        self.token.as_ref()
    }

    /// Whether somebody has a key under a name of which this is true, or the daemon keeps it for itself. A door with
    /// several spellings of a name asks for all of them.
    pub fn is_reserved(&self, same: impl Fn(&AgentId) -> bool) -> bool {
        self.keys.list().iter().any(|key| same(&key.ident))
    }

    /// The caller under the name that it gives itself: that of its token, or one that is free for anyone to take.
    /// Whether somebody has a token for it that was not shown is for the core to say.
    ///
    /// # Errors
    /// [`Rejected::OtherName`], [`Rejected::Reserved`].
    pub fn speaks_as(&self, agent: AgentId) -> Result<Principal, Rejected> {
        match &self.token {
            Some(token) if token.agent == agent => Ok(role::bearer(token, self.door)),
            Some(_) => Err(Rejected::OtherName),
            None if role::is_reserved(&agent) || self.keys.is_reserved(&agent) => Err(Rejected::Reserved),
            None if self.door == Door::A6s => Ok(role::editor(agent)),
            None if self.door == Door::Mcp => Ok(role::hosted(agent)),
            None => Ok(role::on_loopback(agent, self.door)),
        }
    }
}
