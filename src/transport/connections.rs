//! The connections of a door: it counts them, in all and by process, and closes some to make room for others.
//!
//! When there are too many, the door closes the one that has been idle longest: if peers keep proven connections,
//! one that has proved nothing; if peers send requests, one without a request. So a crowd of silent connections
//! displaces strangers, never working clients. If the daemon knows the process of each connection, only the process
//! with the most connections loses some; see [`Guard::makes_room`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use provost_base::limits::{
    CONNECTION_DESCRIPTORS_MAX, DESCRIPTORS_KEPT_MAX, DESCRIPTORS_KEPT_MIN, LOOPBACK_ARRIVING_MAX,
};

/// How long a door waits for closed connections to end before it accepts a further one.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// The connections of all doors of a process, which share its descriptors.
#[derive(Debug)]
pub struct AllDoors {
    max: usize,
    /// The number of open connections, including those that were told to close and have not ended.
    open: AtomicUsize,
    closed: Notify,
    doors: Mutex<Vec<Weak<Connections>>>,
}

impl AllDoors {
    /// Allows as many connections as a process with this many descriptors can have: some descriptors are kept for
    /// its own files, its workers, and the identification of peers.
    pub fn of_a_process_with(descriptors: u64) -> Arc<Self> {
        let kept = (descriptors / 4).clamp(DESCRIPTORS_KEPT_MIN, DESCRIPTORS_KEPT_MAX).min(descriptors / 2);
        let max = (descriptors - kept) / CONNECTION_DESCRIPTORS_MAX;
        Arc::new(Self {
            max: usize::try_from(max).unwrap_or(usize::MAX),
            open: AtomicUsize::new(0),
            closed: Notify::new(),
            doors: Mutex::default(),
        })
    }

    /// Returns the most connections that there may be.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Returns whether there is room for one more. If not, the door with the most connections, or else the next
    /// one, closes an idle one; several, if doors have accepted some at the same moment.
    fn have_room(&self) -> bool {
        let doors: Vec<Arc<Connections>> = {
            let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
            doors.retain(|door| door.strong_count() > 0);
            doors.iter().filter_map(Weak::upgrade).collect()
        };
        loop {
            let mut counted: Vec<_> = doors.iter().map(|door| (door.open().all.len(), door)).collect();
            if counted.iter().map(|(count, _)| count).sum::<usize>() < self.max {
                return true;
            }
            counted.sort_by(|(a, _), (b, _)| b.cmp(a));
            if !counted.iter().any(|(_, door)| door.open().close_longest_idle()) {
                return false;
            }
        }
    }

    /// Waits until connections that were told to close have ended, but not for long: the others end with the door.
    async fn settled(&self) {
        let until = Instant::now() + SETTLE_MAX;
        loop {
            let mut closed = std::pin::pin!(self.closed.notified());
            closed.as_mut().enable();
            if self.open.load(Ordering::Relaxed) <= self.max || timeout_at(until, closed).await.is_err() {
                return;
            }
        }
    }

    fn has_door(&self, door: &Arc<Connections>) {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(door));
    }
}

/// The most connections that a door may have, and the bound that it shares with others.
#[derive(Clone, Debug)]
pub struct Capacity {
    max: usize,
    all: Option<Arc<AllDoors>>,
}

impl Capacity {
    /// Allows at most this many, and no more than all doors together may have.
    pub fn within(all: &Arc<AllDoors>, max: usize) -> Self {
        Self { max, all: Some(all.clone()) }
    }
}

impl From<usize> for Capacity {
    /// Allows at most this many connections, regardless of other doors.
    fn from(max: usize) -> Self {
        Self { max, all: None }
    }
}

/// The connections of a door.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    all: Option<Arc<AllDoors>>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The next number for connections and turns.
    next: u64,
    all: BTreeMap<u64, Connection>,
    /// The connections that may be closed to make room, by their turn: the one that has been idle longest first.
    idle: BTreeMap<u64, u64>,
}

/// The process that owns a connection, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Whose {
    Unknown,
    /// The unknown owner of this socket.
    Socket(u32),
    /// This process; 0 stands for all that cannot be found.
    Process(i32),
    /// A peer that is not admitted.
    Stranger,
}

/// The connections of a process at a door.
#[derive(Debug, Default)]
struct Share {
    count: usize,
    /// The connections that may be closed without harm, the one that has been idle longest first.
    idle: VecDeque<u64>,
    /// The number of these that are spared as long as possible: the newer half may be about to send a request.
    kept: usize,
    /// The connections in use, the oldest first.
    in_use: VecDeque<u64>,
}

#[derive(Debug)]
struct Connection {
    close: CancellationToken,
    whose: Whose,
    /// Its turn among the idle ones, if it is idle.
    turn: Option<u64>,
    /// The number of its unfinished requests.
    busy: usize,
}

/// The entry of a connection among those of its door, for the task that serves it.
#[derive(Clone, Debug)]
pub struct Guard {
    id: u64,
    connections: Arc<Connections>,
    stop: CancellationToken,
}

impl Guard {
    /// Marks the peer as proven: the connection is not closed to make room for others.
    pub fn proven(&self) {
        self.connections.open().keep(self.id);
    }

    /// Marks the peer as proven and its request as being answered: the connection is not closed to make room for
    /// others as long as the result lives, and is idle again afterwards.
    pub fn busy(&self) -> Busy {
        let mut open = self.connections.open();
        open.keep(self.id);
        if let Some(connection) = open.all.get_mut(&self.id) {
            connection.busy += 1;
        }
        Busy { id: self.id, connections: Arc::clone(&self.connections) }
    }

    /// Remembers the number of the peer's socket, which leads to its process.
    pub fn has_socket(&self, socket: u32) {
        if let Some(connection) = self.connections.open().all.get_mut(&self.id) {
            connection.whose = Whose::Socket(socket);
        }
    }

    /// Remembers which process has connected.
    pub fn is_process(&self, pid: i32) {
        if let Some(connection) = self.connections.open().all.get_mut(&self.id) {
            connection.whose = Whose::Process(pid);
        }
    }

    /// Returns whether its door has more connections than may stay; see [`Guard::makes_room`].
    pub fn is_among_too_many(&self) -> bool {
        self.connections.open().all.len() > self.connections.most()
    }

    /// Returns the sockets of the door's connections whose process was not searched yet; empty if the process of
    /// this one is known.
    pub fn unknown_sockets(&self) -> BTreeSet<u32> {
        let open = self.connections.open();
        let socket = |it: &Connection| match it.whose {
            Whose::Socket(socket) => Some(socket),
            Whose::Unknown | Whose::Process(_) | Whose::Stranger => None,
        };
        match open.all.get(&self.id).and_then(socket) {
            Some(_) => open.all.values().filter_map(socket).collect(),
            None => BTreeSet::new(),
        }
    }

    /// Remembers the processes of the sockets that were searched. Sockets without a known process count as one
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

    /// Remembers that the peer is not admitted: its connection is closed before those of others.
    pub fn is_strangers(&self) {
        if let Some(connection) = self.connections.open().all.get_mut(&self.id) {
            connection.whose = Whose::Stranger;
        }
    }

    /// Decides whether this connection may stay if the door has more than may stay: somewhat fewer than the accept
    /// loop admits, which leaves room for connections that arrive or are refused. A peer that is not admitted gives
    /// way first. Then the process with the most connections loses those that have been idle longest, up to `spare`
    /// more than needed, so that not every newcomer causes a search. A process that uses all of its connections
    /// gets no further one; to a newcomer of another process it loses its oldest one. Other processes lose none.
    pub fn makes_room(&self, spare: usize) -> bool {
        let most = self.connections.most();
        self.connections.open().make_room_for(self.id, most, spare.min(most / 4))
    }

    /// Returns when the door is about to close: the server finishes its request, and begins no other. It is
    /// cheapest to make this once for a connection and to keep it.
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

/// Removes the connection from the list when its task ends in any way.
pub(super) struct Entry {
    id: u64,
    connections: Arc<Connections>,
}

impl Entry {
    /// Returns the guard for the connection's server; `stop` says when the door closes.
    pub(super) fn guard(&self, stop: CancellationToken) -> Guard {
        Guard { id: self.id, connections: Arc::clone(&self.connections), stop }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().forget(self.id);
        if let Some(all) = &self.connections.all {
            all.open.fetch_sub(1, Ordering::Relaxed);
            all.closed.notify_waiters();
        }
    }
}

impl Connections {
    pub(super) fn new(capacity: Capacity) -> Arc<Self> {
        let Capacity { max, all } = capacity;
        let connections = Arc::new(Self { max, all, open: Mutex::default() });
        if let Some(all) = &connections.all {
            all.has_door(&connections);
        }
        connections
    }

    /// Returns the most connections that may stay.
    fn most(&self) -> usize {
        let max = self.all.as_ref().map_or(self.max, |all| self.max.min(all.max));
        max - (2 * LOOPBACK_ARRIVING_MAX).min(max / 4)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // The maps are consistent between any two operations, so a panic elsewhere has not harmed them.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection, and closes an idle one if necessary. `None` if no idle one exists.
    pub(super) fn enter(self: &Arc<Self>) -> Option<(Entry, CancellationToken)> {
        if self.all.as_ref().is_some_and(|all| !all.have_room()) {
            return None;
        }
        let mut open = self.open();
        if open.all.len() >= self.max && !open.close_longest_idle() {
            return None;
        }
        let close = CancellationToken::new();
        let id = open.number();
        open.all
            .insert(id, Connection { close: close.clone(), whose: Whose::Unknown, turn: Some(id), busy: 0 });
        open.idle.insert(id, id);
        if let Some(all) = &self.all {
            all.open.fetch_add(1, Ordering::Relaxed);
        }
        Some((Entry { id, connections: Arc::clone(self) }, close))
    }

    /// Returns when all doors together have no more connections than allowed.
    pub(super) async fn settled(&self) {
        if let Some(all) = &self.all {
            all.settled().await;
        }
    }

    /// Closes the connection that has been idle longest, if one is idle.
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

    /// Marks a connection as not idle.
    fn keep(&mut self, id: u64) {
        let turn = self.all.get_mut(&id).and_then(|connection| connection.turn.take());
        turn.and_then(|turn| self.idle.remove(&turn));
    }

    /// Ends one request of a connection, which is idle after its last.
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

    fn close(&mut self, id: u64) -> bool {
        self.forget(id).inspect(|it| it.close.cancel()).is_some()
    }

    fn close_longest_idle(&mut self) -> bool {
        let id = self.idle.first_key_value().map(|(_, id)| *id);
        id.is_some_and(|id| self.close(id))
    }

    /// Returns the connections of each known process. The connection `but` is counted, and must not be closed.
    fn shares(&self, but: u64) -> BTreeMap<Whose, Share> {
        let mut shares: BTreeMap<Whose, Share> = BTreeMap::new();
        let known = |id: &u64| {
            let whose = self.all.get(id)?.whose;
            matches!(whose, Whose::Process(_) | Whose::Stranger).then_some(whose)
        };
        for (id, connection) in &self.all {
            let Some(whose) = known(id) else { continue };
            let share = shares.entry(whose).or_default();
            share.count += 1;
            if connection.turn.is_none() && *id != but {
                share.in_use.push_back(*id);
            }
        }
        for id in self.idle.values().filter(|id| **id != but) {
            if let Some(share) = known(id).and_then(|it| shares.get_mut(&it)) {
                share.idle.push_back(*id);
            }
        }
        shares.values_mut().for_each(|share| share.kept = share.idle.len() / 2);
        shares
    }

    /// Decides whether a connection may stay, and closes others; see [`Guard::makes_room`].
    fn make_room_for(&mut self, id: u64, most: usize, spare: usize) -> bool {
        // A connection that was closed meanwhile takes no room.
        let Some(own) = self.all.get(&id).map(|it| it.whose) else { return true };
        if self.all.len() <= most {
            return true;
        }
        let mut shares = self.shares(id);
        while self.all.len() > most.saturating_sub(spare) {
            let is_needed = self.all.len() > most;
            let first = |whose: Whose, it: &Share| {
                (whose == Whose::Stranger && !it.idle.is_empty(), it.count, whose == own)
            };
            let largest = shares.iter_mut().max_by_key(|(whose, it)| first(**whose, it));
            let Some((whose, share)) = largest else { return true };
            if own == Whose::Stranger && *whose != own {
                return !is_needed;
            }
            let idle = (is_needed || share.idle.len() > share.kept).then(|| share.idle.pop_front());
            let given = match idle.flatten() {
                None if !is_needed => return true,
                None if *whose == own => return false,
                None => share.in_use.pop_front(),
                idle => idle,
            };
            let Some(given) = given else { return false };
            share.count -= 1;
            self.close(given);
        }
        true
    }
}
