//! Waiting until a look at the state finds something. An event wakes the caller; no timer looks again and again.

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use super::{Engine, Listener};
use provost_domain::{Event, Refusal};

/// Why a wait for an event has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// An event that concerns the caller was committed, or the caller missed events and has to look again.
    Changed,
    /// The time is up.
    Late,
    /// The engine has stopped.
    Stopped,
}

impl Listener {
    /// Waits for an event that concerns the caller.
    pub async fn change(&mut self, until: Instant, concerns: impl Fn(&Event) -> bool) -> Woken {
        loop {
            match timeout_at(until, self.recv()).await {
                Ok(Ok(event)) if concerns(&event) => return Woken::Changed,
                Ok(Ok(_)) => {}
                // A missed event may be the one that the caller waits for.
                Ok(Err(RecvError::Lagged(_))) => return Woken::Changed,
                Ok(Err(RecvError::Closed)) => return Woken::Stopped,
                Err(_) => return Woken::Late,
            }
        }
    }
}

impl Engine {
    /// Looks, and looks again after each event that concerns the caller, until the look finds something. `None` when the
    /// time is up before.
    ///
    /// The subscription precedes the first look, so that no event falls between the two.
    ///
    /// # Errors
    /// Those of the look, and [`Refusal::Unavailable`] when the engine has stopped.
    pub async fn wait_for<T, L>(
        &self,
        until: Instant,
        concerns: impl Fn(&Event) -> bool,
        mut look: impl FnMut() -> L,
    ) -> Result<Option<T>, Refusal>
    where
        L: Future<Output = Result<Option<T>, Refusal>>,
    {
        let mut events = self.subscribe();
        loop {
            if let Some(found) = look().await? {
                return Ok(Some(found));
            }
            let woken = tokio::select! {
                biased;
                woken = events.change(until, &concerns) => woken,
                () = self.over.cancelled() => Woken::Stopped,
            };
            match woken {
                Woken::Changed => {}
                Woken::Late => return Ok(None),
                Woken::Stopped => {
                    return Err(Refusal::Unavailable { why: "it is shutting down".into() });
                }
            }
        }
    }
}
