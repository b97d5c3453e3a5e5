//! The connections of one door: counted, in all and by process, and some of them closed to make room for others.
//!
//! When there are too many, the one that has been idle longest is closed: of peers that keep a proven connection, those
//! that have proved nothing; of peers that ask and are answered, those that ask nothing. A crowd of silent connections
//! costs strangers, never those who are at work. Where it is known which process has which connections, one process can
//! be kept to its share: it then loses its own, and nobody else's.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// A door's connections.
#[derive(Debug)]
pub(super) struct Connections {
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

/// Who has a connection, as far as anybody has looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    Unknown,
    /// Whoever holds this socket.
    Socket(u32),
    /// This process; 0 for those that cannot be found, together.
    Process(i32),
}

#[derive(Debug)]
struct Connection {
    close: CancellationToken,
    whose: Whose,
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

    /// Remembers the number of the peer's socket, by which its process can be found.
    pub fn has_socket(&self, socket: u32) {
        if let Some(connection) = self.connections.open().all.get_mut(&self.id) {
            connection.whose = Whose::Socket(socket);
        }
    }

    /// Whether its door has more connections than this.
    pub fn is_among_more_than(&self, count: usize) -> bool {
        self.connections.open().all.len() > count
    }

    /// Sockets of its door's connections whose process nobody has looked for; empty when that of this one is known.
    pub fn unknown_sockets(&self) -> BTreeSet<u32> {
        let open = self.connections.open();
        let socket = |it: &Connection| match it.whose {
            Whose::Socket(socket) => Some(socket),
            Whose::Unknown | Whose::Process(_) => None,
        };
        match open.all.get(&self.id).and_then(socket) {
            Some(_) => open.all.values().filter_map(socket).collect(),
            None => BTreeSet::new(),
        }
    }

    /// Remembers which process has which of the sockets that were looked for. Those that are not found count as one
    /// process's.
    pub fn found(&self, looked_for: &BTreeSet<u32>, processes: &BTreeMap<u32, i32>) {
        for connection in self.connections.open().all.values_mut() {
            if let Whose::Socket(socket) = connection.whose
                && looked_for.contains(&socket)
            {
                connection.whose = Whose::Process(processes.get(&socket).copied().unwrap_or(0));
            }
        }
    }

    /// Whether the process that has this connection has no more of them than `most`, once those of them that have been
    /// idle longest are closed. Always, where it is not known.
    pub fn fits(&self, most: usize) -> bool {
        let mut open = self.connections.open();
        let Some(Whose::Process(process)) = open.all.get(&self.id).map(|it| it.whose) else { return true };
        let of_process = |it: &Connection| it.whose == Whose::Process(process);
        let count = open.all.values().filter(|it| of_process(it)).count();
        for _ in most..count {
            let others = open.idle.values().filter(|id| **id != self.id);
            let oldest = others.copied().find(|id| open.all.get(id).is_some_and(of_process));
            let Some(closed) = oldest.and_then(|id| open.forget(id)) else { return false };
            closed.close.cancel();
        }
        true
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
pub(super) struct Entry {
    id: u64,
    connections: Arc<Connections>,
}

impl Entry {
    /// What its server holds; the door closes when `stop` says so.
    pub(super) fn guard(&self, stop: CancellationToken) -> Guard {
        Guard { id: self.id, connections: Arc::clone(&self.connections), stop }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().forget(self.id);
    }
}

impl Connections {
    pub(super) fn new(max: usize) -> Self {
        Self { max, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // The maps are whole between any two of their operations, so a panic elsewhere has not harmed them.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection, closing an idle one if need be. `None` when there is none.
    pub(super) fn enter(self: &Arc<Self>) -> Option<(Entry, CancellationToken)> {
        let mut open = self.open();
        if open.all.len() >= self.max && !open.close_longest_idle() {
            return None;
        }
        let close = CancellationToken::new();
        let id = open.number();
        open.all
            .insert(id, Connection { close: close.clone(), whose: Whose::Unknown, turn: Some(id), busy: 0 });
        open.idle.insert(id, id);
        Some((Entry { id, connections: Arc::clone(self) }, close))
    }

    /// Closes the one that has been idle longest, if one is idle.
    pub(super) fn make_room(&self) {
        self.open().close_longest_idle();
    }

    pub(super) fn close_all(&self) {
        self.open().all.values().for_each(|connection| connection.close.cancel());
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
