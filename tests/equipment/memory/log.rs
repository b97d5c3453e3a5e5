//! A log that several daemons share, in memory: one set of rows, one turn, and every entry sealed as text.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_base::{
    AgentId, DaemonId, Digest, EffectId, EntryNo, HostId, HostRole, MailSeq, TaskId, Ticket, Timestamp,
};
use provost_domain::{
    Change, HostAbility, Outbox, Owed, SeenAt, Settings, State, Switched, Task, User, Waiter,
};
use provost_store::{
    Anchor, Begun, Behind, CommitError, ENTRY_FORMAT, ENTRY_FORMAT_OLDEST, Head, HostBeat, HostState,
    Indexed, JournalHead, Loaded, OpensReader, Pruned, Retention, SealedEntry, Store, StoreError,
    StoredEvent,
};

use super::reader::MemoryReader;
use super::{Disk, key, lock};

/// How long a daemon waits for its turn before it says that it got none.
const TURN_WAITS: Duration = Duration::from_secs(30);

/// The fate of the next commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// It is stored, and its answer does not come.
    Answer,
    /// It does not reach the store, and no answer comes.
    Batch,
    /// The same, and the store is away from then on.
    BatchAndStore,
    /// The store says that it has not taken it.
    Refused,
    /// The same, and the store is away from then on.
    RefusedAndStore,
}

/// A log that several daemons share, and the hand that breaks it.
#[derive(Clone, Default)]
pub struct SharedLog(Arc<Shared>);

#[derive(Default)]
struct Shared {
    disk: Arc<Mutex<Disk>>,
    log: Mutex<Log>,
    free: Condvar,
}

/// Changes an entry.
type Tamper = Box<dyn FnOnce(&mut SealedEntry) + Send>;

/// Calls a daemon.
type Wake = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Log {
    turn: Option<DaemonId>,
    entries: Vec<(SealedEntry, Vec<StoredEvent>)>,
    /// Entries up to this one are gone.
    cut_to: EntryNo,
    incarnations: BTreeMap<HostId, u64>,
    hosts: BTreeMap<HostId, HostBeat>,
    rows: SharedRows,
    now: Timestamp,
    moved: bool,
    lost: Option<Lost>,
    is_away: bool,
    wakes: BTreeMap<HostId, Wake>,
    tamper: Option<Tamper>,
    is_quiet: bool,
    /// How often a daemon has asked for entries while it had the turn, in which there can be none.
    asked_in_turn: usize,
}

/// The rows that a store of a single writer does not keep.
#[derive(Default)]
struct SharedRows {
    waiters: BTreeMap<Ticket, Arc<Waiter>>,
    carried: BTreeMap<MailSeq, (AgentId, DaemonId)>,
    switched: BTreeMap<AgentId, Switched>,
    effects: BTreeMap<EffectId, DaemonId>,
    seen: BTreeMap<AgentId, SeenAt>,
    users: BTreeMap<HostId, Arc<User>>,
    abilities: BTreeMap<HostId, Arc<HostAbility>>,
}

impl SharedRows {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::PutWaiter(it) => drop(self.waiters.insert(it.ticket, it.clone())),
            Change::DropWaiter(ticket) => drop(self.waiters.remove(ticket)),
            Change::CarryMail(agent, seq, Some(by)) => drop(self.carried.insert(*seq, (agent.clone(), *by))),
            Change::CarryMail(_, seq, None) | Change::DropMail(_, seq) => drop(self.carried.remove(seq)),
            Change::Switch(worker, Some(to)) => drop(self.switched.insert(worker.clone(), to.clone())),
            Change::Switch(worker, None) => drop(self.switched.remove(worker)),
            Change::DropEffect(id) => drop(self.effects.remove(id)),
            Change::PutUser(it) => drop(self.users.insert(it.host, it.clone())),
            Change::DropUser(host) => drop(self.users.remove(host)),
            Change::At(agent, Some(at)) => drop(self.seen.insert(agent.clone(), *at)),
            Change::PutAbility(it) => drop(self.abilities.insert(it.daemon.host, it.clone())),
            Change::DropAbility(host) => drop(self.abilities.remove(host)),
            Change::HostDown(daemon, _) => drop(self.abilities.remove(&daemon.host)),
            Change::At(agent, None) | Change::DropAgent(agent) => drop(self.seen.remove(agent)),
            _ => {}
        }
    }

    fn changes(&self) -> impl Iterator<Item = Change> {
        let waiters = self.waiters.values().cloned().map(Change::PutWaiter);
        let carried =
            self.carried.iter().map(|(seq, (to, by))| Change::CarryMail(to.clone(), *seq, Some(*by)));
        let switched = self.switched.iter().map(|(it, to)| Change::Switch(it.clone(), Some(to.clone())));
        let seen = self.seen.iter().map(|(it, at)| Change::At(it.clone(), Some(*at)));
        let users = self.users.values().cloned().map(Change::PutUser);
        let abilities = self.abilities.values().cloned().map(Change::PutAbility);
        waiters.chain(carried).chain(switched).chain(seen).chain(users).chain(abilities)
    }
}

impl SharedLog {
    /// The store as the daemon of a host opens it.
    pub fn open(&self, host: u128) -> LogStore {
        LogStore {
            shared: self.0.clone(),
            daemon: DaemonId { host: HostId::of(host), incarnation: 0 },
            own_n: 0,
            journal: JournalHead::default(),
            has_turn: false,
        }
    }

    /// Sets the time that the clock of the store shows from now on.
    pub fn set_time(&self, now: Timestamp) {
        self.0.log().now = now;
    }

    /// Loses the next commit, or its answer.
    pub fn lose(&self, lost: Lost) {
        self.0.log().lost = Some(lost);
    }

    /// Whether the store answers nothing, until told otherwise.
    pub fn go_away(&self, is_away: bool) {
        self.0.log().is_away = is_away;
        self.0.free.notify_all();
    }

    /// Takes the older half of the log out. A daemon that is behind that has to load.
    pub fn cut(&self) {
        let mut log = self.0.log();
        let half = log.entries.len() / 2;
        let gone = log.entries.drain(..half).next_back();
        if let Some((entry, _)) = gone {
            log.cut_to = entry.n;
        }
    }

    /// Another server continues the database.
    pub fn fail_over(&self) {
        self.0.log().moved = true;
    }

    /// Changes the next entry once it is written, as a program with the rights of the database can. No daemon reads it before.
    pub fn tamper_with_next(&self, with: impl FnOnce(&mut SealedEntry) + Send + 'static) {
        self.0.log().tamper = Some(Box::new(with));
    }

    /// Whether daemons are told nothing of new entries, as while a host is cut off. Afterwards all are told.
    pub fn hush(&self, is_quiet: bool) {
        let mut log = self.0.log();
        log.is_quiet = is_quiet;
        if !is_quiet {
            log.wakes.values().for_each(|wake| wake());
        }
    }

    /// How often a daemon has asked for new entries in its own turn. Each question would cost all others a round trip.
    pub fn asked_in_turn(&self) -> usize {
        self.0.log().asked_in_turn
    }

    /// The entries that the log has.
    pub fn entries(&self) -> Vec<SealedEntry> {
        self.0.log().entries.iter().map(|(entry, _)| entry.clone()).collect()
    }

    /// The whole journal, to look at.
    pub fn events(&self) -> Vec<StoredEvent> {
        lock(&self.0.disk).rows.events.clone()
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn away() -> StoreError {
    StoreError::Away("the store is away".into())
}

impl Log {
    fn head(&self) -> Head {
        self.entries.last().map_or_else(|| Head { n: self.cut_to, ..Head::default() }, |(it, _)| it.head())
    }

    fn answers(&self) -> Result<(), StoreError> {
        if self.is_away { Err(away()) } else { Ok(()) }
    }

    /// Opens what is behind a head, and moves the journal's head on.
    fn behind(&self, mut head: Head, journal: &mut JournalHead) -> Result<Behind, StoreError> {
        if head.n < self.cut_to {
            return Ok(Behind::TooFar);
        }
        let mut found = Vec::new();
        for (entry, events) in
            self.entries.iter().filter(|(it, _)| it.n > head.n).cloned().collect::<Vec<_>>()
        {
            found.push(key().open_entry((&mut head, journal), entry, events)?);
        }
        Ok(if found.is_empty() { Behind::Nothing } else { Behind::Entries(found) })
    }
}

/// The store of one of the daemons.
pub struct LogStore {
    shared: Arc<Shared>,
    daemon: DaemonId,
    own_n: u64,
    /// Where the journal ends for this daemon.
    journal: JournalHead,
    has_turn: bool,
}

impl LogStore {
    /// This daemon, from its first load on.
    pub fn daemon(&self) -> DaemonId {
        self.daemon
    }

    /// The state as a daemon finds it that loads now, and the entry up to which that is.
    pub fn snapshot(&self, settings: Settings) -> (State, Head) {
        let log = self.shared.log();
        let (state, _) = self.rows(&log, settings);
        (state, log.head())
    }

    /// Returns the effects that this host owes.
    pub fn owed(&self) -> Vec<Owed> {
        let log = self.shared.log();
        let (_, mut owed) = self.rows(&log, any_settings());
        owed.retain(|it| it.by.host == self.daemon.host);
        owed
    }

    fn rows(&self, log: &Log, settings: Settings) -> (State, Vec<Owed>) {
        let (mut state, mut owed) = lock(&self.shared.disk).rows.state(settings);
        log.rows.changes().for_each(|change| state.apply(&change));
        owed.iter_mut().for_each(|it| it.by = log.rows.effects.get(&it.id).copied().unwrap_or_default());
        (state, owed)
    }

    fn release(&mut self, log: &mut Log) {
        if std::mem::take(&mut self.has_turn) {
            log.turn = None;
            self.shared.free.notify_all();
        }
    }

    fn write(&mut self, log: &mut Log, batch: &Outbox) -> Result<(Head, JournalHead), StoreError> {
        let events = key().extend(&self.journal, &batch.events)?;
        let sealed =
            key().entry(&log.head(), (self.daemon, self.own_n + 1), (log.now, ENTRY_FORMAT), batch)?;
        let (head, journal) = (sealed.head(), events.last().map_or(self.journal, anchor));
        let mut disk = lock(&self.shared.disk);
        let rows = &mut disk.rows;
        let effects = batch.effects.iter().map(|(id, effect)| (*id, (effect.clone(), false)));
        rows.effects.extend(effects);
        let owner = |id| batch.owed_at(id).unwrap_or(self.daemon);
        log.rows.effects.extend(batch.effects.iter().map(|(id, _)| (*id, owner(*id))));
        for change in &batch.changes {
            rows.apply(change);
            log.rows.apply(change);
            if let Change::HostDown(down, _) = change
                && let Some(it) = log.hosts.get_mut(&down.host).filter(|it| it.daemon == *down)
            {
                it.state = HostState::Down;
            }
        }
        rows.events.extend(events.iter().cloned());
        rows.counters.event = rows.head().seq;
        let mut written = sealed;
        if let Some(tamper) = log.tamper.take() {
            tamper(&mut written);
        }
        log.entries.push((written, events));
        log.moved = false;
        Ok((head, journal))
    }
}

/// For what is asked of the effects alone.
fn any_settings() -> Settings {
    Settings::new(AgentId::parse("boss").expect("a name"))
}

fn anchor(event: &StoredEvent) -> JournalHead {
    Anchor { seq: event.seq, mac: event.mac }
}

impl Store for LogStore {
    fn load(&mut self, settings: Settings) -> Result<Loaded, StoreError> {
        let shared = self.shared.clone();
        let mut log = shared.log();
        self.release(&mut log);
        log.answers()?;
        if self.daemon.incarnation == 0 {
            let inc = log.incarnations.entry(self.daemon.host).or_default();
            *inc += 1;
            self.daemon.incarnation = *inc;
            let (daemon, beat) = (self.daemon, log.now);
            let formats = (ENTRY_FORMAT_OLDEST, ENTRY_FORMAT);
            let told = HostBeat {
                daemon,
                state: HostState::Live,
                asked_by: None,
                beat,
                formats,
                name: daemon.host.short().into(),
                role: HostRole::Full,
                is_stopped: false,
            };
            log.hosts.insert(daemon.host, told);
        }
        let (state, mut owed) = self.rows(&log, settings);
        owed.retain(|it| it.by.host == self.daemon.host);
        let disk = lock(&self.shared.disk);
        self.journal = disk.rows.head();
        let until = disk.rows.events.last().map(|it| it.at).unwrap_or_default();
        let (head, daemon) = (log.head(), self.daemon);
        let (clean, broke_off, received, intake) = (true, None, Vec::new(), None);
        Ok(Loaded { state, owed, head, daemon, clean, until, broke_off, received, intake })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn waits_for_disk(&self) -> bool {
        true
    }

    fn wake_by(&mut self, wake: Wake) {
        self.shared.log().wakes.insert(self.daemon.host, wake);
    }

    fn begin(&mut self, head: Head) -> Result<Begun, StoreError> {
        let (shared, until) = (self.shared.clone(), Instant::now() + TURN_WAITS);
        let mut log = shared.log();
        log.answers()?;
        while log.turn.is_some() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Injected);
            }
            log = shared.free.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        log.answers()?;
        let behind = log.behind(head, &mut self.journal)?;
        (log.turn, self.has_turn) = (Some(self.daemon), true);
        let now = log.now;
        log.hosts.get_mut(&self.daemon.host).into_iter().for_each(|it| it.beat = now);
        let hosts = log.hosts.values().cloned().collect();
        let log_end = log.entries.last().map_or(log.cut_to, |(it, _)| it.n);
        Ok(Begun { now: Some(now), behind, log_end, hosts, moved: log.moved, skipped: None })
    }

    fn let_go(&mut self) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        self.release(&mut shared.log());
        Ok(())
    }

    fn owed_by(&mut self, daemon: DaemonId) -> Result<Vec<Owed>, StoreError> {
        let log = self.shared.log();
        let (_, mut owed) = self.rows(&log, any_settings());
        owed.retain(|it| it.by.host == daemon.host && it.by.incarnation <= daemon.incarnation);
        Ok(owed)
    }

    fn catch_up(&mut self, head: Head) -> Result<Behind, StoreError> {
        let mut log = self.shared.log();
        log.asked_in_turn += usize::from(self.has_turn);
        log.answers()?;
        log.behind(head, &mut self.journal)
    }

    fn commit(&mut self, batch: &Outbox) -> Result<Head, CommitError> {
        let shared = self.shared.clone();
        let mut log = shared.log();
        if !self.has_turn || log.is_away {
            self.release(&mut log);
            return Err(StoreError::NotRunning.into());
        }
        let lost = log.lost.take();
        let done = match lost {
            Some(Lost::BatchAndStore) => {
                log.is_away = true;
                Err(CommitError::Unknown(away()))
            }
            Some(Lost::Batch) => Err(CommitError::Unknown(StoreError::Injected)),
            Some(Lost::Refused) => Err(CommitError::Failed(StoreError::Injected)),
            Some(Lost::RefusedAndStore) => {
                log.is_away = true;
                Err(CommitError::Failed(away()))
            }
            None | Some(Lost::Answer) => self.write(&mut log, batch).map_err(CommitError::from),
        };
        self.release(&mut log);
        let (head, journal) = done?;
        self.own_n += 1;
        if !log.is_quiet {
            log.wakes.iter().filter(|(host, _)| **host != self.daemon.host).for_each(|(_, wake)| wake());
        }
        if lost.is_some() {
            return Err(CommitError::Unknown(StoreError::Injected));
        }
        self.journal = journal;
        Ok(head)
    }

    fn commit_kept(&mut self, batch: &Outbox, _seal: &Digest) -> Result<Head, CommitError> {
        self.commit(batch)
    }

    fn past_task(&mut self, id: &TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        Ok(lock(&self.shared.disk).read()?.finished.iter().find(|task| task.id() == id).cloned())
    }

    fn journal_head(&self) -> JournalHead {
        self.journal
    }

    fn prune(&mut self, _: Timestamp, _: &Retention, _: u32) -> Result<Pruned, StoreError> {
        Ok(Pruned::default())
    }

    fn index(&mut self, _most: u32) -> Result<Indexed, StoreError> {
        Ok(Indexed::All)
    }

    fn lacks_index(&self) -> bool {
        false
    }

    fn opens_reader(&self) -> Result<OpensReader, StoreError> {
        let disk = self.shared.disk.clone();
        Ok(Box::new(move || Ok(Box::new(MemoryReader(disk)))))
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        self.shared.log().answers()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.let_go()
    }
}

impl Drop for LogStore {
    fn drop(&mut self) {
        let shared = self.shared.clone();
        self.release(&mut shared.log());
    }
}
