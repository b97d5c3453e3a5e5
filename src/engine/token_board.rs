//! Tokens as they are committed, which doors read without asking the engine's thread, and the notice that
//! they have changed.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::Notify;

use provost_base::{AgentId, Digest, Timestamp};
use provost_domain::{Change, Proof, Tokens};

/// The tokens of one engine.
pub(super) struct TokenBoard {
    tokens: RwLock<Tokens>,
    changed: Arc<Notify>,
}

impl TokenBoard {
    pub(super) fn new(tokens: Tokens) -> Self {
        Self { tokens: RwLock::new(tokens), changed: Arc::default() }
    }

    /// Follows a change to the tokens.
    pub(super) fn follow(&self, change: &Change) {
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).follow(change);
        self.changed.notify_waiters();
    }

    /// Takes over all tokens.
    pub(super) fn replace(&self, tokens: Tokens) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        self.changed.notify_waiters();
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
