//! Counts which process has how many of a door's connections, so that the process that has most gives way.
//!
//! The door asks only when it is full: to find one process among all takes milliseconds, and before that no
//! process keeps another one out. One search finds the processes of all connections that have none yet.

use tokio::sync::Semaphore;

use provost_auth::loopback::{KNOWS_PEERS, holders};
use provost_base::limits::LOOPBACK_SPARE_MAX;
use provost_transport::accept::Guard;

/// Looks for the processes of one door's peers, one look at a time.
pub(super) struct ProcessLimit(Semaphore);

impl ProcessLimit {
    pub(super) fn new() -> Self {
        Self(Semaphore::new(1))
    }

    /// Whether a connection may stay; see [`Guard::makes_room`]. Where the system does not say whose a connection is, the
    /// accept loop's bound is the only one.
    pub(super) async fn admits(&self, guard: &Guard) -> bool {
        if !KNOWS_PEERS || !guard.is_among_too_many() {
            return true;
        }
        let Ok(_turn) = self.0.acquire().await else { return false };
        // An earlier search may have found this one, too, and have made room.
        if !guard.is_among_too_many() {
            return true;
        }
        let unknown = guard.unknown_sockets();
        if !unknown.is_empty() {
            let sockets = unknown.clone();
            let found = tokio::task::spawn_blocking(move || holders(sockets)).await;
            // Without a descriptor to look with there is none for this connection either.
            let Ok(Ok(found)) = found else { return false };
            guard.found(&unknown, &found);
        }
        guard.makes_room(LOOPBACK_SPARE_MAX)
    }
}
