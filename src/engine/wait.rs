//! Waits until a look at the state finds something: an event wakes the caller, and no timer polls. And repeats a
//! request until a busy core takes it.

use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Engine, Listener};
use provost_domain::{Event, Refusal};

/// The pause between two tries of a request that the core could not take at the moment.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_LAST: Duration = Duration::from_secs(2);
/// The time for which a request is repeated to a core that does not take it while the daemon stops.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// The reason why a wait for an event has ended.
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
    /// Repeats a request until the core takes it, so that it is not lost while this process lives: a core that is busy, or
    /// whose store takes no writes, is asked again. Once the daemon is stopping, this goes on only for a moment.
    ///
    /// # Errors
    /// The core's answer, unless it cannot take requests; that, too, if the daemon is stopping or the engine has
    /// stopped.
    pub async fn insist<T, F>(
        &self,
        stopping: Option<&CancellationToken>,
        mut ask: impl FnMut() -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Refusal>>,
    {
        let mut pause = AGAIN_FIRST;
        let mut last = None;
        loop {
            let refusal = match ask().await {
                Err(refusal @ (Refusal::Busy { .. } | Refusal::Unavailable { .. } | Refusal::Stopping)) => {
                    refusal
                }
                answer => return answer,
            };
            if stopping.is_some_and(CancellationToken::is_cancelled) {
                let until = *last.get_or_insert_with(|| Instant::now() + LAST_TRIES);
                if Instant::now() >= until {
                    return Err(refusal);
                }
            }
            tokio::select! {
                () = self.over.cancelled() => return Err(refusal),
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(AGAIN_LAST);
        }
    }

    /// Looks, and looks again after each event that concerns the caller, until the look finds something. Returns
    /// `None` if the time is up before.
    ///
    /// The subscription precedes the first look, so that no event falls between the two.
    ///
    /// # Errors
    /// The errors of the look, and [`Refusal::Unavailable`] if the engine has stopped.
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
                    return Err(Refusal::Stopping);
                }
            }
        }
    }
}
