//! On this system the daemon reports its state to no service manager.

use std::time::Duration;

use super::Start;
use provost_engine::Engine;

/// No supervisor.
#[derive(Clone, Copy)]
pub(super) struct Supervisor;

impl Supervisor {
    pub(super) fn of(_start: &Start) -> Self {
        Self
    }

    /// Returns `false`.
    pub(super) fn is_there(self) -> bool {
        false
    }

    /// Does nothing.
    pub(super) fn starts_later(self) {}

    /// Does nothing.
    pub(super) fn is_ready(self) {}

    /// Does nothing.
    pub(super) fn is_stopping(self) {}

    /// Returns `None`: there is no watchdog.
    pub(super) fn wants_word_every(self) -> Option<Duration> {
        None
    }

    /// Does nothing.
    pub(super) async fn feed(self, _engine: Engine, _every: Duration) {}
}
