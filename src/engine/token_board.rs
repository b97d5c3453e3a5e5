//! Tokens and the names of other hosts' agents as they are committed, which doors read without asking the engine's thread, and the notice
//! that they have changed.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::Notify;

use provost_base::{AgentId, Digest, Timestamp};
use provost_domain::{Change, HostNames, Proof, State, Tokens};

/// The tokens of one engine.
pub(super) struct TokenBoard {
    tokens: RwLock<Tokens>,
    names: RwLock<HostNames>,
    changed: Arc<Notify>,
}

impl TokenBoard {
    pub(super) fn new(state: &State) -> Self {
        let (tokens, names) = (RwLock::new(state.tokens.clone()), RwLock::new(HostNames::of(state)));
        Self { tokens, names, changed: Arc::default() }
    }

    /// Follows a change to the tokens.
    pub(super) fn follow(&self, change: &Change) {
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).follow(change);
        self.changed.notify_waiters();
    }

    /// Follows a change to the places of agents.
    pub(super) fn follow_names(&self, change: &Change) {
        if self.names.write().unwrap_or_else(PoisonError::into_inner).follow(change) {
            self.changed.notify_waiters();
        }
    }

    /// Replaces the tokens and the names.
    pub(super) fn replace(&self, state: &State) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = state.tokens.clone();
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = HostNames::of(state);
        self.changed.notify_waiters();
    }

    /// Returns the names of other hosts' agents.
    pub(super) fn names(&self) -> RwLockReadGuard<'_, HostNames> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies listeners that the time has gone on faster than timers know, so that tokens may have run out.
    pub(super) fn time_jumped(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    pub(super) fn is_taken(&self, agent: &AgentId, proof: Proof, now: Timestamp) -> bool {
        self.read().is_taken(agent, proof, now)
    }

    /// Returns for how long a token is valid from now; `None` if it is not valid.
    pub(super) fn good_for(&self, token: &Digest, now: Timestamp) -> Option<Duration> {
        self.read().good(token, now).map(|it| Duration::from_millis(it.expires_at.since_ms(now)))
    }

    fn read(&self) -> RwLockReadGuard<'_, Tokens> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner)
    }
}
