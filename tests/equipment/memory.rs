//! A store for tests: it keeps nothing on disk, and a test can make every call fail.
//!
//! Not part of the product's promises.

mod crew;
mod log;
mod posts;
mod reader;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use provost_base::limits::{CHECKPOINT_EVERY, NUMBERS_SKIPPED};
use provost_base::{
    AgentId, ApprovalId, ContractId, DaemonId, Digest, EffectId, EventSeq, Fence, IntentId, JobId, Json,
    MailSeq, RuleId, Secret, SymbolPath, TaskId, Timestamp,
};
use provost_domain::post::Received;
use provost_domain::{
    Change, Contract, Counters, Durability, Effect, Intent, Job, JobChange, JobResult, KnownPasskey, Lock,
    Mail, MergeEntry, Outbox, Owed, Parked, PasskeyChange, PasskeyStanding, PushChange, PushSubscription,
    RegisteredAgent, Settings, Share, SpendChange, Spent, SpentKey, State, Switched, Task, Token, Uses,
};
use provost_store::journal::{Checkpoint, Key};
use provost_store::{
    Anchor, CommitError, Head, Indexed, Intake, JournalHead, Loaded, OpensReader, Pruned, Retention, Store,
    StoreError, StoredEvent, codec,
};

use crew::CrewRows;
pub use log::{LogStore, Lost, SharedLog};
use posts::PostRows;
use reader::MemoryReader;

/// The sizes of one commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The durability that it had.
    pub durability: Durability,
    /// How many rows it wrote.
    pub changes: usize,
    /// How many events it appended.
    pub events: usize,
    /// How many effects it left owed.
    pub effects: usize,
}

/// A store in memory. Its [`MemoryControl`] reaches it while an engine owns it.
pub struct MemoryStore {
    disk: Arc<Mutex<Disk>>,
    gate: Arc<Gate>,
    running: bool,
    clean: bool,
    head: JournalHead,
}

/// The hand that breaks a [`MemoryStore`], and looks at it from outside.
#[derive(Clone)]
pub struct MemoryControl(Arc<Mutex<Disk>>, Arc<Gate>);

/// Holds commits beside the engine's thread up, where a test wants it so.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
    waits: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        let mut is_shut = self.is_shut.lock().unwrap_or_else(PoisonError::into_inner);
        self.waits.store(*is_shut, Ordering::Release);
        while *is_shut {
            is_shut = self.opened.wait(is_shut).unwrap_or_else(PoisonError::into_inner);
        }
        self.waits.store(false, Ordering::Release);
    }
}

#[derive(Default)]
struct Disk {
    rows: Rows,
    used: bool,
    clean: bool,
    writes: u64,
    fail_at: Option<u64>,
    fail_after: Option<u64>,
    fail_writes: bool,
    fail_reads: bool,
    fail_receiving: bool,
    kept: Vec<Kept>,
    received: Vec<Received>,
    /// How many of them came before the intake was turned.
    turned: usize,
}

#[derive(Clone, Default)]
struct Rows {
    agents: BTreeMap<AgentId, Arc<RegisteredAgent>>,
    tasks: BTreeMap<TaskId, Arc<Task>>,
    finished: Vec<Arc<Task>>,
    mail: BTreeMap<MailSeq, Arc<Mail>>,
    approvals: BTreeMap<ApprovalId, Arc<Parked>>,
    uses: BTreeMap<(RuleId, Share), Uses>,
    locks: BTreeMap<SymbolPath, Arc<Lock>>,
    intents: BTreeMap<IntentId, Arc<Intent>>,
    contracts: BTreeMap<ContractId, Arc<Contract>>,
    posts: PostRows,
    crew: CrewRows,
    tokens: BTreeMap<Digest, Arc<Token>>,
    switched: BTreeMap<AgentId, Switched>,
    merges: BTreeMap<Fence, Arc<MergeEntry>>,
    passkeys: BTreeMap<Box<str>, Arc<KnownPasskey>>,
    passkey_standing: Option<PasskeyStanding>,
    push: BTreeMap<Box<str>, Arc<PushSubscription>>,
    spent: BTreeMap<SpentKey, Arc<Spent>>,
    calls: Vec<SpendChange>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    job_orders: BTreeMap<JobId, Json>,
    job_results: BTreeMap<JobId, Arc<JobResult>>,
    effects: BTreeMap<EffectId, (Effect, bool)>,
    events: Vec<StoredEvent>,
    checkpoints: Vec<Checkpoint>,
    pruned_to: EventSeq,
    counters: Counters,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store that is not loaded yet.
    pub fn new() -> Self {
        MemoryControl(Arc::default(), Arc::default()).reopen()
    }

    /// The handle by which a test reaches the store.
    pub fn control(&self) -> MemoryControl {
        MemoryControl(self.disk.clone(), self.gate.clone())
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }
}

impl MemoryControl {
    /// The store as the next daemon finds it.
    pub fn reopen(&self) -> MemoryStore {
        let (disk, gate) = (self.0.clone(), self.1.clone());
        MemoryStore { disk, gate, running: false, clean: false, head: JournalHead::default() }
    }

    /// Fails one write: the `nth` from now on, the next one being the first.
    pub fn fail_commit(&self, nth: u64) {
        let mut disk = lock(&self.0);
        disk.fail_at = Some(disk.writes + nth);
    }

    /// The same, but what is written is there.
    pub fn fail_after_commit(&self, nth: u64) {
        let mut disk = lock(&self.0);
        disk.fail_after = Some(disk.writes + nth);
    }

    /// Fails all writes, until told otherwise. Probes are writes.
    pub fn fail_commits(&self, fail: bool) {
        lock(&self.0).fail_writes = fail;
    }

    /// Fails all reads, loading among them, until told otherwise.
    pub fn fail_reads(&self, fail: bool) {
        lock(&self.0).fail_reads = fail;
    }

    /// Has nothing kept before its commit, until told otherwise.
    pub fn fail_receiving(&self, fail: bool) {
        lock(&self.0).fail_receiving = fail;
    }

    /// Holds commits up that are made beside the engine's thread, until told otherwise.
    pub fn hold_commits_beside(&self, hold: bool) {
        *self.1.is_shut.lock().unwrap_or_else(PoisonError::into_inner) = hold;
        self.1.opened.notify_all();
    }

    /// Whether such a commit waits.
    pub fn is_held_up(&self) -> bool {
        self.1.waits.load(Ordering::Acquire)
    }

    /// The commits that were carried out, oldest first.
    pub fn commits(&self) -> Vec<Kept> {
        lock(&self.0).kept.clone()
    }

    /// The whole journal, to look at.
    pub fn events(&self) -> Vec<StoredEvent> {
        lock(&self.0).rows.events.clone()
    }
}

fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key() -> Key {
    Key::new(&Secret::new(b"a key for tests".to_vec()))
}

impl Disk {
    fn write(&mut self) -> Result<&mut Rows, StoreError> {
        self.writes += 1;
        if self.fail_writes || self.fail_at == Some(self.writes) {
            return Err(StoreError::Injected);
        }
        Ok(&mut self.rows)
    }

    fn read(&self) -> Result<&Rows, StoreError> {
        if self.fail_reads { Err(StoreError::Injected) } else { Ok(&self.rows) }
    }
}

impl Rows {
    fn head(&self) -> JournalHead {
        self.events.last().map_or_else(JournalHead::default, |it| Anchor { seq: it.seq, mac: it.mac })
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::PutTask(it) => drop(self.tasks.insert(it.id().clone(), it.clone())),
            Change::FinishTask(it) => {
                self.tasks.remove(it.id());
                self.finished.retain(|old| old.id() != it.id());
                self.finished.push(it.clone());
            }
            Change::AmendTask(it) => {
                if let Some(old) = self.finished.iter_mut().find(|old| old.id() == it.id()) {
                    *old = it.clone();
                }
            }
            Change::PutAgent(it) => drop(self.agents.insert(it.id.clone(), it.clone())),
            Change::DropAgent(id) => drop(self.agents.remove(id)),
            Change::PutMail(it) => drop(self.mail.insert(it.seq, it.clone())),
            Change::DropMail(_, seq) => drop(self.mail.remove(seq)),
            Change::PutApproval(it) => drop(self.approvals.insert(it.id, it.clone())),
            Change::DropApproval(id) => drop(self.approvals.remove(id)),
            Change::PutUses(it) if it.at.is_empty() => {
                self.uses.remove(&(it.rule.clone(), it.who.clone()));
            }
            Change::PutUses(it) => drop(self.uses.insert((it.rule.clone(), it.who.clone()), it.clone())),
            Change::PutLock(it) => drop(self.locks.insert(it.at.clone(), it.clone())),
            Change::DropLock(at) => drop(self.locks.remove(at)),
            Change::PutIntent(it) => drop(self.intents.insert(it.id.clone(), it.clone())),
            Change::DropIntent(id) => drop(self.intents.remove(id)),
            Change::PutContract(it) => drop(self.contracts.insert(it.id.clone(), it.clone())),
            Change::DropContract(id) => drop(self.contracts.remove(id)),
            Change::Post(change) => self.posts.apply(change),
            Change::Crew(change) => self.crew.apply(change),
            Change::PutToken(it) => drop(self.tokens.insert(it.digest, it.clone())),
            Change::DropToken(digest) => drop(self.tokens.remove(digest)),
            Change::Push(PushChange::Put(it)) => drop(self.push.insert(it.id.clone(), it.clone())),
            Change::Push(PushChange::Drop(id)) => drop(self.push.remove(id)),
            Change::Spend(SpendChange::Put(it)) => drop(self.spent.insert(it.key.clone(), it.clone())),
            Change::Spend(SpendChange::Drop(key)) => drop(self.spent.remove(key)),
            Change::Spend(calls @ SpendChange::Calls { .. }) => self.calls.push(calls.clone()),
            Change::Passkey(PasskeyChange::Put(it)) => {
                self.passkeys.insert(it.passkey.id.clone(), it.clone());
            }
            Change::Passkey(PasskeyChange::Drop(id)) => drop(self.passkeys.remove(id)),
            Change::Passkey(PasskeyChange::Standing(it)) => self.passkey_standing = Some(*it),
            Change::Passkey(PasskeyChange::Daemon(_)) => {}
            Change::Job(change) => self.apply_to_jobs(change),
            Change::PutMerge(it) => drop(self.merges.insert(it.number, it.clone())),
            Change::DropMerge(number) => drop(self.merges.remove(number)),
            Change::Switch(worker, to) => match to.as_ref().filter(|it| it.is_lasting()) {
                Some(to) => drop(self.switched.insert(worker.clone(), to.clone())),
                None => drop(self.switched.remove(worker)),
            },
            Change::StartEffect(id) => {
                if let Some((_, started)) = self.effects.get_mut(id) {
                    *started = true;
                }
            }
            Change::DropEffect(id) => drop(self.effects.remove(id)),
            Change::Count(counters) => self.counters = *counters,
            Change::Beat(..)
            | Change::CameBy(..)
            | Change::At(..)
            | Change::CarryMail(..)
            | Change::PutUser(_)
            | Change::DropUser(_)
            | Change::HostDown(..)
            | Change::PutAbility(..)
            | Change::DropAbility(..)
            | Change::Grant(..)
            | Change::Apply(..)
            | Change::OweHook(..)
            | Change::OweNotice(..)
            | Change::OweDeed(..)
            | Change::PutWaiter(..)
            | Change::DropWaiter(..)
            | Change::RefuseCircle(..) => {}
        }
    }

    fn apply_to_jobs(&mut self, change: &JobChange) {
        match change {
            JobChange::Put(it) => drop(self.jobs.insert(it.id.clone(), it.clone())),
            JobChange::PutOrder(id, it) => drop(self.job_orders.insert(id.clone(), it.clone())),
            JobChange::DropOrder(id) => drop(self.job_orders.remove(id)),
            JobChange::PutResult(id, it) => drop(self.job_results.insert(id.clone(), it.clone())),
            JobChange::Drop(id) => {
                self.jobs.remove(id);
                self.job_orders.remove(id);
                self.job_results.remove(id);
            }
        }
    }

    fn seal(&mut self) -> Result<(), StoreError> {
        let checkpoint = key().checkpoint(self.head(), self.pruned_to, &self.counters)?;
        self.checkpoints.retain(|it| it.head.seq != checkpoint.head.seq);
        self.checkpoints.push(checkpoint);
        Ok(())
    }

    fn state(&self, settings: Settings) -> (State, Vec<Owed>) {
        let mut state = State::new(settings);
        let agents = self.agents.values().cloned().map(Change::PutAgent);
        let tasks = self.tasks.values().cloned().map(Change::PutTask);
        let mail = self.mail.values().cloned().map(Change::PutMail);
        let approvals = self.approvals.values().cloned().map(Change::PutApproval);
        let uses = self.uses.values().cloned().map(Change::PutUses);
        let locks = self.locks.values().cloned().map(Change::PutLock);
        let intents = self.intents.values().cloned().map(Change::PutIntent);
        let contracts = self.contracts.values().cloned().map(Change::PutContract);
        let tokens = self.tokens.values().cloned().map(Change::PutToken);
        let rows = agents.chain(tasks).chain(mail).chain(approvals).chain(uses);
        let rows = rows.chain(locks).chain(intents).chain(contracts).chain(self.crew.changes());
        let rows = rows.chain(self.posts.changes());
        let switched =
            self.switched.iter().map(|(worker, to)| Change::Switch(worker.clone(), Some(to.clone())));
        let rows = rows.chain(tokens).chain(switched);
        let rows = rows.chain(self.merges.values().cloned().map(Change::PutMerge));
        let rows = rows.chain(self.jobs.values().cloned().map(|it| JobChange::Put(it).into()));
        let reset = self.passkey_standing.map(PasskeyChange::Standing);
        let passkeys = self.passkeys.values().cloned().map(PasskeyChange::Put).chain(reset);
        let rows = rows.chain(passkeys.map(Change::Passkey));
        let push = self.push.values().cloned().map(PushChange::Put);
        let rows = rows.chain(push.map(Change::Push));
        let rows = rows.chain(self.spent.values().cloned().map(SpendChange::Put).map(Change::Spend));
        rows.chain([Change::Count(self.counters)]).for_each(|change| state.apply(&change));
        let owed = self.effects.iter();
        let owed = owed.map(|(id, (effect, started))| Owed {
            id: *id,
            effect: effect.clone(),
            started: *started,
            by: DaemonId::default(),
        });
        let owed: Vec<Owed> = owed.collect();
        owed.iter().filter_map(Owed::in_memory).for_each(|change| state.apply(&change));
        (state, owed)
    }
}

impl MemoryStore {
    /// Writes a batch, which has so many of the messages that were received.
    fn write(&mut self, batch: &Outbox, kept: usize) -> Result<(), StoreError> {
        if !self.running {
            return Err(StoreError::NotRunning);
        }
        if batch.is_empty() {
            return Ok(());
        }
        let events = key().extend(&self.head, &batch.events)?;
        let mut disk = lock(&self.disk);
        let rows = disk.write()?;
        let effects = batch.effects.iter().map(|(id, effect)| (*id, (effect.clone(), false)));
        rows.effects.extend(effects);
        batch.changes.iter().for_each(|change| rows.apply(change));
        rows.events.extend(events);
        rows.counters.event = rows.head().seq;
        let sealed = rows.checkpoints.last().map_or(0, |it| it.head.seq.0);
        if rows.head().seq.0 - sealed >= CHECKPOINT_EVERY {
            rows.seal()?;
        }
        let head = rows.head();
        if disk.fail_after == Some(disk.writes) {
            disk.received.drain(..kept);
            return Err(StoreError::Injected);
        }
        if head != self.head {
            self.head = head;
            disk.received.drain(..kept);
        }
        disk.kept.push(Kept {
            durability: batch.durability,
            changes: batch.changes.len(),
            events: batch.events.len(),
            effects: batch.effects.len(),
        });
        Ok(())
    }
}

struct MemoryIntake(Arc<Mutex<Disk>>);

impl std::fmt::Debug for MemoryIntake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryIntake").finish_non_exhaustive()
    }
}

impl Intake for MemoryIntake {
    fn keep(&mut self, messages: &[Received]) -> Result<bool, StoreError> {
        let mut disk = lock(&self.0);
        if disk.fail_receiving {
            return Err(StoreError::Injected);
        }
        disk.received.extend_from_slice(messages);
        Ok(true)
    }

    fn turn(&mut self) -> Digest {
        let mut disk = lock(&self.0);
        disk.turned = disk.received.len();
        Digest::default()
    }
}

impl Store for MemoryStore {
    fn load(&mut self, settings: Settings) -> Result<Loaded, StoreError> {
        let mut disk = lock(&self.disk);
        disk.read()?;
        let (mut received, is_start) = (Vec::new(), !self.running);
        if is_start {
            self.clean = disk.clean || !disk.used;
            let counters = &mut disk.write()?.counters;
            if !self.clean {
                *counters = counters.skipped(NUMBERS_SKIPPED);
            }
            (disk.used, disk.clean, self.running) = (true, false, true);
            received = disk.received.clone();
        }
        self.head = disk.rows.head();
        let (state, owed) = disk.rows.state(settings);
        let until = disk.rows.events.last().map(|it| it.at).unwrap_or_default();
        let intake = is_start.then(|| Box::new(MemoryIntake(self.disk.clone())) as Box<dyn Intake>);
        let (head, daemon, clean) = (Head::default(), DaemonId::default(), self.clean);
        Ok(Loaded { state, owed, head, daemon, clean, until, broke_off: None, received, intake })
    }

    fn commit(&mut self, batch: &Outbox) -> Result<Head, CommitError> {
        let kept = self.disk().received.len();
        Ok(self.write(batch, kept).map(|()| Head::default())?)
    }

    fn commit_kept(&mut self, batch: &Outbox, _seal: &Digest) -> Result<Head, CommitError> {
        self.gate.pass();
        let kept = self.disk().turned;
        Ok(self.write(batch, kept).map(|()| Head::default())?)
    }

    fn past_task(&mut self, id: &TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        Ok(self.disk().read()?.finished.iter().find(|task| task.id() == id).cloned())
    }

    fn journal_head(&self) -> JournalHead {
        self.head
    }

    fn prune(&mut self, now: Timestamp, keep: &Retention, most: u32) -> Result<Pruned, StoreError> {
        let most = most.max(1);
        let mut disk = lock(&self.disk);
        let rows = disk.write()?;
        let (mut tasks, mut events) = (0, 0);
        let cutoff = codec::before(now, keep.tasks);
        let mut too_many = rows.finished.len().saturating_sub(keep.tasks_most as usize);
        rows.finished.retain(|task| {
            let gone = tasks < most && (too_many > 0 || codec::ended_at(task) < cutoff);
            too_many -= usize::from(gone && too_many > 0);
            tasks += u32::from(gone);
            !gone
        });
        let cutoff = codec::before(now, keep.events);
        let from = rows.pruned_to;
        for event in rows.events.iter_mut().filter(|it| it.seq > from) {
            if events == most || event.at >= cutoff {
                break;
            }
            rows.pruned_to = event.seq;
            if !event.kind.starts_with("passkey") {
                event.body = None;
            }
            events += 1;
        }
        rows.posts.prune(rows.pruned_to);
        if events > 0 {
            rows.seal()?;
        }
        Ok(Pruned { tasks, events, more: tasks == most || events == most })
    }

    // The words of what is in memory are not looked for.
    fn index(&mut self, _most: u32) -> Result<Indexed, StoreError> {
        Ok(Indexed::All)
    }

    fn lacks_index(&self) -> bool {
        false
    }

    fn opens_reader(&self) -> Result<OpensReader, StoreError> {
        let disk = self.disk.clone();
        Ok(Box::new(move || Ok(Box::new(MemoryReader(disk)))))
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        self.disk().write().map(drop)
    }

    fn close(&mut self) -> Result<(), StoreError> {
        let mut disk = lock(&self.disk);
        disk.write()?;
        (disk.clean, self.running) = (true, false);
        Ok(())
    }
}
