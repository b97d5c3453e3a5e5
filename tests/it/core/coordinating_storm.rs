//! Storms of locks, intents and contracts, by seed, against rules that must hold in every order of events.

use std::collections::{BTreeMap, BTreeSet};

use provost::base::{AgentId, ContractId, Fence, IntentId, SymbolPath, Ticket, Timestamp, Ttl};
use provost::domain::command::{
    AcquireLock, AnswerContract, FollowContracts, FreshSpans, HoldPlaces, Leave, LeaveQueue, Locked,
    PlaceToHold, PlacesHeld, ProposeContract, ReapLocks, RefreshIntents, ReleaseLock, UpdateIntent,
    WithdrawContract,
};
use provost::domain::{
    Answer, Call, Change, Command, ContractStatus, Contracts, Core, Facts, IntentStatus, Intents, Lock,
    Locks, Outbox, Principal, Refusal, Reply, State,
};

use crate::support::coordinating::{acquire, at, intent, path, release};
use crate::support::script::{ByWord, client, host, person};
use crate::support::storm::{Dice, settings};

const AGENTS: [&str; 5] = ["ada", "bob", "eve", "zoe", "kim"];
const SYMBOLS: [&str; 8] = ["", "run", "Base", "Base.run", "Base.stop", "Other", "Other.run", "free"];
const FILES: [&str; 2] = ["a.ts", "b.ts"];

struct Storm {
    core: Core,
    dice: Dice,
    now: Timestamp,
    out: Outbox,
    /// The stored changes, applied to an empty state.
    folded: State,
    tickets: BTreeMap<String, Vec<(Ticket, AcquireLock)>>,
    newest: Fence,
    number: u64,
    said: BTreeMap<&'static str, u64>,
}

impl Storm {
    fn new(seed: u64) -> Self {
        let state = State::new(settings());
        Self {
            core: Core::new(state.clone(), Box::new(ByWord::default())),
            dice: Dice::new(seed),
            now: Timestamp(1_700_000_000_000),
            out: Outbox::default(),
            folded: state,
            tickets: BTreeMap::new(),
            newest: Fence(0),
            number: 0,
            said: BTreeMap::new(),
        }
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.dice.roll(from.len() as u64)).unwrap()]
    }

    fn symbol(&mut self) -> String {
        format!("{}:{}", self.pick(&FILES), self.pick(&SYMBOLS))
    }

    fn step(&mut self) {
        let pause = if self.dice.roll(20) == 0 { 400_000 } else { 3_000 };
        self.now = Timestamp(self.now.0 + i64::try_from(self.dice.roll(pause)).unwrap());
        self.out.clear();
        self.core.lapse(self.now, &mut self.out);
        self.fold();
        match self.dice.roll(24) {
            0..=7 => self.lock(),
            8..=9 => self.write(),
            10..=13 => {
                let (who, symbol, force) = (self.someone(), self.symbol(), self.dice.roll(10) == 0);
                let fence = (self.dice.roll(3) == 0).then(|| Fence(self.dice.roll(self.newest.0 + 2)));
                self.say(&who, ReleaseLock { force, fence, ..release(&symbol) }).ok();
            }
            14 => {
                let who = self.someone();
                let intents = self.dice.roll(2) == 0;
                self.say(&who, Leave { intents, process: None }).ok();
            }
            15 => self.reap(),
            16..=19 => self.intent(),
            20..=22 => self.contract(),
            _ if self.dice.roll(8) == 0 => self.restart(),
            _ => {
                self.out.clear();
                self.core.tick(self.now, &mut self.out);
                self.fold();
            }
        }
        self.check();
    }

    fn someone(&mut self) -> Principal {
        match self.dice.roll(20) {
            0 => person("owner"),
            1 => host(),
            _ => client(self.pick(&AGENTS)),
        }
    }

    fn lock(&mut self) {
        let name = self.pick(&AGENTS).to_owned();
        let who = client(&name);
        let mut verb = acquire(&self.symbol());
        verb.ttl = Ttl::from_millis(1 + self.dice.roll(600_000)).unwrap();
        // The file says at times that a bare name and a full one are the same.
        if verb.at.symbol() == "run" && self.dice.roll(2) == 0 {
            verb.seen.names = vec!["Base.run".into()];
        }
        verb.wait = (self.dice.roll(3) == 0).then(|| Ttl::from_millis(1 + self.dice.roll(60_000)).unwrap());
        let waiting = self.tickets.entry(name.clone()).or_default();
        if !waiting.is_empty() && self.dice.roll(3) > 0 {
            let (ticket, asked) = waiting.remove(0);
            verb = AcquireLock { ticket: Some(ticket), ..asked };
            if self.dice.roll(6) == 0 {
                self.say(&who, LeaveQueue { ticket }).unwrap();
                return;
            }
        }
        let before = self.newest;
        match self.say(&who, verb.clone()) {
            Ok(Answer::Done(Reply::Locked(Locked::Held { lock, fresh, .. }))) => {
                assert_eq!(fresh, lock.fence > before, "a new grant has a new number, a refresh its own");
                self.newest = self.newest.max(lock.fence);
            }
            Ok(Answer::Done(Reply::Locked(Locked::Queued { ticket, .. }))) => {
                self.tickets.entry(name).or_default().push((ticket, verb));
            }
            Err(Refusal::LockConflict(rival)) => {
                assert_ne!(rival.by.as_str(), name, "nobody is in their own way");
                assert!(rival.until > self.now, "what is over is in nobody's way");
            }
            Err(Refusal::WouldDeadlock { circle, .. }) => {
                assert_eq!(circle.first().map(AgentId::as_str), Some(&*name));
                assert!(circle.len() > 1, "a circle has others in it");
            }
            other => panic!("{other:?}"),
        }
    }

    /// A write after a look at what others hold, which is too old at times.
    fn write(&mut self) {
        let name = self.pick(&AGENTS).to_owned();
        let (one, other) = (at(&self.symbol()), at(&self.symbol()));
        let files = vec![one.file().clone(), other.file().clone()];
        let locks = || self.core.state().locks.iter().filter(|it| !it.lapsed && it.holder.as_str() != name);
        let mut seen: Vec<Fence> =
            locks().filter(|it| files.contains(it.at.file())).map(|it| it.fence).collect();
        let is_old = self.dice.roll(4) == 0 && seen.pop().is_some();
        let mut places = vec![one, other];
        places.dedup();
        // As with locks, a bare name and a full one may be the same.
        let place = |at: SymbolPath| {
            let names = if at.symbol() == "Base.run" { vec!["run".into()] } else { Vec::new() };
            PlaceToHold { at, names }
        };
        let verb = HoldPlaces {
            places: places.into_iter().map(place).collect(),
            files,
            seen,
            tree: ["/r", "/s"][usize::from(self.dice.roll(2) == 0)].into(),
            commit: None,
            nested: Vec::new(),
            part: None,
            process: None,
        };
        match self.say(&client(&name), verb) {
            Ok(Answer::Done(Reply::PlacesHeld(PlacesHeld::Overtaken))) => assert!(is_old),
            Ok(Answer::Done(Reply::PlacesHeld(PlacesHeld::Held(locks)))) => {
                assert!(!is_old);
                assert!(locks.iter().all(|it| it.holder.as_str() == name && it.expires_at > self.now));
                self.newest = locks.iter().map(|it| it.fence).fold(self.newest, Fence::max);
            }
            other => panic!("{other:?}"),
        }
    }

    fn reap(&mut self) {
        let held: Vec<_> = self.core.state().locks.iter().map(|it| (it.at.clone(), it.fence)).collect();
        let some = held.into_iter().filter(|_| self.dice.roll(4) == 0).collect();
        self.say(&host(), ReapLocks { locks: some, why: "gone".into() }).unwrap();
    }

    fn intent(&mut self) {
        let who = self.someone();
        self.number += 1;
        let known = IntentId::parse(&format!("i-{}", 1 + self.dice.roll(self.number))).unwrap();
        match self.dice.roll(3) {
            0 => {
                use IntentStatus::{Abandoned, Active, Declared, Resolved};
                let to = [Active, Declared, Resolved, Abandoned][usize::try_from(self.dice.roll(4)).unwrap()];
                self.say(&who, UpdateIntent { id: known, to }).ok();
            }
            1 => {
                let start = u32::try_from(self.dice.roll(50)).unwrap();
                let spans = vec![provost::base::Span { start, end: start + 5 }];
                let fresh = FreshSpans { intent: known, file: path(self.pick(&FILES)), spans };
                self.say(&host(), RefreshIntents { spans: vec![fresh] }).unwrap();
            }
            _ => {
                let start = u32::try_from(self.dice.roll(50)).unwrap();
                let symbol = self.pick(&SYMBOLS);
                let file = self.pick(&FILES);
                let spans = [(start, start + 10)];
                let mut verb = match self.dice.roll(2) {
                    0 => intent(self.number, &[(file, &[])], &[]),
                    _ => intent(self.number, &[(file, &spans)], &[symbol]),
                };
                verb.ttl = Ttl::from_millis(1 + self.dice.roll(900_000));
                self.say(&who, verb).ok();
            }
        }
    }

    fn contract(&mut self) {
        let who = self.someone();
        self.number += 1;
        let id = ContractId::parse(&format!("c-{}", 1 + self.dice.roll(self.number))).unwrap();
        match self.dice.roll(5) {
            0 | 1 => {
                let id = ContractId::parse(&format!("c-{}", self.number)).unwrap();
                let symbol = self.symbol();
                let (at, asked) = (at(&symbol), symbol.into());
                let verb = ProposeContract {
                    id,
                    at,
                    asked,
                    signature: "()".into(),
                    canon: "()".into(),
                    branch: None,
                };
                self.say(&who, verb).ok();
            }
            2 => drop(self.say(&who, AnswerContract { id, accept: self.number.is_multiple_of(2) })),
            3 => drop(self.say(&who, WithdrawContract { id })),
            _ => drop(self.say(&host(), FollowContracts { moves: vec![(id, path("c.ts"))] })),
        }
    }

    fn say(&mut self, who: &Principal, command: impl Into<Command>) -> Result<Answer<Reply>, Refusal> {
        self.out.clear();
        let call = Call {
            now: self.now,
            wall: self.now,
            who,
            facts: Facts::default(),
            past: None,
            earlier: Vec::new(),
        };
        let said = self.core.apply(call, command.into(), &mut self.out);
        if said.is_err() {
            assert!(self.out.is_empty() && self.out.changes.is_empty(), "a refusal left something: {said:?}");
        }
        *self.said.entry(if said.is_ok() { "done" } else { "refused" }).or_default() += 1;
        self.fold();
        said
    }

    fn fold(&mut self) {
        self.out.changes.iter().filter(|it| it.is_stored()).for_each(|it| self.folded.apply(it));
    }

    /// Memory is what was stored; nobody waits any more.
    fn restart(&mut self) {
        let mut state = State::new(settings());
        self.folded.locks.iter().cloned().for_each(|it| state.apply(&Change::PutLock(it)));
        self.folded.intents.iter().cloned().for_each(|it| state.apply(&Change::PutIntent(it)));
        self.folded.contracts.iter().cloned().for_each(|it| state.apply(&Change::PutContract(it)));
        state.apply(&Change::Count(self.folded.counters));
        self.core = Core::new(state, Box::new(ByWord::default()));
        self.tickets.clear();
        *self.said.entry("restarts").or_default() += 1;
    }

    fn check(&self) {
        let state = self.core.state();
        assert!(state.locks.iter().eq(self.folded.locks.iter()), "locks are the fold of what was stored");
        assert!(state.intents == self.folded.intents && state.contracts == self.folded.contracts);
        let mut named: BTreeMap<(String, String), Vec<&Lock>> = BTreeMap::new();
        for lock in state.locks.iter().filter(|it| !it.lapsed) {
            for name in lock.all_names() {
                let others = named.entry((lock.at.file().to_string(), name.to_owned())).or_default();
                // Leases of different work trees alone may be beside each other.
                let is_apart = |it: &&Lock| match (&it.writing, &lock.writing) {
                    (Some(one), Some(other)) => one.tree != other.tree,
                    _ => false,
                };
                let bad = others.iter().find(|it| it.holder != lock.holder && !is_apart(it));
                assert!(bad.is_none(), "two holders of {}: {lock:?} and {bad:?}", lock.at);
                others.push(lock);
            }
        }
        let mut in_force = BTreeSet::new();
        for contract in state.contracts.iter().filter(|it| it.status == ContractStatus::Accepted) {
            assert!(in_force.insert(contract.at.to_string()), "two contracts in force on {}", contract.at);
        }
        assert!(state.intents.live() <= state.intents.iter().count());
    }

    /// Everything is given up; nothing may be left in any index.
    fn clear(&mut self) {
        for name in AGENTS.into_iter().chain(["owner"]) {
            self.say(&client(name), Leave { intents: true, process: None }).unwrap();
        }
        let mut state = self.core.state().clone();
        let locks: Vec<_> = state.locks.iter().map(|it| it.at.clone()).collect();
        let intents: Vec<_> = state.intents.iter().map(|it| it.id.clone()).collect();
        let contracts: Vec<_> = state.contracts.iter().map(|it| it.id.clone()).collect();
        locks.into_iter().for_each(|it| state.apply(&Change::DropLock(it)));
        intents.into_iter().for_each(|it| state.apply(&Change::DropIntent(it)));
        contracts.into_iter().for_each(|it| state.apply(&Change::DropContract(it)));
        assert!(state.locks == Locks::default(), "an index remembers a lock: {:?}", state.locks);
        assert!(state.intents == Intents::default(), "an index remembers an intent: {:?}", state.intents);
        assert!(state.contracts == Contracts::default(), "an index remembers a contract");
    }
}

#[test]
fn a_hundred_storms_of_coordination_hold() {
    let mut all: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 0..100 {
        let mut storm = Storm::new(seed);
        (0..600).for_each(|_| storm.step());
        storm.clear();
        storm.said.iter().for_each(|(what, count)| *all.entry(what).or_default() += count);
    }
    assert!(all["done"] > 10_000 && all["refused"] > 5_000 && all["restarts"] > 50, "a breeze: {all:?}");
}
