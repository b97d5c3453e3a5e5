//! The connections of one door: counted, in all and by process, and some of them closed to make room for others.
//!
//! When there are too many, the one that has been idle longest is closed: of peers that keep a proven connection, those
//! that have proved nothing; of peers that ask and are answered, those that ask nothing. A crowd of silent
//! connections costs strangers, never working clients. If the daemon knows which process has which connections, only
//! the process with the most connections loses some; see [`Guard::makes_room`].

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

/// How long a door waits for connections that were told to close before it takes a further one.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// The connections of all doors of a process, which share its descriptors.
#[derive(Debug)]
pub struct AllDoors {
    max: usize,
    /// Those that are open, also where they have been told to close and have not yet.
    open: AtomicUsize,
    closed: Notify,
    doors: Mutex<Vec<Weak<Connections>>>,
}

impl AllDoors {
    /// As many as a process may have that may open so many descriptors: some are kept for its own files, workers and
    /// looks at who has connected.
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

    /// How many there may be.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Whether there is room for one more. If not, the door that has most of them closes one that is idle, or the
    /// next one; several, where doors have let some in at the same moment.
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

    /// Waits for those that were told to close, but not for long: the others are closed with the door.
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

/// How many connections one door may have, and what it shares with others.
#[derive(Clone, Debug)]
pub struct Capacity {
    max: usize,
    all: Option<Arc<AllDoors>>,
}

impl Capacity {
    /// So many, and no more than all doors together may have.
    pub fn within(all: &Arc<AllDoors>, max: usize) -> Self {
        Self { max, all: Some(all.clone()) }
    }
}

impl From<usize> for Capacity {
    /// So many, whatever others have.
    fn from(max: usize) -> Self {
        Self { max, all: None }
    }
}

/// A door's connections.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    all: Option<Arc<AllDoors>>,
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

/// The holder of a connection, as far as it was looked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Whose {
    Unknown,
    /// The holder of this socket.
    Socket(u32),
    /// This process; 0 for those that cannot be found, together.
    Process(i32),
    /// A peer that is not admitted.
    Stranger,
}

/// What one process has of a door's connections.
#[derive(Debug, Default)]
struct Share {
    count: usize,
    /// Those that may be closed without harm, the one that has been idle longest first.
    idle: VecDeque<u64>,
    /// How many of these are not closed before they have to be: the newer half may be about to ask.
    kept: usize,
    /// Those in use, the oldest first.
    in_use: VecDeque<u64>,
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

/// One connection's place among those of its door; held by the task that serves it.
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

    /// Remembers which process has connected.
    pub fn is_process(&self, pid: i32) {
        if let Some(connection) = self.connections.open().all.get_mut(&self.id) {
            connection.whose = Whose::Process(pid);
        }
    }

    /// Whether its door has more connections than may stay; see [`Guard::makes_room`].
    pub fn is_among_too_many(&self) -> bool {
        self.connections.open().all.len() > self.connections.most()
    }

    /// Sockets of the door's connections whose process was not looked for yet; empty when the process
    /// of this one is known.
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

    /// Remembers that the peer is not let in: its connection is closed before those of others.
    pub fn is_strangers(&self) {
        if let Some(connection) = self.connections.open().all.get_mut(&self.id) {
            connection.whose = Whose::Stranger;
        }
    }

    /// Whether this connection may stay, where the door has more than may stay: somewhat fewer than the
    /// accept loop lets in, which leaves room for connections that arrive or are refused. A peer that is not
    /// admitted gives way first. Then the process with the most connections loses those that have been idle
    /// longest, up to `spare` more than needed, so that not every newcomer causes a search. A process that
    /// uses all of its connections gets no further one; to a newcomer of another process it loses its oldest
    /// one. Other processes lose none.
    pub fn makes_room(&self, spare: usize) -> bool {
        let most = self.connections.most();
        self.connections.open().make_room_for(self.id, most, spare.min(most / 4))
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

    /// How many may stay.
    fn most(&self) -> usize {
        let max = self.all.as_ref().map_or(self.max, |all| self.max.min(all.max));
        max - (2 * LOOPBACK_ARRIVING_MAX).min(max / 4)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // The maps are whole between any two of their operations, so a panic elsewhere has not harmed them.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection, closing an idle one if need be. `None` when there is none.
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

    /// Returns when there are no more of them, at all doors, than there may be.
    pub(super) async fn settled(&self) {
        if let Some(all) = &self.all {
            all.settled().await;
        }
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

    fn close(&mut self, id: u64) -> bool {
        self.forget(id).inspect(|it| it.close.cancel()).is_some()
    }

    fn close_longest_idle(&mut self) -> bool {
        let id = self.idle.first_key_value().map(|(_, id)| *id);
        id.is_some_and(|id| self.close(id))
    }

    /// The connections of each known process. The connection `but` is counted, and is not to be closed.
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

    /// See [`Guard::makes_room`].
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
