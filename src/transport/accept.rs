//! The accept loop: nothing that peers do ends it.
//!
//! Connections are counted. When there are too many, or descriptors run out, the oldest whose peer has proved
//! nothing is closed: a crowd of silent connections costs strangers, never those who are at work.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Stream;
use super::listen::Bound;

/// The first pause when the system has no descriptors left; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause; peers wait no longer once there are descriptors again.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A door's connections.
#[derive(Debug)]
struct Connections {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By age, the oldest first.
    unproven: BTreeMap<u64, CancellationToken>,
    proven: BTreeMap<u64, CancellationToken>,
}

/// One connection's place among those of its door; held by whoever serves it.
#[derive(Clone, Debug)]
pub struct Guard {
    id: u64,
    connections: Arc<Connections>,
    stop: CancellationToken,
}

impl Guard {
    /// The peer has proved who it is: the connection is not closed to make room for others.
    pub fn proven(&self) {
        let mut open = self.connections.open();
        if let Some(close) = open.unproven.remove(&self.id) {
            open.proven.insert(self.id, close);
        }
    }

    /// Returns when the door is about to close: finish what was begun, begin nothing new. Cheapest when it is made
    /// once for a connection and kept.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop.clone().cancelled_owned()
    }
}

/// Takes the connection off the list however its task ends.
struct Entry {
    id: u64,
    connections: Arc<Connections>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.unproven.remove(&self.id);
        open.proven.remove(&self.id);
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        // The maps are whole between any two of their operations, so a panic elsewhere has not harmed them.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection, closing an older one if need be. `None` when all others are proven.
    fn enter(self: &Arc<Self>) -> Option<(Entry, CancellationToken)> {
        let mut open = self.open();
        if open.unproven.len() + open.proven.len() >= self.max && !open.close_oldest_unproven() {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let close = CancellationToken::new();
        open.unproven.insert(id, close.clone());
        Some((Entry { id, connections: Arc::clone(self) }, close))
    }
}

impl Open {
    fn close_oldest_unproven(&mut self) -> bool {
        let oldest = self.unproven.pop_first();
        oldest.as_ref().inspect(|(_, close)| close.cancel()).is_some()
    }
}

/// Serves connections with `serve` until `stop`, then gives those that are open `grace` to finish, and closes
/// what is left. The socket is gone as soon as `stop` is.
pub async fn accept_loop<S, F>(
    bound: Bound,
    connections_max: usize,
    stop: CancellationToken,
    grace: Duration,
    serve: S,
) where
    S: Fn(Stream, Guard) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let connections = Arc::new(Connections { max: connections_max, open: Mutex::default() });
    let tasks = TaskTracker::new();
    let mut pause = PAUSE_MIN;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = bound.accept() => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(e) => {
                if wait_after(&e) {
                    tracing::warn!(address = %bound.path().display(), error = %e, "cannot accept; pausing");
                    connections.open().close_oldest_unproven();
                    tokio::select! { () = stop.cancelled() => break, () = sleep(pause) => {} }
                    pause = (2 * pause).min(PAUSE_MAX);
                }
                continue;
            }
        };
        pause = PAUSE_MIN;
        let Some((entry, close)) = connections.enter() else {
            tracing::warn!(address = %bound.path().display(), connections_max, "full; one refused");
            continue;
        };
        // A token of its own: waiting for a shared one takes a lock that all connections would queue for.
        let stop = stop.child_token();
        let guard = Guard { id: entry.id, connections: Arc::clone(&connections), stop };
        let work = serve(stream, guard);
        tasks.spawn(async move {
            let _entry = entry;
            tokio::select! { biased; () = close.cancelled() => {}, () = work => {} }
        });
    }
    drop(bound);
    tasks.close();
    if timeout(grace, tasks.wait()).await.is_err() {
        {
            let open = connections.open();
            open.unproven.values().chain(open.proven.values()).for_each(CancellationToken::cancel);
        }
        tasks.wait().await;
    }
}

/// Serves one connection that was made without an address, until its end or `stop`, after which it has `grace`.
pub async fn serve_one<S, F>(stream: Stream, stop: CancellationToken, grace: Duration, serve: S)
where
    S: FnOnce(Stream, Guard) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let connections = Arc::new(Connections { max: 1, open: Mutex::default() });
    let Some((_entry, _close)) = connections.enter() else { return };
    let guard = Guard { id: 0, connections: Arc::clone(&connections), stop: stop.child_token() };
    let mut work = std::pin::pin!(serve(stream, guard));
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work.as_mut() => return,
    }
    // What was begun is finished, or cut off.
    let _finished = timeout(grace, work).await;
}

/// Whether trying again at once would fail again. A peer that has given up meanwhile is no reason to wait.
fn wait_after(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    !matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
