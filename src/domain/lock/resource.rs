//! Locks on resources: the units that a request wants of a counted kind, and the holder of a grant.
//!
//! There is one of each resource, except for a kind that the settings count. Then the value is the number of units that are
//! asked for, and each grant has that many: its lock is kept under the kind and the grant's number (`@gpu#12`).

use std::sync::Arc;

use super::{Lock, ProcessMark, Units, run_of};
use crate::command::{AcquireLock, Apart, ReleaseLock};
use crate::{Principal, Refusal, State};
use provost_base::{SymbolPath, TaskId, Timestamp, Ttl};

impl Lock {
    /// Returns the name of the lock that its holder can use.
    pub fn shown(&self) -> String {
        if self.units.is_some() { self.asked.to_string() } else { self.at.to_string() }
    }

    /// Checks whether the lock is a resource that another run of the same worker has.
    pub(super) fn is_of_other_run(&self, run: Option<&TaskId>) -> bool {
        self.at.is_resource() && self.run.is_some() && self.run.as_ref() != run
    }
}

/// The longest lease on git's index that does not end with a process: a person cannot commit meanwhile.
const INDEX_LEASE_MAX: Ttl = Ttl::minutes(10);

/// Returns the end of a lease that is granted or renewed now.
pub(super) fn lease_end(
    now: Timestamp,
    verb: &AcquireLock,
    own: Option<&Arc<Lock>>,
    process: Option<ProcessMark>,
) -> Timestamp {
    let end = now.after(verb.ttl);
    let end = own.filter(|_| verb.keeps_longer).map_or(end, |lock| lock.expires_at.max(end));
    let is_index = || verb.at.resource().is_some_and(|it| it.is_git_index());
    if process.is_none() && is_index() { end.min(now.after(INDEX_LEASE_MAX)) } else { end }
}

impl State {
    /// Returns how many units of a counted kind a name asks for; `None` for other names.
    ///
    /// # Errors
    /// [`Refusal::NotSoMany`] for zero, for more than exist, and for a value that is not a number.
    pub(super) fn units_of(&self, at: &SymbolPath) -> Result<Option<Units>, Refusal> {
        let Some(resource) = at.resource() else { return Ok(None) };
        let Some(of) = self.settings.counted.get(resource.kind()).copied() else { return Ok(None) };
        let wanted =
            resource.units().and_then(|it| u32::try_from(it).ok()).filter(|it| (1..=of).contains(it));
        let Some(wanted) = wanted else {
            return Err(Refusal::NotSoMany {
                asked: resource.to_string().into(),
                kind: resource.kind().into(),
                of,
            });
        };
        Ok(Some(Units { kind: resource.kind().into(), wanted, of }))
    }

    /// Returns the grant of a lock that a request would refresh.
    pub(super) fn own_grant(
        &self,
        who: &Principal,
        verb: &AcquireLock,
        units: Option<&Units>,
    ) -> Option<&Arc<Lock>> {
        let run = run_of(who);
        let is_own = |lock: &&Arc<Lock>| {
            !lock.lapsed
                && lock.holder == *who.agent()
                && !lock.is_of_other_run(run.as_ref())
                && match verb.apart {
                    Apart::FromNone => true,
                    Apart::FromOtherProcesses => lock.process == verb.process,
                    Apart::FromAll => false,
                }
        };
        match units {
            None => self.locks.get(&verb.at).filter(is_own),
            Some(units) => self.locks.live_of_kind(&units.kind).filter(is_own).max_by_key(|it| it.fence),
        }
    }

    /// Returns the caller's own lease on a symbol on which others have leases in their work trees.
    fn named_beside(&self, who: &Principal, verb: &ReleaseLock) -> Option<&Arc<Lock>> {
        let mut of_name =
            self.locks.live_named(verb.at.file(), verb.at.symbol()).filter(|it| it.at.is_beside());
        let its = of_name.find(|it| match verb.fence {
            Some(fence) => it.fence == fence,
            None => it.holder == *who.agent(),
        })?;
        self.locks.get(&its.at)
    }

    /// Returns the lock that a request to release names. For a counted kind it is the grant with that number, or
    /// else the newest grant of the caller that does not end with a process.
    pub(super) fn named_for_release(
        &self,
        who: &Principal,
        verb: &ReleaseLock,
    ) -> Result<Option<&Arc<Lock>>, Refusal> {
        let run = run_of(who);
        let resource = verb.at.resource();
        let kind = resource.as_ref().filter(|it| self.settings.counted.contains_key(it.kind()));
        let is_its = |lock: &&Arc<Lock>| match verb.fence {
            Some(fence) => lock.fence == fence,
            None => lock.holder == *who.agent(),
        };
        let found = match kind {
            None => self.locks.get(&verb.at).filter(is_its).or_else(|| self.named_beside(who, verb)),
            Some(it) => {
                let of_kind = self.locks.live_of_kind(it.kind());
                let its = of_kind.filter(|lock| match verb.fence {
                    Some(fence) => lock.fence == fence,
                    None => lock.holder == *who.agent() && !lock.is_of_other_run(run.as_ref()),
                });
                its.max_by_key(|it| (it.process.is_none(), it.fence))
            }
        };
        // A lock from before its kind was counted has its own name.
        let found = found.or_else(|| self.locks.get(&verb.at));
        // A run may not release the resources of another run of the same worker.
        if let Some(lock) = found.filter(|lock| lock.is_of_other_run(run.as_ref()) && !verb.force) {
            return Err(Refusal::LockNotHeld { by: lock.holder.clone(), fence: lock.fence, asked: None });
        }
        Ok(found)
    }
}
