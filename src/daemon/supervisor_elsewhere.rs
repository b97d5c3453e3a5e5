//! No service manager of this system is told how the daemon is.

use std::time::Duration;

use super::Start;
use provost_engine::Engine;

/// No program is told.
#[derive(Clone, Copy)]
pub(super) struct Supervisor;

impl Supervisor {
    pub(super) fn of(_start: &Start) -> Self {
        Self
    }

    /// The daemon takes requests.
    pub(super) fn is_ready(self) {}

    /// It ends.
    pub(super) fn is_stopping(self) {}

    /// There is no watchdog.
    pub(super) fn wants_word_every(self) -> Option<Duration> {
        None
    }

    /// Nothing is fed.
    pub(super) async fn feed(self, _engine: Engine, _every: Duration) {}
}
