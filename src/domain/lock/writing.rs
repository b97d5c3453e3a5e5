//! Leases that agents take by writing: the host's hook asks before each write, and no agent has to remember a lock.
//!
//! The service looks at the code and at other agents' grants, and decides whether one of them blocks the write. The rule
//! here grants in one step the places that the write touches, if no grant has come in the meantime that the service has not
//! looked at; otherwise the service looks again. So the engine orders two writes of the same moment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Lock, run_of};
use crate::command::{CommittedFreed, FreeCommitted, HoldPlaces, PlaceToHold, PlacesHeld};
use crate::{Auto, Change, EventKind, Outbox, Principal, Refusal, State};
use provost_base::{AgentId, Fence, HostId, RepoPath, Timestamp};

/// The circumstances in which a write took a lease. Its renewals keep the time of the grant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Writing {
    /// The top of the work tree in which the agent writes.
    pub tree: Box<str>,
    /// The host of that work tree; on another host, the same path is another work tree.
    #[serde(default, skip_serializing_if = "HostId::is_alone")]
    pub host: HostId,
    /// Whether it keeps other agents of that work tree out; if not, it is only announced.
    pub holds: bool,
    /// Whether it keeps agents in other work trees out, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everywhere: bool,
    /// The commit that the work tree was at; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Box<str>>,
    /// The subagent of the session that writes; `None` for the session itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Box<str>>,
}

/// The condition under which a requested lock ends with the commit of its file, as a lease does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UntilCommit {
    /// The top of the work tree in which the holder works.
    pub tree: Box<str>,
    /// The commit that it was at when the lock was granted; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Box<str>>,
}

impl Writing {
    /// Checks whether the lease was taken in this work tree.
    pub fn is_in(&self, tree: &str, host: HostId) -> bool {
        *self.tree == *tree && self.host == host
    }
}

/// A writer, with the members that decide whose leases keep it out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writer {
    /// The agent of the session.
    pub agent: AgentId,
    /// The subagent of the session that writes; `None` for the session itself.
    pub part: Option<Box<str>>,
    /// Whether subagents of one session keep each other out.
    pub parts_differ: bool,
}

impl Writer {
    /// Checks whether a lock belongs to another writer.
    pub fn is_other(&self, lock: &Lock) -> bool {
        let other_part = || lock.writing.as_ref().is_some_and(|it| it.part != self.part);
        lock.holder != self.agent || (self.parts_differ && other_part())
    }
}

impl Lock {
    /// Checks whether the lock keeps other agents from writing in a work tree of a host; without a work tree, from getting a lock there.
    pub fn keeps_out(&self, tree: Option<(&str, HostId)>) -> bool {
        self.writing.as_ref().is_none_or(|it| {
            it.holds && tree.is_none_or(|(tree, host)| it.everywhere || it.is_in(tree, host))
        })
    }

    /// Returns the work tree in which the commit of its file ends the lock, and the commit at which it was taken;
    /// `None` for a lock that no commit ends.
    pub fn ends_with_commit(&self) -> Option<(&str, Option<&str>)> {
        let of_write = self.writing.as_ref().map(|it| (&*it.tree, it.commit.as_deref()));
        of_write.or_else(|| self.until_commit.as_ref().map(|it| (&*it.tree, it.commit.as_deref())))
    }
}

impl State {
    /// Grants or renews leases on the places that a write touches, or reports that the service's look is too old.
    pub(crate) fn hold_places(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &HoldPlaces,
        out: &mut Outbox,
    ) -> Result<PlacesHeld, Refusal> {
        let auto = &self.settings.auto;
        if auto.mode == Auto::Off {
            return Ok(PlacesHeld::Held(Vec::new()));
        }
        let writer = Writer {
            agent: who.agent().clone(),
            part: verb.part.clone(),
            parts_differ: auto.subagents_differ,
        };
        let is_known = |fence: &Fence| verb.seen.contains(fence);
        if !verb.files.iter().flat_map(|it| self.grants_of_others(&writer, it)).all(|it| is_known(&it)) {
            return Ok(PlacesHeld::Overtaken);
        }
        self.agents.beat(now, who.agent(), out);
        let mut held = Vec::new();
        for place in &verb.places {
            held.extend(self.hold_place(now, who, (verb, &writer), place, out)?);
        }
        Ok(PlacesHeld::Held(held))
    }

    /// Returns the grants that others have in a file.
    fn grants_of_others<'a>(
        &'a self,
        writer: &'a Writer,
        file: &'a RepoPath,
    ) -> impl Iterator<Item = Fence> + 'a {
        let locks = self.locks.live_in(file).filter(|it| writer.is_other(it)).map(|it| it.fence);
        let claim = self.claims.get(file);
        let claim = claim.filter(|it| it.held.owner().is_some_and(|owner| *owner != writer.agent));
        locks.chain(claim.map(|it| it.fence))
    }

    fn hold_place(
        &self,
        now: Timestamp,
        who: &Principal,
        (verb, writer): (&HoldPlaces, &Writer),
        place: &PlaceToHold,
        out: &mut Outbox,
    ) -> Result<Option<Arc<Lock>>, Refusal> {
        let file = place.at.file();
        let of_others = |name| self.locks.live_named(file, name).filter(|it| writer.is_other(it));
        let is_here = |lock: &Arc<Lock>| {
            lock.writing.as_ref().is_none_or(|it| it.everywhere || it.is_in(&verb.tree, self.here.host))
        };
        let is_free_here = |name| !of_others(name).any(is_here);
        let covers = |lock: &Lock| lock.at.name().is_empty() || lock.covers(place.at.symbol());
        let own = self.locks.live_in(file).filter(|it| !writer.is_other(it) && covers(it));
        // A lock that was asked for has a time of its own. A lease moves to the work tree of the newest write,
        // unless another agent has the symbol there.
        match own.min_by_key(|it| it.writing.is_some()) {
            Some(lock) if lock.writing.is_none() => return Ok(Some(lock.clone())),
            Some(lock) if is_here(lock) || lock.all_names().all(is_free_here) => {
                return Ok(Some(self.lease_renewed(now, verb, lock, out)));
            }
            Some(_) => return Ok(None),
            None => {}
        }
        let is_beside = of_others(place.at.symbol()).next().is_some();
        // Another agent has it, and the writer need not wait for it. Only a place that is held in other work trees alone can be held here.
        if is_beside && (self.settings.auto.mode != Auto::Hold || !is_free_here(place.at.symbol())) {
            return Ok(None);
        }
        let fence = out.next_fence();
        let at = if is_beside { place.at.beside(fence) } else { Some(place.at.clone()) };
        let Some(at) = at else { return Ok(None) };
        self.room_for_lock(who, &at)?;
        let lock = Arc::new(Lock {
            at,
            asked: place.at.to_string().into(),
            names: place.names.iter().filter(|it| is_free_here(it)).cloned().collect(),
            holder: who.agent().clone(),
            run: run_of(who),
            acquired_at: now,
            expires_at: now.after(self.settings.auto.ttl),
            fence,
            place: fence,
            lapsed: false,
            process: verb.process,
            reason: None,
            share: Some(who.share()),
            writing: Some(self.writing(verb, file)),
            until_commit: None,
            units: None,
            daemon: self.here,
        });
        out.append_event(EventKind::LockAcquired {
            symbol: lock.at.plain(),
            fence,
            until: lock.expires_at,
            refreshed: false,
            reason: None,
        });
        out.put(Change::PutLock(lock.clone()));
        Ok(Some(lock))
    }

    fn writing(&self, verb: &HoldPlaces, file: &RepoPath) -> Writing {
        Writing {
            tree: verb.tree.clone(),
            host: self.here.host,
            holds: self.settings.auto.mode == Auto::Hold,
            everywhere: self.settings.auto.everywhere,
            commit: verb.commit_around(file).map(Into::into),
            part: verb.part.clone(),
        }
    }

    /// Renews a lease. A lease that was renewed a moment ago stays as it is, and costs no commit.
    fn lease_renewed(
        &self,
        now: Timestamp,
        verb: &HoldPlaces,
        lock: &Arc<Lock>,
        out: &mut Outbox,
    ) -> Arc<Lock> {
        let ttl = self.settings.auto.ttl;
        let new = Lock {
            expires_at: now.after(ttl),
            // This host cannot look at a process of another host.
            process: verb.process.or_else(|| lock.process.filter(|_| self.is_here(lock.daemon))),
            daemon: self.here,
            writing: Some(self.writing(verb, lock.at.file())),
            ..Lock::clone(lock)
        };
        let ttl_ms = u64::from(ttl.as_millis());
        let is_fresh = lock.expires_at.since_ms(now) > ttl_ms - ttl_ms / RENEWED_AFTER;
        if is_fresh && (new.process, new.daemon) == (lock.process, lock.daemon) && new.writing == lock.writing
        {
            return lock.clone();
        }
        let new = Arc::new(new);
        out.put(Change::PutLock(new.clone()));
        new
    }

    /// Ends leases in files that are as committed, and locks that end with the commit.
    pub(crate) fn free_committed(&self, verb: &FreeCommitted, out: &mut Outbox) -> CommittedFreed {
        let is_done = |lock: &&Arc<Lock>| {
            let (tree, taken_at) = lock.ends_with_commit().unzip();
            let is_later = taken_at.flatten().is_some_and(|it| *it != *verb.commit);
            tree == Some(&*verb.tree) && is_later && self.is_here(lock.daemon)
        };
        let done = verb.files.iter().flat_map(|file| self.locks.live_in(file)).filter(is_done);
        let count = done.map(|lock| self.free(lock, "its work is committed", out)).count();
        CommittedFreed { count }
    }
}

/// A lease is renewed once this fraction (one part in so many) of its time has passed.
const RENEWED_AFTER: u64 = 10;
