//! Needs of a worker: resources that each of its runs has for itself, from before it begins until it has ended.
//!
//! A task takes all of them in one step, or none, and holds nothing while it waits. Its places in the queues are
//! kept under its worker's name, and end with the task.

use std::sync::Arc;

use super::waiting::{Units, Want};
use super::{Lock, Waiter};
use crate::command::{NeedsTaken, Rival, TakeNeeds};
use crate::view::View;
use crate::{Change, EventKind, Outbox, Principal, Refusal, State, Task, TaskState};
use provost_base::{AgentId, Resource, SymbolPath, TaskId, Timestamp, Ttl};

/// A need for which a queued task waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwaitedNeed {
    /// The task that waits.
    pub task: TaskId,
    /// The resource for which it waits.
    pub resource: Box<str>,
    /// The agent that has the resource, or has waited for it longer.
    pub by: Option<AgentId>,
    /// When the wait began.
    pub since: Timestamp,
}

/// The query for the needs that queued tasks wait for, longest wait first.
#[derive(Clone, Copy, Debug)]
pub struct AwaitedNeeds;

impl View for AwaitedNeeds {
    type Out = Vec<AwaitedNeed>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let of_run = state.locks.waiters().filter_map(|it| it.run.clone().map(|task| (it, task)));
        let waits = of_run.filter(|(_, task)| state.tasks.get(task).is_some_and(|it| it.state.is_queued()));
        let awaited = waits.map(|(it, task)| AwaitedNeed {
            task,
            resource: it.asked.clone(),
            by: state.first_of(it.want(&[])).map(|it| it.by),
            since: it.since,
        });
        awaited.collect()
    }
}

/// The query for how long the tasks of a worker wait for its needs; `None` if it has no needs.
#[derive(Clone, Debug)]
pub struct NeedsWait(pub AgentId);

impl View for NeedsWait {
    type Out = Option<Ttl>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let setting = state.settings.workers.get(&self.0)?;
        (!setting.needs.is_empty()).then_some(setting.needs_wait)
    }
}

/// A need of a task, and its state.
struct Need {
    at: SymbolPath,
    units: Option<Units>,
    own: Option<Arc<Lock>>,
    waits: Option<Arc<Waiter>>,
    rival: Option<Rival>,
}

impl State {
    /// Takes all resources that a task's worker needs, or a place in the queue of each resource that is not free.
    pub(crate) fn take_needs(
        &self,
        now: Timestamp,
        verb: &TakeNeeds,
        out: &mut Outbox,
    ) -> Result<NeedsTaken, Refusal> {
        // A run that begins again still has its resources, or takes them again.
        let begins = |it: &&Arc<Task>| it.state.is_queued() || it.can_be_resumed();
        let task = self.tasks.get(&verb.task).filter(begins);
        let task = task.ok_or(Refusal::TaskFinished)?;
        let mut needs = Vec::new();
        for at in self.needs_of(&task.order.worker) {
            needs.push(self.need(task, at)?);
        }
        // The settings may have changed meanwhile; a place that is not wanted any more holds up no other.
        let is_stale = |it: &&Arc<Waiter>| {
            it.run.as_ref() == Some(task.id()) && !needs.iter().any(|need| need.at == it.at)
        };
        self.locks.waiters().filter(is_stale).for_each(|it| self.give_up(it, out));
        // All of them or none: two runs that each held a part would wait for each other.
        if needs.iter().all(|it| it.rival.is_none()) {
            needs.iter().for_each(|need| self.have(now, task, need, verb.lasts, out));
            return Ok(NeedsTaken::Held);
        }
        let missing: Vec<&Need> =
            needs.iter().filter(|it| it.rival.is_some() && it.waits.is_none()).collect();
        self.room_for_waiters(&task.share(), missing.len())?;
        missing.into_iter().for_each(|need| self.queue_up(now, task, need, out));
        let lacks = needs.into_iter().find_map(|it| Some((it.at, it.rival?)));
        Ok(match lacks {
            Some((at, by)) => NeedsTaken::Waits { wanted: at.to_string().into(), by: Box::new(by) },
            None => NeedsTaken::Held,
        })
    }

    /// Extends the leases of a run that has begun until the time at which it must have ended.
    pub(crate) fn keep_needs(&self, task: &Task, until: Timestamp, out: &mut Outbox) {
        let held = self.locks.held_by(&task.order.worker);
        let its = held.filter(|it| it.run.as_ref() == Some(task.id()) && it.at.is_resource() && !it.lapsed);
        for lock in its.filter(|it| it.expires_at < until) {
            out.put(Change::PutLock(Arc::new(Lock { expires_at: until, ..Lock::clone(lock) })));
        }
    }

    /// Returns the needs of a worker of the configuration, in the form in which they are locked: all units of a counted kind together.
    fn needs_of(&self, worker: &AgentId) -> Vec<SymbolPath> {
        let mut all: Vec<Resource> = Vec::new();
        for need in self.settings.workers.get(worker).into_iter().flat_map(|it| &it.needs) {
            let is_counted = self.settings.counted.contains_key(need.kind());
            let same = all.iter_mut().find(|it| is_counted && it.kind() == need.kind());
            let sum = same.as_ref().and_then(|it| it.units()?.checked_add(need.units()?));
            let sum = sum.and_then(|it| Resource::parse(&format!("@{}:{it}", need.kind())).ok());
            match (same, sum) {
                (Some(same), Some(sum)) => *same = sum,
                _ => all.push(need.clone()),
            }
        }
        all.iter().map(SymbolPath::of_resource).collect()
    }

    fn need(&self, task: &Task, at: SymbolPath) -> Result<Need, Refusal> {
        let (worker, run) = (&task.order.worker, task.id());
        let units = self.units_of(&at)?;
        let is_its =
            |lock: &&Arc<Lock>| !lock.lapsed && lock.holder == *worker && lock.run.as_ref() == Some(run);
        let own = match &units {
            None => self.locks.get(&at).filter(is_its),
            Some(units) => self.locks.live_of_kind(&units.kind).find(is_its),
        };
        let mut waits = self.locks.waiters().filter(|it| it.run.as_ref() == Some(run));
        let waits = waits.find(|it| it.at == at && it.agent == *worker);
        let want = Want {
            who: worker,
            run: Some(run),
            at: &at,
            names: &[],
            units: units.as_ref(),
            own: own.map(|it| it.fence),
            apart: true,
            ticket: waits.map(|it| it.ticket),
        };
        let rival = if own.is_some() { None } else { self.first_of(want) };
        let (own, waits) = (own.cloned(), waits.cloned());
        Ok(Need { at, units, own, waits, rival })
    }

    fn have(&self, now: Timestamp, task: &Task, need: &Need, lasts: Ttl, out: &mut Outbox) {
        if let Some(waiter) = &need.waits {
            out.put(Change::DropWaiter(waiter.ticket));
        }
        let fence = need.own.as_ref().map_or_else(|| out.next_fence(), |it| it.fence);
        let at = match &need.units {
            Some(units) => SymbolPath::of_units(&units.kind, fence),
            None => need.at.clone(),
        };
        let lock = Lock {
            asked: need.at.to_string().into(),
            names: Vec::new(),
            holder: task.order.worker.clone(),
            run: Some(task.id().clone()),
            acquired_at: now,
            expires_at: now.after(lasts),
            fence,
            place: fence,
            lapsed: false,
            process: None,
            reason: Some(format!("a task of {}", task.asked_by).into()),
            share: Some(task.share()),
            writing: None,
            until_commit: None,
            units: need.units.as_ref().map(|it| it.wanted),
            daemon: self.here,
            at,
        };
        out.append_event(EventKind::LockAcquired {
            symbol: lock.at.plain(),
            fence,
            until: lock.expires_at,
            refreshed: need.own.is_some(),
            reason: None,
        });
        out.put(Change::PutLock(Arc::new(lock)));
    }

    fn queue_up(&self, now: Timestamp, task: &Task, need: &Need, out: &mut Outbox) {
        let Some(rival) = &need.rival else { return };
        let TaskState::Queued { until } = task.state else { return };
        let its = self.locks.waiters().filter(|it| it.run.as_ref() == Some(task.id()));
        let since = its.map(|it| it.since).min().unwrap_or(now);
        let setting = self.settings.workers.get(&task.order.worker);
        let until = setting.map_or(until, |it| until.min(since.after(it.needs_wait)));
        let waiter = Waiter {
            ticket: out.next_ticket(),
            at: need.at.clone(),
            asked: need.at.to_string().into(),
            names: Vec::new(),
            agent: task.order.worker.clone(),
            since: now,
            until,
            share: task.share(),
            run: Some(task.id().clone()),
            units: need.units.clone(),
            own: None,
            apart: true,
            daemon: self.here,
        };
        self.tell_holder(now, &waiter, rival, out);
        out.append_event(EventKind::LockAwaited { symbol: waiter.at.clone(), by: rival.by.clone() });
        out.put(Change::PutWaiter(Arc::new(waiter)));
    }

    /// Checks that the asker of the work holds no resource that the worker needs: the wait for it might never end.
    ///
    /// # Errors
    /// [`Refusal::NeedsYours`].
    pub(crate) fn asker_has_no_need_of(&self, who: &Principal, worker: &AgentId) -> Result<(), Refusal> {
        for at in self.needs_of(worker) {
            let units = self.units_of(&at)?;
            let is_its = |lock: &&Arc<Lock>| !lock.lapsed && lock.holder == *who.agent();
            let held = match &units {
                None => self.locks.get(&at).filter(is_its),
                Some(units) => {
                    let its = || self.locks.live_of_kind(&units.kind).filter(is_its);
                    let had: u64 = its().map(|it| u64::from(it.units.unwrap_or(1))).sum();
                    let leaves_too_few = had + u64::from(units.wanted) > u64::from(units.of);
                    its().next().filter(|_| leaves_too_few)
                }
            };
            if let Some(lock) = held {
                let (worker, fence) = (worker.clone(), lock.fence);
                return Err(Refusal::NeedsYours { worker, resource: at.to_string().into(), fence });
            }
        }
        Ok(())
    }
}
