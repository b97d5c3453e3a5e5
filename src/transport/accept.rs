//! The accept loop: nothing that peers do ends it.
//!
//! Connections are counted. When there are too many, or descriptors run out, the one that has been idle longest is
//! closed: of peers that keep a proven connection, those that have proved nothing; of peers that ask and are answered,
//! those that ask nothing. A crowd of silent connections costs strangers, never those who are at work.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Stream;

/// The first pause when the system has no descriptors left; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause; peers wait no longer once there are descriptors again.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Something that listens.
pub trait Listening: Send + Sync {
    /// A connection.
    type Stream: Send + 'static;

    /// The next connection, whose peer has proved nothing. May be dropped while it waits.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Where, for people and logs.
    fn address(&self) -> String;
}

/// A door's connections.
#[derive(Debug)]
struct Connections {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// Counts connections and turns.
    next: u64,
    all: BTreeMap<u64, Connection>,
    /// Those that may be closed to make room, by their turn: the one that has been idle longest first.
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Connection {
    close: CancellationToken,
    /// Its turn among the idle ones, if it is one.
    turn: Option<u64>,
    /// How much it is busy with.
    busy: usize,
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
        self.connections.open().keep(self.id);
    }

    /// The peer has proved who it is and is being answered: the connection is not closed to make room for others as
    /// long as the result lives, and is idle again afterwards.
    pub fn busy(&self) -> Busy {
        let mut open = self.connections.open();
        open.keep(self.id);
        if let Some(connection) = open.all.get_mut(&self.id) {
            connection.busy += 1;
        }
        Busy { id: self.id, connections: Arc::clone(&self.connections) }
    }

    /// Returns when the door is about to close: finish what was begun, begin nothing new. Cheapest when it is made
    /// once for a connection and kept.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop.clone().cancelled_owned()
    }
}

/// Keeps a connection from being closed to make room; see [`Guard::busy`].
#[derive(Debug)]
pub struct Busy {
    id: u64,
    connections: Arc<Connections>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.connections.open().rest(self.id);
    }
}

/// Takes the connection off the list however its task ends.
struct Entry {
    id: u64,
    connections: Arc<Connections>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().forget(self.id);
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        // The maps are whole between any two of their operations, so a panic elsewhere has not harmed them.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection, closing an idle one if need be. `None` when there is none.
    fn enter(self: &Arc<Self>) -> Option<(Entry, CancellationToken)> {
        let mut open = self.open();
        if open.all.len() >= self.max && !open.close_longest_idle() {
            return None;
        }
        let close = CancellationToken::new();
        let id = open.number();
        open.all.insert(id, Connection { close: close.clone(), turn: Some(id), busy: 0 });
        open.idle.insert(id, id);
        Some((Entry { id, connections: Arc::clone(self) }, close))
    }
}

impl Open {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// It is not idle from now on.
    fn keep(&mut self, id: u64) {
        let turn = self.all.get_mut(&id).and_then(|connection| connection.turn.take());
        turn.and_then(|turn| self.idle.remove(&turn));
    }

    /// It is busy with one thing less, and idle after the last.
    fn rest(&mut self, id: u64) {
        let turn = self.number();
        let Some(connection) = self.all.get_mut(&id) else { return };
        connection.busy = connection.busy.saturating_sub(1);
        if connection.busy == 0 {
            connection.turn = Some(turn);
            self.idle.insert(turn, id);
        }
    }

    fn forget(&mut self, id: u64) -> Option<Connection> {
        let connection = self.all.remove(&id)?;
        connection.turn.and_then(|turn| self.idle.remove(&turn));
        Some(connection)
    }

    fn close_longest_idle(&mut self) -> bool {
        let id = self.idle.first_key_value().map(|(_, id)| *id);
        let closed = id.and_then(|id| self.forget(id));
        closed.inspect(|it| it.close.cancel()).is_some()
    }
}

/// Serves connections with `serve` until `stop`, then gives those that are open `grace` to finish, and closes
/// what is left. The socket is gone as soon as `stop` is.
pub async fn accept_loop<L, S, F>(
    bound: L,
    connections_max: usize,
    stop: CancellationToken,
    grace: Duration,
    serve: S,
) where
    L: Listening,
    S: Fn(L::Stream, Guard) -> F,
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
                    tracing::warn!(address = bound.address(), error = %e, "cannot accept; pausing");
                    connections.open().close_longest_idle();
                    tokio::select! { () = stop.cancelled() => break, () = sleep(pause) => {} }
                    pause = (2 * pause).min(PAUSE_MAX);
                }
                continue;
            }
        };
        pause = PAUSE_MIN;
        let Some((entry, close)) = connections.enter() else {
            tracing::warn!(address = bound.address(), connections_max, "full; one refused");
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
            open.all.values().for_each(|connection| connection.close.cancel());
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
