//! Tells probes from outside whether the daemon can carry out requests.

use std::time::Duration;

use tokio::time::timeout;

use super::Own;
use provost_base::limits::{READY_ASK_MS_MAX, READY_STORE_MS_MAX};
use provost_domain::view::TaskCounts;

/// The reason why a daemon accepts no requests now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotReady {
    /// A word for programs: `starting`, `draining`, `engine` or `store`.
    pub(crate) reason: &'static str,
    /// A sentence for people, without any text of the store.
    pub(crate) says: &'static str,
}

impl Own {
    /// Queries the engine, which makes it check its store, and returns what keeps the daemon from accepting requests.
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
        // The engine checks its store after an answer, so the second answer shows the result of the first check.
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
