//! Callers over loopback HTTP: processes of this user. Each of their requests may speak as an agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Rejected;
use super::line::Line;
use super::loopback::holders;
use super::names::{HoldsFor, Names, is_same};
use provost_base::AgentId;
use provost_domain::{Door, Principal, ProcessMark, Proof, Token};

/// The sender of a request that was let in.
#[derive(Clone)]
pub struct Caller {
    door: Door,
    names: Arc<Names>,
    token: Option<Arc<Token>>,
    socket: Option<u32>,
    line: Arc<Line>,
}

impl Caller {
    /// A process of this user at a door, as the kernel says; `names` tells which are free.
    pub fn peer(door: Door, names: Arc<Names>) -> Self {
        Self { door, names, token: None, socket: None, line: Arc::default() }
    }

    /// The same with the number of its socket, where the system tells it.
    #[must_use]
    pub fn at(self, socket: Option<u32>) -> Self {
        Self { socket, ..self }
    }

    /// The same with the process that asks and those above it in its session, where they were looked for.
    #[must_use]
    pub fn from_line(self, line: Arc<Line>) -> Self {
        Self { line, ..self }
    }

    /// The process that asks; `None` where that cannot be found out. Blocking, for some milliseconds: it is
    /// looked for among all processes.
    pub fn process(&self) -> Option<i32> {
        let socket = self.socket?;
        holders(BTreeSet::from([socket])).ok()?.remove(&socket)
    }

    /// The process that asks, where it was looked for and found.
    pub fn began_at(&self) -> Option<ProcessMark> {
        self.line.in_session().next()
    }

    /// The same caller, as it would be let in at another door for processes of this user.
    #[must_use]
    pub fn as_at(&self, door: Door) -> Self {
        Self { door, ..self.clone() }
    }

    /// The same caller, with a token that is good.
    #[must_use]
    pub fn with(self, token: Option<Arc<Token>>) -> Self {
        Self { token, ..self }
    }

    /// The agent of the token that the request has shown, if it has shown one.
    pub fn agent(&self) -> Option<&AgentId> {
        self.token.as_ref().map(|token| &token.agent)
    }

    /// The token that the request has shown, if it has shown one.
    pub fn token(&self) -> Option<&Arc<Token>> {
        self.token.as_ref()
    }

    /// The caller under the name that it gives itself: that of its token in any spelling, or one that is free
    /// for any agent to take.
    ///
    /// # Errors
    /// [`Rejected::OtherName`], [`Rejected::Reserved`], [`Rejected::Taken`].
    pub fn speaks_as(&self, agent: AgentId) -> Result<Principal, Rejected> {
        self.names.local(agent, self.door, self.token.as_deref(), &self.line)
    }

    /// Does the same for a door whose messages carry the name: if an agent of another host has the name, the caller is refused, and gets no
    /// longer name.
    ///
    /// # Errors
    /// [`Rejected::OtherHost`], and what [`Caller::speaks_as`] says.
    pub fn speaks_just_as(&self, agent: AgentId) -> Result<Principal, Rejected> {
        self.names.just_as_said(agent, self.door, self.token.as_deref(), &self.line)
    }

    /// Whether the token that the request has shown, if it has shown one, is still good.
    ///
    /// # Errors
    /// [`Rejected::BadToken`].
    pub fn still_proven(&self) -> Result<HoldsFor, Rejected> {
        self.names.is_good(self.token.as_ref().map(|it| &it.digest))
    }

    /// Whether the caller may still use the name under which it spoke.
    ///
    /// # Errors
    /// The same errors as [`Names::still`].
    pub fn still(&self, who: &Principal) -> Result<HoldsFor, Rejected> {
        self.names.still(who, self.token.as_ref().map(|it| &it.digest))
    }

    /// Whether the caller may read what is kept for this name, which it does not say to be its own.
    ///
    /// # Errors
    /// [`Rejected::BadToken`] where its token has ended; what [`Caller::speaks_as`] says of a name
    /// that is another agent's.
    pub fn reads(&self, agent: &AgentId) -> Result<HoldsFor, Rejected> {
        let holds_for = self.still_proven()?;
        if !self.agent().is_some_and(|own| is_same(own, agent)) {
            self.names.is_free(agent, Proof::PeerUid)?;
        }
        Ok(holds_for)
    }

    /// The names in which its proof is looked for.
    pub fn names(&self) -> &Names {
        &self.names
    }
}
