//! Pools: workers that share places, on all hosts together; and the host that a task goes to.
//!
//! A pool's bound is kept by the core, which knows what runs everywhere. Where a task runs is one pure function over candidates, so
//! that several hosts can be candidates as well as one.

use std::collections::BTreeSet;

use super::command::Delegate;
use super::queue::refused;
use super::view::View;
use super::{Refusal, Settings, State, Switch, Task, TaskState, WorkerKind};
use provost_base::{AgentId, DaemonId, Timestamp};

/// A pool of the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolSetting {
    /// The workers that are in it.
    pub workers: BTreeSet<AgentId>,
    /// How many of their tasks run at once.
    pub concurrent: u32,
    /// How many of their tasks may wait for a place.
    pub waiting: u32,
}

/// A host that a task could go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The daemon of the host.
    pub daemon: DaemonId,
    /// What its configuration says of it, such as `gpu`.
    pub labels: BTreeSet<Box<str>>,
    /// The workers of its configuration that it can start.
    pub workers: BTreeSet<AgentId>,
    /// How many more tasks could begin there now.
    pub free: u32,
}

/// What a task asks of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted<'a> {
    /// The worker; `None` for one that connects by itself, wherever that is.
    pub worker: Option<&'a AgentId>,
    /// The label that the host has to have.
    pub label: Option<&'a str>,
    /// The host at which it is asked.
    pub asked_at: DaemonId,
}

/// Why no host can have a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoHost {
    /// None has the label.
    Label,
    /// None has the worker.
    Worker,
    /// Some have one of both, and none has both.
    Both,
}

/// The host that a task goes to: that of its asker, or else the one with the most free places; of several, the first by id. A host
/// without a free place is one all the same, since the task waits there.
///
/// # Errors
/// [`NoHost`] says what is missing.
pub fn choose_host<'a>(wanted: Wanted<'_>, candidates: &'a [Candidate]) -> Result<&'a Candidate, NoHost> {
    let has_label = |it: &Candidate| wanted.label.is_none_or(|label| it.labels.contains(label));
    let has_worker = |it: &Candidate| wanted.worker.is_none_or(|worker| it.workers.contains(worker));
    let fitting = candidates.iter().filter(|it| has_label(it) && has_worker(it));
    let order = |it: &&Candidate| (it.daemon != wanted.asked_at, std::cmp::Reverse(it.free), it.daemon);
    fitting.min_by_key(order).ok_or_else(|| {
        match (candidates.iter().any(has_label), candidates.iter().any(has_worker)) {
            (false, _) => NoHost::Label,
            (true, false) => NoHost::Worker,
            (true, true) => NoHost::Both,
        }
    })
}

impl Settings {
    /// The pool that a worker is in, with its name.
    pub fn pool_of(&self, worker: &AgentId) -> Option<(&str, &PoolSetting)> {
        let mut pools = self.pools.iter().map(|(name, pool)| (&**name, pool));
        pools.find(|(_, pool)| pool.workers.contains(worker))
    }
}

impl State {
    /// Whether a delegation goes to a pool that has room, and to a host that there is.
    ///
    /// # Errors
    /// [`Refusal::NotPlaced`], [`Refusal::Quota`].
    pub(super) fn has_room_and_host(&self, verb: &Delegate) -> Result<(), Refusal> {
        let placement = verb.placement.as_deref();
        if let Some(name) = placement.and_then(|it| it.pool.as_ref()) {
            let Some(pool) = self.settings.pools.get(name) else {
                return Err(refused(format!(
                    "there is no pool {name}; {}",
                    known("pools", self.settings.pools.keys())
                )));
            };
            if !pool.workers.contains(&verb.worker) {
                return Err(refused(format!(
                    "worker {} is not in the pool {name}; {}",
                    verb.worker,
                    known("its workers", pool.workers.iter())
                )));
            }
        }
        if let Some((name, pool)) = self.settings.pool_of(&verb.worker)
            && self.waiting_in(pool) >= pool.waiting
        {
            return Err(Refusal::quota(
                &format!("as many tasks as may wait for a place in the pool {name}"),
                pool.waiting,
                "wait for some to begin, or cancel them",
            ));
        }
        self.has_host(verb, placement.and_then(|it| it.on.as_deref()))
    }

    fn has_host(&self, verb: &Delegate, label: Option<&str>) -> Result<(), Refusal> {
        let Some(label) = label else { return Ok(()) };
        let is_started = self.settings.kind_of(&verb.worker) == WorkerKind::Cli;
        let worker = is_started.then_some(&verb.worker);
        let wanted = Wanted { worker, label: Some(label), asked_at: self.here };
        let candidates = self.candidates();
        let Err(why) = choose_host(wanted, &candidates) else { return Ok(()) };
        let labels: BTreeSet<&Box<str>> = candidates.iter().flat_map(|it| &it.labels).collect();
        Err(refused(match why {
            NoHost::Label => {
                format!(
                    "no host has the label {label}; {}: `labels` in `[host]` says them",
                    known("labels", labels.into_iter())
                )
            }
            NoHost::Worker => format!("no host has the worker {}", verb.worker),
            NoHost::Both => format!("no host with the label {label} has the worker {}", verb.worker),
        }))
    }

    /// The hosts that tasks could go to: this one.
    pub fn candidates(&self) -> Vec<Candidate> {
        let usable =
            self.settings.workers.iter().filter(|(_, it)| it.kind == WorkerKind::Cli && it.broken.is_none());
        vec![Candidate {
            daemon: self.here,
            labels: self.settings.labels.clone(),
            workers: usable.map(|(id, _)| id.clone()).collect(),
            free: u32::MAX,
        }]
    }

    /// Whether one more task of a worker may run in its pool.
    ///
    /// # Errors
    /// [`Refusal::NotPlaced`] where the pool is full.
    pub(super) fn has_place_in_pool(&self, worker: &AgentId) -> Result<(), Refusal> {
        let Some((name, pool)) = self.settings.pool_of(worker) else { return Ok(()) };
        let running = self.in_pool(pool, |it| matches!(it.state, TaskState::Running { .. }));
        if running < pool.concurrent {
            return Ok(());
        }
        Err(refused(format!(
            "{running} tasks run in the pool {name}, which is as many as may; wait for one to end"
        )))
    }

    fn waiting_in(&self, pool: &PoolSetting) -> u32 {
        self.in_pool(pool, |it| !matches!(it.state, TaskState::Running { .. }))
    }

    fn in_pool(&self, pool: &PoolSetting, is_meant: impl Fn(&Task) -> bool) -> u32 {
        let tasks = pool.workers.iter().flat_map(|worker| self.tasks.of_worker(worker));
        u32::try_from(tasks.filter(|task| is_meant(task)).count()).unwrap_or(u32::MAX)
    }
}

/// What there is, for a sentence.
fn known<'a, T: ToString + 'a>(what: &str, all: impl Iterator<Item = &'a T>) -> String {
    let all: Vec<String> = all.take(20).map(ToString::to_string).collect();
    if all.is_empty() {
        format!("there are no {what}")
    } else {
        format!("{what} that there are: {}", all.join(", "))
    }
}

/// Whether a worker's pool has a place for one more task.
#[derive(Clone, Debug)]
pub struct PoolHasPlace(pub AgentId);

impl View for PoolHasPlace {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.has_place_in_pool(&self.0).is_ok()
    }
}

/// The worker of a pool that has the least to do, of those that can be used; the first by name of several. `None` where there is none,
/// or no such pool.
#[derive(Clone, Debug)]
pub struct IdlestInPool(pub Box<str>);

impl View for IdlestInPool {
    type Out = Option<AgentId>;

    fn look(self, _now: Timestamp, state: &State) -> Option<AgentId> {
        let pool = state.settings.pools.get(&self.0)?;
        let is_usable = |it: &&AgentId| {
            let setting = state.settings.workers.get(*it);
            setting.is_some_and(|it| it.broken.is_none()) && state.switches.of(it) == Switch::On
        };
        let least = |it: &&AgentId| (state.tasks.of_worker(it).count(), (*it).clone());
        pool.workers.iter().filter(is_usable).min_by_key(least).cloned()
    }
}

/// The pool of a worker, with how many tasks run in it at once.
#[derive(Clone, Debug)]
pub struct PoolOf(pub AgentId);

impl View for PoolOf {
    type Out = Option<(Box<str>, u32)>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.settings.pool_of(&self.0).map(|(name, pool)| (name.into(), pool.concurrent))
    }
}
