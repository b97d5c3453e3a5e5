//! Counts the connections of a door by process, so that the process with the most gives way.
//!
//! The door asks only when it is full: finding a process among all takes milliseconds, and before that no process
//! keeps others out. A search finds the processes of all connections whose process is unknown.

use tokio::sync::Semaphore;

use provost_auth::loopback::{KNOWS_PEERS, holders};
use provost_base::limits::LOOPBACK_SPARE_MAX;
use provost_transport::accept::Guard;

/// Searches for the processes of a door's peers, one search at a time.
pub(super) struct ProcessLimit(Semaphore);

impl ProcessLimit {
    pub(super) fn new() -> Self {
        Self(Semaphore::new(1))
    }

    /// Returns whether a connection may stay; see [`Guard::makes_room`]. If the system does not say which process
    /// owns a connection, only the accept loop's bound applies.
    pub(super) async fn admits(&self, guard: &Guard) -> bool {
        if !KNOWS_PEERS || !guard.is_among_too_many() {
            return true;
        }
        let Ok(_turn) = self.0.acquire().await else { return false };
        // An earlier search may have found this process, too, and made room.
        if !guard.is_among_too_many() {
            return true;
        }
        let unknown = guard.unknown_sockets();
        if !unknown.is_empty() {
            let sockets = unknown.clone();
            let found = tokio::task::spawn_blocking(move || holders(sockets)).await;
            // Without a free descriptor for the search, there is none for this connection either.
            let Ok(Ok(found)) = found else { return false };
            guard.found(&unknown, &found);
        }
        guard.makes_room(LOOPBACK_SPARE_MAX)
    }
}
