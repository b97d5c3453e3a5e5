//! Locks on symbols and resources: leases with a number, and a queue for the agents that wait.
//!
//! ```text
//!            acquire                      time is up
//!   (free) -----------> [held] ----------------------------> [lapsed] --10 min--> (free)
//!      ^                 |  ^                                   |  |
//!      |  release, leave |  +-- acquire by its holder: refresh  |  +-- acquire by anyone: take over
//!      +-----------------+<-------------------------------------+ release by its holder
//! ```
//! The number (*fence*) rises with every grant, not with a refresh. A refresh keeps the members that it does not
//! name: the process and the task with which the lock ends, and the reason. Two names of one symbol are one lock. A
//! lock on a whole covers its parts: no other agent gets a part of it; an agent that locks a whole while others
//! hold parts gets the rest, and a warning. A lapsed lock is remembered for a while, so that its late holder gets the
//! same answer at any time. wit, 5.3 to 5.5; waiting is Provost's own.

mod awaited;
mod needs;
mod resource;
mod table;
mod waiting;
mod writing;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    AcquireLock, Apart, FollowLocks, HasLeft, Leave, LeaveQueue, LockReleased, Locked, LocksFollowed,
    LocksReaped, QueueLeft, ReapLocks, ReleaseLock, Rival, SymbolPresence, Warning,
};
use super::{
    Change, EventKind, MailKind, Outbox, Part, Principal, Proof, Refusal, Reservation, ReservationKind,
    Scope, Share, State, Task, Title,
};
use provost_base::limits::{
    DESCRIPTION_LEN_MAX, LOCKS_MAX, LOCKS_OF_ONE_MAX, LOCKS_PER_AGENT_MAX, RESOURCES_OF_ONE_MAX, WAITERS_MAX,
    WAITERS_OF_ONE_MAX, WARNINGS_MAX,
};
use provost_base::{AgentId, DaemonId, Fence, SymbolPath, TaskId, Ticket, Timestamp, Ttl, encloses};
use waiting::Want;

pub use awaited::{LockWait, RefusedCircle, RefusedCircles};
pub use needs::{AwaitedNeed, AwaitedNeeds, NeedsWait};
pub use table::Locks;
pub use waiting::{Units, Waiter};
pub use writing::{UntilCommit, Writer, Writing};

/// The time for which a lapsed lock is remembered for its late holder.
const LAPSED_KEEP: Ttl = Ttl::minutes(10);

/// A process, marked so that a later process with the same number is not taken for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ProcessMark {
    /// The process id, as the kernel counts.
    pub pid: u32,
    /// When the process began, in the system's own unit.
    pub started: u64,
}

/// A granted lock, held or lapsed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// The symbol that the lock is on.
    pub at: SymbolPath,
    /// The symbol, as the holder wrote it.
    pub asked: Box<str>,
    /// Other names of the same symbol.
    pub names: Vec<Box<str>>,
    /// The agent that has the lock.
    pub holder: AgentId,
    /// The task for which a jailed worker has the lock, which ends with it.
    pub run: Option<TaskId>,
    /// When the lock was granted or last refreshed.
    pub acquired_at: Timestamp,
    /// The lock is live until just before this moment.
    pub expires_at: Timestamp,
    /// The number of the grant; a refresh keeps it.
    pub fence: Fence,
    /// The grant that gives the lock its place in lists; a refresh keeps it.
    pub place: Fence,
    /// Whether its time is up.
    pub lapsed: bool,
    /// The process with which the lock ends.
    pub process: Option<ProcessMark>,
    /// The purpose, for others to read.
    pub reason: Option<Box<str>>,
    /// The share of its holder, to which the lock counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Set if a write has taken the lock; `None` if an agent asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writing: Option<Writing>,
    /// The work tree in which the commit of its file ends the lock, before its time; set where a refusal has advised to wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_commit: Option<UntilCommit>,
    /// The number of units of a counted kind of resource; `None` for other locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// The daemon that knows the lock's process or run.
    #[serde(default, skip_serializing_if = "DaemonId::is_alone")]
    pub daemon: DaemonId,
}

impl Lock {
    /// Returns every name of the locked symbol in its file.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.at.name()).chain(self.names.iter().map(|it| &**it))
    }

    /// Checks whether a symbol of the same file is the locked one, or part of it.
    pub fn covers(&self, symbol: &str) -> bool {
        self.all_names().any(|name| name == symbol || encloses(name, symbol))
    }

    pub(super) fn stake(&self) -> Reservation {
        let names =
            if self.at.name().is_empty() { Vec::new() } else { self.all_names().map(Into::into).collect() };
        Reservation {
            agent: self.holder.clone(),
            kind: ReservationKind::Lock,
            at: self.at.file().clone(),
            pattern: None,
            part: Part { names, lines: Vec::new() },
            since: self.acquired_at,
            until: Some(self.expires_at),
            asked: self.asked.clone(),
        }
    }

    fn rival(&self) -> Rival {
        Rival {
            by: self.holder.clone(),
            asked: self.asked.clone(),
            until: self.expires_at,
            since: self.acquired_at,
            fence: Some(self.fence),
            reason: self.reason.clone(),
        }
    }
}

impl State {
    /// Acquires a lock, refreshes one of the caller's own, or takes over a lapsed one. wit `lock.acquire`.
    pub(super) fn acquire(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AcquireLock,
        out: &mut Outbox,
    ) -> Result<Locked, Refusal> {
        if verb.reason.as_deref().is_some_and(|it| it.len() > DESCRIPTION_LEN_MAX) {
            return Err(Refusal::too_long("the reason of a lock", DESCRIPTION_LEN_MAX, "bytes"));
        }
        self.agents.beat(now, who.agent(), out);
        let names: Vec<&str> =
            std::iter::once(verb.at.symbol()).chain(verb.seen.names.iter().map(|it| &**it)).collect();
        let units = self.units_of(&verb.at)?;
        let held = self.locks.get(&verb.at).filter(|lock| !lock.lapsed);
        let own = self.own_grant(who, verb, units.as_ref());
        let run = run_of(who);
        let want = Want {
            who: who.agent(),
            run: run.as_ref(),
            at: &verb.at,
            names: &names,
            units: units.as_ref(),
            own: own.map(|it| it.fence),
            apart: verb.apart != Apart::FromNone,
            ticket: verb.ticket.filter(|it| self.owns_place(who.agent(), *it)),
        };
        let has_enough =
            own.is_some_and(|own| units.as_ref().is_none_or(|it| it.wanted <= own.units.unwrap_or(1)));
        // While the caller has a lease there, others may have theirs in other work trees.
        let is_lease = own.is_some_and(|it| it.writing.is_some());
        let rival = match has_enough {
            true => is_lease.then(|| self.holder_of(want)).flatten(),
            false => self.first_of(want),
        };
        if let Some(rival) = rival {
            return self.wait_for(now, who, verb, want, rival, out);
        }
        if own.is_none() {
            self.room_for_lock(who, &verb.at)?;
            if let Some(announced) = held {
                self.free(announced, "another agent has asked for it", out);
            }
        }
        if let Some(ticket) = want.ticket {
            out.put(Change::DropWaiter(ticket));
        }
        let lock = Arc::new(self.granted(now, who, verb, (own, units.as_ref()), out));
        // A resource is not a file, and no other door has resources.
        let met = match lock.at.is_resource() {
            true => Vec::new(),
            false => self.meet(now, &Title::Lock(lock.at.clone()), &[lock.stake()], out)?,
        };
        out.append_event(EventKind::LockAcquired {
            symbol: lock.at.clone(),
            fence: lock.fence,
            until: lock.expires_at,
            refreshed: own.is_some(),
            reason: lock.reason.clone(),
        });
        out.put(Change::PutLock(lock.clone()));
        let mut warnings = self.warnings(who.agent(), verb, &names);
        warnings.extend(met.into_iter().map(|it| Warning::Elsewhere(it.with)));
        let more = warnings.len().saturating_sub(WARNINGS_MAX);
        warnings.truncate(WARNINGS_MAX);
        Ok(Locked::Held { lock, fresh: own.is_none(), warnings, more })
    }

    /// Returns the party that a request has to wait for: it has the lock, or has waited for it longest.
    fn first_of(&self, want: Want<'_>) -> Option<Rival> {
        self.holder_of(want).or_else(|| self.locks.earlier(want).next().map(|it| it.rival()))
    }

    fn holder_of(&self, want: Want<'_>) -> Option<Rival> {
        self.locks.holders(want).min_by_key(|it| it.expires_at).map(|it| it.rival())
    }

    fn owns_place(&self, who: &AgentId, ticket: Ticket) -> bool {
        self.locks.waiter(ticket).is_some_and(|it| it.agent == *who)
    }

    fn room_for_lock(&self, who: &Principal, at: &SymbolPath) -> Result<(), Refusal> {
        // A lock that is taken again needs no more room.
        if self.locks.get(at).is_some() {
            return Ok(());
        }
        if self.locks.count_of(who.agent()) >= LOCKS_PER_AGENT_MAX {
            return Err(Refusal::quota(
                "as many locks as one agent can have",
                LOCKS_PER_AGENT_MAX,
                "release some",
            ));
        }
        // A process could take one name after another: its share bounds all of them together.
        if self.locks.count_of_share(&who.share()) >= LOCKS_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many locks as the processes of one agent can have under all their names",
                LOCKS_OF_ONE_MAX,
                "release some",
            ));
        }
        if at.is_resource() && self.locks.resources_of_share(&who.share()) >= RESOURCES_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many resources as the processes of one agent can have under all their names",
                RESOURCES_OF_ONE_MAX,
                "release some",
            ));
        }
        if self.locks.len() >= LOCKS_MAX {
            return Err(Refusal::busy(
                "as many locks as there can be; `provost lock list` shows whose they are",
            ));
        }
        Ok(())
    }

    fn granted(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AcquireLock,
        (own, units): (Option<&Arc<Lock>>, Option<&Units>),
        out: &mut Outbox,
    ) -> Lock {
        let (fence, place) = match own {
            Some(lock) => (lock.fence, lock.place),
            None => {
                let fence = out.next_fence();
                (fence, fence)
            }
        };
        let process = verb.process.or_else(|| own.filter(|_| !verb.in_session)?.process);
        let at = match (units, own) {
            (None, _) => verb.at.clone(),
            (Some(_), Some(lock)) => lock.at.clone(),
            (Some(units), None) => SymbolPath::of_units(&units.kind, fence),
        };
        Lock {
            at,
            asked: verb.asked.clone(),
            names: self.names_left(who.agent(), verb),
            holder: who.agent().clone(),
            run: run_of(who).or_else(|| own?.run.clone()),
            acquired_at: now,
            expires_at: resource::lease_end(now, verb, own, process),
            fence,
            place,
            lapsed: false,
            process,
            reason: verb.reason.clone().or_else(|| own?.reason.clone()),
            share: Some(who.share()),
            // A lease that its holder asks for becomes a lock like any other.
            writing: None,
            until_commit: verb.until_commit.clone().or_else(|| own?.until_commit.clone()),
            units: units.map(|it| it.wanted),
            daemon: own.filter(|_| verb.process.is_none()).map_or(self.here, |it| it.daemon),
        }
    }

    /// Returns the other names of a symbol, except those under which others have it: the file may have changed
    /// since a lock was granted, and its refresh takes nothing from another agent.
    fn names_left(&self, who: &AgentId, verb: &AcquireLock) -> Vec<Box<str>> {
        let free =
            |name: &str| self.locks.rivals(who, verb.at.file(), std::iter::once(name)).next().is_none();
        verb.seen.names.iter().filter(|name| free(name)).cloned().collect()
    }

    /// Queues the caller up behind the lock's holder, or refuses the request.
    fn wait_for(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AcquireLock,
        want: Want<'_>,
        rival: Rival,
        out: &mut Outbox,
    ) -> Result<Locked, Refusal> {
        if let Some(ticket) = verb.ticket {
            // A wait is valid once. A ticket whose time is up, or that was given back, does not begin another wait.
            let known = self.locks.waiter(ticket).filter(|it| it.agent == *who.agent() && now < it.until);
            let Some(waiter) = known else { return Err(Refusal::LockConflict(Box::new(rival))) };
            let ahead = self.locks.earlier(Want { ticket: Some(ticket), ..want }).count();
            return Ok(Locked::Queued { ticket, ahead, until: waiter.until });
        }
        let Some(wait) = verb.wait else { return Err(Refusal::LockConflict(Box::new(rival))) };
        if let Some(circle) = self.locks.circle(want) {
            return Err(Refusal::WouldDeadlock { circle, rival: Box::new(rival) });
        }
        let share = who.share();
        self.room_for_waiters(&share, 1)?;
        let ahead = self.locks.earlier(want).count();
        let waiter = Waiter {
            ticket: out.next_ticket(),
            at: verb.at.clone(),
            asked: verb.asked.clone(),
            names: verb.seen.names.clone(),
            agent: who.agent().clone(),
            since: now,
            until: now.after(wait),
            share,
            run: want.run.cloned(),
            units: want.units.cloned(),
            own: want.own,
            apart: want.apart,
            daemon: self.here,
        };
        let (ticket, until) = (waiter.ticket, waiter.until);
        self.tell_holder(now, &waiter, &rival, out);
        out.append_event(EventKind::LockAwaited { symbol: verb.at.clone(), by: rival.by });
        out.put(Change::PutWaiter(Arc::new(waiter)));
        Ok(Locked::Queued { ticket, ahead, until })
    }

    fn room_for_waiters(&self, share: &Share, more: usize) -> Result<(), Refusal> {
        if self.locks.waiting() + more > WAITERS_MAX {
            return Err(Refusal::busy("as many agents wait for locks as can"));
        }
        if self.locks.waiting_of(share) + more > WAITERS_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many wait for locks as the processes of one agent can under all their names",
                WAITERS_OF_ONE_MAX,
                "wait for one at a time",
            ));
        }
        Ok(())
    }

    /// Tells the holder of a lock that an agent waits for it: one message for each grant, with the newest waiter.
    /// Names can be invented freely, and no number of waiters may push other mail out.
    fn tell_holder(&self, now: Timestamp, waiter: &Waiter, rival: &Rival, out: &mut Outbox) {
        let Some(fence) = rival.fence.filter(|_| rival.by != waiter.agent) else { return };
        let word = MailKind::Wanted {
            symbol: rival.asked.clone(),
            fence,
            agent: waiter.agent.clone(),
            until: waiter.until,
        };
        if !self.mail.has_word_of_waiter(&rival.by, fence, &waiter.agent) {
            self.mail.withdraw_wanted(&rival.by, fence, out);
            self.mail.post_if_it_fits(now, &rival.by, word, out);
        }
    }

    fn warnings(&self, who: &AgentId, verb: &AcquireLock, names: &[&str]) -> Vec<Warning> {
        let file = verb.at.file();
        if verb.at.is_resource() {
            return Vec::new();
        }
        let foreign = |lock: &&Arc<Lock>| lock.holder != *who;
        let mut found = Vec::new();
        for caller in &verb.seen.callers {
            let same = self.locks.live_named(caller.file(), caller.symbol());
            let lock = same.chain(self.locks.live_around(caller.file(), caller.symbol())).find(foreign);
            if let Some(lock) = lock {
                let guessed = verb.seen.guessed_callers.contains(caller);
                found.push(Warning::CallerLocked { caller: caller.clone(), lock: lock.clone(), guessed });
            }
        }
        for callee in &verb.seen.callees {
            let same = self.locks.live_named(callee.file(), callee.symbol());
            let lock = same.chain(self.locks.live_around(callee.file(), callee.symbol())).find(foreign);
            if let Some(lock) = lock {
                let guessed = verb.seen.guessed_callees.contains(callee);
                found.push(Warning::CalleeLocked { callee: callee.clone(), lock: lock.clone(), guessed });
            }
        }
        let mut seen = BTreeSet::new();
        for name in names {
            let around = self.locks.live_around(file, name).filter(foreign);
            found.extend(around.filter(|it| seen.insert(it.fence)).cloned().map(Warning::Inside));
            let inside = self.locks.live_inside(file, name).filter(foreign);
            found.extend(inside.filter(|it| seen.insert(it.fence)).cloned().map(Warning::Around));
        }
        found.extend(self.intents.intending(who, file, names).map(Warning::Intended));
        match &verb.seen.known {
            SymbolPresence::NoFile => found.push(Warning::NoFile),
            SymbolPresence::Missing => found.push(Warning::Unknown),
            SymbolPresence::Ambiguous(paths) => {
                let locks = paths.iter().flat_map(|path| self.locks.live_named(file, path)).filter(foreign);
                found.extend(locks.filter(|it| seen.insert(it.fence)).cloned().map(Warning::Around));
                found.push(Warning::Ambiguous(paths.clone()));
            }
            SymbolPresence::Unreadable(why) => found.push(Warning::Unreadable(why.clone())),
            SymbolPresence::Unasked | SymbolPresence::Found => {}
        }
        // The gaps come first, so that the list's bound does not cut them off.
        found.splice(0..0, verb.seen.gaps.iter().cloned().map(Warning::Incomplete));
        found
    }

    /// Releases a lock. For all agents but its holder, a lapsed lock does not exist. wit `lock.release`.
    pub(super) fn release(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ReleaseLock,
        out: &mut Outbox,
    ) -> Result<LockReleased, Refusal> {
        if verb.force && !who.operates() {
            return Err(Refusal::OutOfScope { needs: Scope::Operate });
        }
        self.agents.beat(now, who.agent(), out);
        let lock = self.named_for_release(who, verb)?.ok_or(Refusal::LockNotFound)?;
        if lock.holder != *who.agent() && !verb.force {
            return Err(match lock.lapsed {
                true => Refusal::LockNotFound,
                false => Refusal::LockNotHeld { by: lock.holder.clone(), fence: lock.fence, asked: None },
            });
        }
        if let Some(fence) = verb.fence.filter(|fence| *fence != lock.fence) {
            return Err(Refusal::LockNotHeld {
                by: lock.holder.clone(),
                fence: lock.fence,
                asked: Some(fence),
            });
        }
        self.free(lock, if verb.force { "forced" } else { "released" }, out);
        Ok(LockReleased { lock: lock.clone() })
    }

    pub(super) fn free(&self, lock: &Lock, why: &str, out: &mut Outbox) {
        self.mail.withdraw_wanted(&lock.holder, lock.fence, out);
        self.let_go(lock, why, out);
    }

    fn let_go(&self, lock: &Lock, why: &str, out: &mut Outbox) {
        if !lock.lapsed {
            let (symbol, holder) = (lock.at.plain(), lock.holder.clone());
            out.append_event(EventKind::LockFreed { symbol, holder, fence: lock.fence, why: why.into() });
        }
        out.put(Change::DropLock(lock.at.clone()));
    }

    /// Ends the wait of the caller, or of another agent if the caller may operate.
    pub(super) fn leave_queue(
        &self,
        who: &Principal,
        verb: &LeaveQueue,
        out: &mut Outbox,
    ) -> Result<QueueLeft, Refusal> {
        if (self.owns_place(who.agent(), verb.ticket) || who.operates())
            && let Some(waiter) = self.locks.waiter(verb.ticket)
        {
            self.give_up(waiter, out);
        }
        Ok(QueueLeft)
    }

    pub(super) fn give_up(&self, waiter: &Waiter, out: &mut Outbox) {
        out.append_event(EventKind::LockWaitEnded { symbol: waiter.at.clone(), agent: waiter.agent.clone() });
        out.put(Change::DropWaiter(waiter.ticket));
    }

    /// Ends the caller's session.
    pub(super) fn leave(&self, now: Timestamp, who: &Principal, verb: &Leave, out: &mut Outbox) -> HasLeft {
        let run = run_of(who);
        let is_its = |lock: &&Arc<Lock>| {
            !lock.is_of_other_run(run.as_ref()) && (verb.process.is_none() || lock.process == verb.process)
        };
        let held: Vec<_> = self.locks.held_by(who.agent()).filter(is_its).cloned().collect();
        let is_session = verb.intents || verb.process.is_some();
        let why = if is_session { "its session has left" } else { "its agent has released all" };
        held.iter().for_each(|lock| self.free(lock, why, out));
        let waits = self.locks.waiters().filter(|it| it.agent == *who.agent() && verb.process.is_none());
        waits.for_each(|waiter| self.give_up(waiter, out));
        let intents = if verb.intents { self.abandon_all(now, who.agent(), out) } else { 0 };
        HasLeft { locks: held.iter().filter(|it| !it.lapsed).count(), intents }
    }

    /// Frees everything that an agent holds or waits for, in all of its runs; returns how many live locks and places that were.
    pub(super) fn free_places_of(&self, agent: &AgentId, why: &str, out: &mut Outbox) -> (usize, usize) {
        let live =
            self.locks.held_by(agent).inspect(|it| self.free(it, why, out)).filter(|it| !it.lapsed).count();
        let waits = self.locks.waiters().filter(|it| it.agent == *agent);
        (live, waits.map(|waiter| self.give_up(waiter, out)).count())
    }

    /// Frees locks whose holders are gone, if they still are the same grants.
    pub(super) fn reap(&self, verb: &ReapLocks, out: &mut Outbox) -> LocksReaped {
        let found = verb
            .locks
            .iter()
            .filter_map(|(at, fence)| self.locks.get(at).filter(|lock| lock.fence == *fence && !lock.lapsed));
        let count = found.map(|lock| self.free(lock, &verb.why, out)).count();
        LocksReaped { count }
    }

    /// Moves live locks along with files that were renamed, as the same grants. A lock stays under the old name if
    /// another agent's lock blocks the new name.
    pub(super) fn follow_locks(&self, verb: &FollowLocks, out: &mut Outbox) -> LocksFollowed {
        let mut count = 0;
        for (from, to) in &verb.moves {
            // In another host's work tree, the file may still have its old name.
            for lock in self.locks.live_in(from).filter(|it| self.is_here(it.daemon)) {
                let names: Vec<&str> = lock.all_names().collect();
                let there = lock.at.in_file(to.clone());
                let taken = self.locks.in_the_way(&lock.holder, to, &names).next().is_some();
                if taken || self.locks.get(&there).is_some_and(|it| !it.lapsed) {
                    continue;
                }
                self.let_go(lock, &format!("its file is {to} now"), out);
                out.append_event(EventKind::LockAcquired {
                    symbol: there.plain(),
                    fence: lock.fence,
                    until: lock.expires_at,
                    refreshed: true,
                    reason: None,
                });
                let asked = match there.name() {
                    "" => to.as_str().into(),
                    _ => there.plain().to_string().into(),
                };
                out.put(Change::PutLock(Arc::new(Lock { at: there, asked, ..Lock::clone(lock) })));
                count += 1;
            }
        }
        LocksFollowed { count }
    }

    /// Frees the locks of a task's jailed worker, and its waits, when the task ends.
    pub(super) fn free_locks_of(&self, task: &Task, out: &mut Outbox) {
        let worker = &task.order.worker;
        let held = self.locks.held_by(worker).filter(|lock| lock.run.as_ref() == Some(task.id()));
        held.for_each(|lock| self.free(lock, "its task has ended", out));
        let waits = self.locks.waiters().filter(|it| it.run.as_ref() == Some(task.id()));
        waits.for_each(|waiter| self.give_up(waiter, out));
    }

    /// Marks locks as lapsed whose time is up, forgets lapsed ones, and ends waits whose time is up.
    pub(super) fn lapse_locks(&self, now: Timestamp, out: &mut Outbox) {
        for lock in self.locks.due(now) {
            // The writer of a lease takes the next one by writing again, and never asks about an old one.
            let is_over = lock.lapsed || lock.writing.is_some();
            if is_over || lock.expires_at.after(LAPSED_KEEP) <= now {
                self.free(lock, "its time was up", out);
            } else {
                self.mail.withdraw_wanted(&lock.holder, lock.fence, out);
                let (symbol, holder) = (lock.at.plain(), lock.holder.clone());
                out.append_event(EventKind::LockFreed {
                    symbol,
                    holder,
                    fence: lock.fence,
                    why: "its time was up".into(),
                });
                out.put(Change::PutLock(Arc::new(Lock { lapsed: true, ..Lock::clone(lock) })));
            }
        }
        self.locks.tired(now).for_each(|waiter| self.give_up(waiter, out));
    }
}

fn run_of(who: &Principal) -> Option<TaskId> {
    (who.proof() == Proof::Jailed).then(|| TaskId::parse(who.session().as_str()).ok()).flatten()
}
