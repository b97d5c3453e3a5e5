//! The service manager that has started the daemon, if it wants reports about the daemon's state: systemd's `sd_notify`.
//!
//! A daemon in the background reports nothing: a command within another service may have started it, whose socket it
//! would find in its environment.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};

use super::Start;
use provost_base::limits::STORE_OPENS_US_MAX;
use provost_domain::view::TaskCounts;
use provost_engine::Engine;

/// The supervisor, if there is one.
#[derive(Clone, Copy)]
pub(super) struct Supervisor {
    is_told: bool,
}

impl Supervisor {
    pub(super) fn of(start: &Start) -> Self {
        Self { is_told: start.foreground && std::env::var_os("NOTIFY_SOCKET").is_some() }
    }

    /// Checks whether the daemon has one.
    pub(super) fn is_there(self) -> bool {
        self.is_told
    }

    /// Asks for more time to start.
    pub(super) fn starts_later(self) {
        self.tell(NotifyState::ExtendTimeoutUsec(STORE_OPENS_US_MAX));
    }

    /// Reports that the daemon takes requests.
    pub(super) fn is_ready(self) {
        self.tell(NotifyState::Ready);
    }

    /// Reports that the daemon is ending.
    pub(super) fn is_stopping(self) {
        self.tell(NotifyState::Stopping);
    }

    /// Returns how often the watchdog has to be fed, if there is one: twice in its time.
    pub(super) fn wants_word_every(self) -> Option<Duration> {
        if self.is_told { sd_notify::watchdog_enabled().map(|limit| limit / 2) } else { None }
    }

    /// Feeds the watchdog each time that the engine has answered. If the engine stands still, the manager ends the daemon.
    pub(super) async fn feed(self, engine: Engine, every: Duration) {
        let mut due = interval(every.max(Duration::from_millis(1)));
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            match engine.view(TaskCounts).await {
                Ok(_) => self.tell(NotifyState::Watchdog),
                Err(refusal) => {
                    tracing::warn!(%refusal, "the watchdog is not fed: the engine does not answer")
                }
            }
        }
    }

    fn tell(self, state: NotifyState<'_>) {
        if self.is_told
            && let Err(err) = sd_notify::notify(&[state])
        {
            tracing::warn!(%err, "the service manager is not told how the daemon is");
        }
    }
}
