//! The accept loop, which no peer can end.
//!
//! When there are too many connections, or descriptors run out, it closes some; see `connections`.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Stream;
use super::connections::Connections;
pub use super::connections::{AllDoors, Busy, Capacity, Guard};

/// The first pause when the system has no descriptors left; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause: peers wait at most this long once there are descriptors again.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A socket or pipe that listens for connections.
pub trait Listening: Send + Sync {
    /// An accepted connection.
    type Stream: Send + 'static;

    /// Returns the next connection, whose peer has proved nothing. May be dropped while it waits.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Returns the address, for people and logs.
    fn address(&self) -> String;
}

/// Serves connections with `serve` until `stop`, then gives open connections `grace` to finish, and closes the
/// rest. The socket is removed as soon as `stop` is cancelled.
pub async fn accept_loop<L, S, F>(
    mut bound: L,
    capacity: impl Into<Capacity>,
    stop: CancellationToken,
    grace: Duration,
    serve: S,
) where
    L: Listening,
    S: Fn(L::Stream, Guard) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let connections = Connections::new(capacity.into());
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
                    tracing::warn!(address = bound.address(), error = %e, "cannot accept; pausing");
                    connections.make_room();
                    tokio::select! { () = stop.cancelled() => break, () = sleep(pause) => {} }
                    pause = (2 * pause).min(PAUSE_MAX);
                }
                continue;
            }
        };
        pause = PAUSE_MIN;
        let Some((entry, close)) = connections.enter() else {
            tracing::warn!(address = bound.address(), "full; one refused");
            continue;
        };
        // This is a token of its own: waiting for a shared one takes a lock for which all connections would queue.
        let stop = stop.child_token();
        let guard = entry.guard(stop);
        let work = serve(stream, guard);
        tasks.spawn(async move {
            let _entry = entry;
            tokio::select! { biased; () = close.cancelled() => {}, () = work => {} }
        });
        // A connection that was closed to make room may not have ended yet.
        connections.settled().await;
    }
    drop(bound);
    tasks.close();
    if timeout(grace, tasks.wait()).await.is_err() {
        connections.close_all();
        tasks.wait().await;
    }
}

/// Serves a connection that was made without an address, until its end or `stop`; then it has `grace` to finish.
pub async fn serve_one<S, F>(stream: Stream, stop: CancellationToken, grace: Duration, serve: S)
where
    S: FnOnce(Stream, Guard) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let connections = Connections::new(1.into());
    let Some((entry, _close)) = connections.enter() else { return };
    let guard = entry.guard(stop.child_token());
    let mut work = std::pin::pin!(serve(stream, guard));
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work.as_mut() => return,
    }
    // The work is finished, or cut off after that time.
    let _finished = timeout(grace, work).await;
}

/// Returns whether another try at once would fail again. A peer that has given up meanwhile is no reason to wait.
fn wait_after(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    !matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
