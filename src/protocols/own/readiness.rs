//! Whether the daemon can carry out what it is asked, for who asks that from outside.

use std::time::Duration;

use tokio::time::timeout;

use super::Own;
use provost_base::limits::{READY_ASK_MS_MAX, READY_STORE_MS_MAX};
use provost_domain::view::TaskCounts;

/// Why a daemon takes nothing at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotReady {
    /// A word for programs: `starting`, `draining`, `engine` or `store`.
    pub(crate) reason: &'static str,
    /// A sentence for people, without anything of the store's own words.
    pub(crate) says: &'static str,
}

impl Own {
    /// Asks the engine for something, which has it look at its store, and says what keeps the daemon from taking requests.
    pub(crate) async fn not_ready(&self) -> Option<NotReady> {
        let engine = self.0.provost.engine();
        if engine.is_over() {
            return Some(NotReady {
                reason: "engine",
                says: "the engine has ended; the daemon's log has the cause",
            });
        }
        let silent = || {
            let limit = Duration::from_millis(READY_STORE_MS_MAX);
            engine.measures().observed().is_some_and(|it| it.store_silent_for() > limit)
        };
        // The engine looks at its store behind an answer, so the second one has what the first has found.
        for _ in 0..2 {
            let asked = timeout(Duration::from_millis(READY_ASK_MS_MAX), engine.view(TaskCounts)).await;
            if !matches!(asked, Ok(Ok(_))) {
                return Some(NotReady { reason: "engine", says: "the engine does not answer in time" });
            }
            if engine.trouble().is_some() {
                return Some(NotReady {
                    reason: "store",
                    says: "the store takes nothing; `provost status` says why",
                });
            }
            if !silent() {
                return None;
            }
        }
        Some(NotReady { reason: "store", says: "the store has not answered for ten seconds" })
    }
}
