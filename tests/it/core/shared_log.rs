//! Storms of three cores over one log, by seed: after any decisions, folds, losses and loads of the hosts, equal heads are equal
//! states.

mod deeds;

use std::collections::BTreeMap;
use std::sync::Arc;

use provost::base::{ContractId, DaemonId, Digest, Fence, IntentId, JobId, Json, Ticket, Timestamp, Ttl};
use provost::domain::command::{
    AcquireLock, AnswerApproval, AnswerContract, ApplyFiles, BeatCrew, BeginRun, CancelTask, ClaimFile,
    CollectMail, Collected, EndApply, EndJob, EndRun, HoldPlaces, JoinCrew, Leave, LeaveQueue, Locked,
    MintToken, MoveJob, OpenJob, PlaceToHold, ProposeContract, Publish, Record, RevokeTokens, SettleEffect,
    SettleMail, Status, SwitchWorker, UpdateIntent, WhichTokens,
};
use provost::domain::post::{Post, Source};
use provost::domain::{
    Answer, ApplyFile, Call, Change, Command, Content, Core, Effect, EventKind, Facts, Gone, IntentStatus,
    JobKind, JobState, Outbox, Principal, ProcessMark, Reply, Role, Scope, Scopes, Settings, State, Switch,
    Task, TaskState, Verdict,
};
use provost::store::{Behind, CommitError, Head, Store};
use provost_test_equipment::{LogStore, Lost, SharedLog};

use crate::support::coordinating::{acquire, at, intent, path, release};
use crate::support::script::{ByWord, approver, client, host, person, register, report};
use crate::support::storm::{Dice, agent, order, settings};

const NAMES: [&str; 5] = ["ada", "bob", "eve", "zoe", "boss"];
const SYMBOLS: [&str; 6] = ["a.ts:run", "a.ts:Base", "a.ts:Base.run", "b.ts:run", "b.ts:", "@port:8080"];
const GOALS: [&str; 5] = ["do", "do", "ask", "never", "rated"];
const HOSTS: u128 = 3;

fn of_hosts() -> Settings {
    let mut settings = Settings { hooks: true, ..settings() };
    settings.tasks_per_agent = 12;
    settings
}

/// Returns the parts of the hosts' shared state in which two states differ.
fn differences(a: &State, b: &State) -> Vec<&'static str> {
    [
        ("agents", a.agents.iter().eq(b.agents.iter())),
        ("tasks", a.tasks == b.tasks),
        ("approvals", a.approvals == b.approvals),
        ("mail", a.mail == b.mail),
        ("quota", a.quota == b.quota),
        ("hooks", a.hooks == b.hooks),
        ("outgoing", a.outgoing == b.outgoing),
        ("owing", a.owing == b.owing),
        ("locks", a.locks == b.locks),
        ("intents", a.intents == b.intents),
        ("contracts", a.contracts == b.contracts),
        ("broker", a.broker == b.broker),
        ("crew", a.crew == b.crew),
        ("claims", a.claims == b.claims),
        ("assignments", a.assignments == b.assignments),
        ("handoffs", a.handoffs == b.handoffs),
        ("tokens", a.tokens == b.tokens),
        ("passkeys", a.passkeys == b.passkeys),
        ("push", a.push == b.push),
        ("jobs", a.jobs == b.jobs),
        ("merges", a.merges == b.merges),
        ("spending", a.spending == b.spending),
        ("switches", a.switches == b.switches),
        ("counters", a.counters == b.counters),
    ]
    .into_iter()
    .filter_map(|(what, is_same)| (!is_same).then_some(what))
    .collect()
}

/// The daemon of one host: a core over the log, as the engine drives it.
struct Daemon {
    number: u128,
    store: LogStore,
    core: Core,
    head: Head,
    /// Batches whose commit is not known to be stored.
    unsure: bool,
    /// Whether it folds rows alone, to see that this is found out.
    forgets: bool,
    tickets: Vec<(Principal, Ticket, AcquireLock)>,
}

impl Daemon {
    fn start(log: &SharedLog, number: u128) -> Self {
        let mut store = log.open(number);
        let loaded = store.load(of_hosts()).unwrap();
        let mut core = Core::new(loaded.state, Box::new(ByWord::default()));
        core.decides_at(loaded.daemon);
        Self { number, store, core, head: loaded.head, unsure: false, forgets: false, tickets: Vec::new() }
    }

    fn id(&self) -> DaemonId {
        self.store.daemon()
    }

    fn load(&mut self) {
        let loaded = self.store.load(of_hosts()).unwrap();
        self.core.take_over(loaded.state);
        (self.head, self.unsure) = (loaded.head, false);
    }

    /// Takes the turn. `false` where this daemon has learnt that it is down.
    fn begin(&mut self) -> bool {
        loop {
            let begun = self.store.begin(self.head).unwrap();
            let entries = match begun.behind {
                Behind::Entries(entries) => entries,
                Behind::Nothing => Vec::new(),
                Behind::TooFar => {
                    self.load();
                    continue;
                }
            };
            if self.unsure && entries.first().is_none_or(|it| it.by != self.id()) {
                // Nothing of it is stored, and memory has it.
                self.load();
                continue;
            }
            self.unsure = false;
            for mut entry in entries {
                if self.forgets {
                    entry.changes.retain(Change::is_stored);
                }
                self.head = Head { n: entry.n, mac: entry.mac };
                if entry
                    .changes
                    .iter()
                    .any(|it| matches!(it, Change::HostDown(daemon, _) if *daemon == self.id()))
                {
                    self.store.let_go().unwrap();
                    return false;
                }
                if entry.by != self.id() {
                    self.core.fold(&entry);
                }
            }
            return true;
        }
    }

    fn commit(&mut self, out: &Outbox) {
        if !out.is_shared() {
            return self.store.let_go().unwrap();
        }
        match self.store.commit(out) {
            Ok(head) => self.head = head,
            Err(CommitError::Failed(_)) => self.load(),
            Err(CommitError::Unknown(_)) => self.unsure = true,
        }
    }
}

struct Hosts {
    log: SharedLog,
    daemons: Vec<Daemon>,
    dice: Dice,
    now: Timestamp,
    out: Outbox,
    number: u64,
    /// At each how many-th entry fold is compared with load, which takes longer than all else.
    compares: u64,
    said: BTreeMap<&'static str, u64>,
}

impl Hosts {
    fn new(seed: u64) -> Self {
        let log = SharedLog::default();
        let daemons = (1..=HOSTS).map(|number| Daemon::start(&log, number)).collect();
        let now = Timestamp(1_700_000_000_000);
        let (said, out) = (BTreeMap::new(), Outbox::default());
        Self { log, daemons, dice: Dice::new(seed), now, out, number: 0, compares: 1, said }
    }

    fn count(&mut self, what: &'static str) {
        *self.said.entry(what).or_default() += 1;
    }

    fn roll(&mut self, sides: usize) -> usize {
        usize::try_from(self.dice.roll(sides as u64)).unwrap()
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())].clone()
    }

    fn one_of<T: Clone>(&mut self, from: Vec<T>) -> Option<T> {
        (!from.is_empty()).then(|| self.pick(&from))
    }

    fn someone(&mut self) -> Principal {
        match self.dice.roll(14) {
            0 => person("owner"),
            1 | 2 => approver("boss"),
            _ => {
                let name = self.pick(&NAMES);
                client(name)
            }
        }
    }

    /// One batch of one host, or something that befalls it.
    fn step(&mut self) {
        let pause = if self.dice.roll(30) == 0 { 900_000 } else { 3_000 };
        self.now = Timestamp(self.now.0 + i64::try_from(self.dice.roll(pause)).unwrap());
        self.log.set_time(self.now);
        let which = self.roll(self.daemons.len());
        match self.dice.roll(60) {
            0 => {
                self.daemons[which].load();
                self.count("memory lost");
            }
            1 => {
                self.log.cut();
                self.count("cuts");
            }
            2 => {
                // A start that no host has noticed: what the one before held is freed by it.
                let number = self.daemons[which].number;
                let before = self.daemons[which].id();
                self.daemons[which] = Daemon::start(&self.log, number);
                self.turn(which, |it, by| it.bury(by, before));
                self.count("starts");
            }
            3 => {
                let other = (which + 1 + self.roll(self.daemons.len() - 1)) % self.daemons.len();
                let dead = self.daemons[other].id();
                self.turn(which, |it, by| it.bury(by, dead));
                self.count("burials");
            }
            4 => {
                let lost = self.pick(&[Lost::Answer, Lost::Batch, Lost::Refused]);
                self.log.lose(lost);
                self.count("commits lost");
            }
            5 => self.log.fail_over(),
            _ => {
                let many = 1 + self.roll(4);
                self.turn(which, |it, by| (0..many).for_each(|_| it.deed(by)));
            }
        }
    }

    fn turn(&mut self, which: usize, act: impl FnOnce(&mut Self, usize)) {
        if !self.daemons[which].begin() {
            // Down: what it ran is over, and it comes back as another one.
            let number = self.daemons[which].number;
            self.daemons[which] = Daemon::start(&self.log, number);
            assert!(self.daemons[which].begin());
            self.count("comes back");
        }
        self.out.clear();
        let (now, out) = (self.now, &mut self.out);
        self.daemons[which].core.lapse(now, out);
        act(self, which);
        self.daemons[which].core.tick(self.now, &mut self.out);
        let out = std::mem::take(&mut self.out);
        self.daemons[which].commit(&out);
        self.check(which);
    }

    /// Fold == load: what this host has in memory is what a host finds that loads now.
    fn check(&self, which: usize) {
        let it = &self.daemons[which];
        if it.unsure || !it.head.n.0.is_multiple_of(self.compares) {
            return;
        }
        let (loaded, head) = it.store.snapshot(of_hosts());
        assert_eq!(it.head, head, "it has just had its turn");
        let wrong = differences(it.core.state(), &loaded);
        assert!(wrong.is_empty(), "host {} at {:?}: {wrong:?} are not what is stored", it.number, head.n);
    }

    fn bury(&mut self, by: usize, dead: DaemonId) {
        let before = self.daemons[by].core.state().clone();
        let owed = self.daemons[by].store.owed_by(dead).unwrap();
        self.daemons[by].core.bury(self.now, (dead, Gone::Silent), &owed, &mut self.out);
        let state = self.daemons[by].core.state();
        assert!(state.locks.waiters().all(|it| it.daemon != dead), "a dead host waits");
        let is_bound = |it: &&Arc<provost::domain::Lock>| {
            it.daemon == dead && (it.process.is_some() || it.run.is_some())
        };
        assert_eq!(state.locks.iter().find(is_bound), None, "a dead host's process has a lock");
        let free = |it: &Arc<provost::domain::Lock>| state.locks.iter().any(|lock| lock.fence == it.fence);
        let kept = before.locks.iter().filter(|it| it.process.is_none() && it.run.is_none());
        assert!(kept.into_iter().all(free), "an agent's own lock is gone");
        let runs = |it: &&Arc<Task>| it.daemon == dead && matches!(it.state, TaskState::Running { .. });
        assert_eq!(state.tasks.iter().find(runs), None, "a dead host runs a task");
        assert!(state.switches.iter().all(|(_, it)| it.is_lasting() || it.daemon != dead));
        let lost = before.tasks.iter().filter(runs).count();
        let said = self.out.changes.iter().filter(|it| matches!(it, Change::FinishTask(_))).count();
        assert!(said >= lost, "a lost task has an end");
        (0..lost).for_each(|_| self.count("tasks lost"));
    }

    /// All catch up, and are the same then.
    fn end(&mut self) {
        (0..2).for_each(|_| (0..self.daemons.len()).for_each(|which| self.turn(which, |_, _| {})));
        for which in 0..self.daemons.len() {
            if self.daemons[which].begin() {
                self.daemons[which].store.let_go().unwrap();
            } else {
                panic!("host {} was buried while nothing happened", self.daemons[which].number);
            }
        }
        let (first, others) = self.daemons.split_first().unwrap();
        for other in others {
            assert_eq!(first.head, other.head);
            let wrong = differences(first.core.state(), other.core.state());
            assert!(wrong.is_empty(), "hosts {} and {}: {wrong:?}", first.number, other.number);
        }
        self.chain();
    }

    /// Entries are dense, and so are events; fences and the other numbers only rise.
    fn chain(&self) {
        let entries = self.log.entries();
        assert!(entries.windows(2).all(|it| it[1].n == it[0].n.next()));
        let events = self.log.events();
        assert!(events.iter().zip(1..).all(|(event, n)| event.seq.0 == n));
        let mut newest = Fence(0);
        for event in events.iter().filter_map(|it| it.event().unwrap()) {
            if let EventKind::LockAcquired { fence, refreshed: false, .. } = event.kind {
                assert!(fence > newest, "fence {fence} comes after {newest}");
                newest = fence;
            }
        }
    }
}

fn storms(seeds: std::ops::Range<u64>, steps: u32) {
    let mut all: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in seeds {
        let run = move || {
            let mut hosts = Hosts { compares: 3, ..Hosts::new(seed) };
            (0..steps).for_each(|_| hosts.step());
            hosts.end();
            hosts.said
        };
        let said = std::panic::catch_unwind(run).unwrap_or_else(|_| panic!("seed {seed}"));
        said.into_iter().for_each(|(what, count)| *all.entry(what).or_default() += count);
    }
    for what in [
        "done",
        "refused",
        "memory lost",
        "cuts",
        "starts",
        "burials",
        "comes back",
        "commits lost",
        "tasks lost",
        "mail carried",
        "waits",
        "switches",
    ] {
        assert!(all.get(what).is_some_and(|it| *it > 5), "the storm lacks {what}: {all:?}");
    }
}

#[test]
fn three_hosts_over_one_log_are_equal_at_equal_heads() {
    storms(0..24, 250);
}

#[test]
fn a_host_that_folds_rows_alone_is_found_out() {
    let run = || {
        let mut hosts = Hosts::new(1);
        hosts.daemons.iter_mut().for_each(|it| it.forgets = true);
        (0..2_000).for_each(|_| hosts.step());
    };
    let found = std::panic::catch_unwind(run).expect_err("what only memory has is missing");
    let said = found.downcast_ref::<String>().expect("a sentence");
    assert!(said.contains("are not what is stored"), "{said}");
}
