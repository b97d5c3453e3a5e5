//! Pools: workers that share places, on all hosts together.
//!
//! The core keeps a pool's bounds, since it knows what runs everywhere, and the pools of all hosts. If several
//! hosts have a pool with a worker, the bounds of each hold.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::command::Delegate;
use super::queue::refused;
use super::view::View;
use super::{Refusal, Settings, State, Switch, Task, TaskState};
use provost_base::{AgentId, Timestamp};

/// A pool of the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PoolSetting {
    /// The workers in the pool.
    pub workers: BTreeSet<AgentId>,
    /// The number of their tasks that run at once.
    pub concurrent: u32,
    /// The number of their tasks that may wait for a place.
    pub waiting: u32,
}

impl Settings {
    /// Returns the pool that a worker is in, with its name.
    pub fn pool_of(&self, worker: &AgentId) -> Option<(&str, &PoolSetting)> {
        let mut pools = self.pools.iter().map(|(name, pool)| (&**name, pool));
        pools.find(|(_, pool)| pool.workers.contains(worker))
    }
}

impl State {
    /// Checks that a delegation goes to a pool that has room, and to a host that exists.
    ///
    /// # Errors
    /// [`Refusal::NotPlaced`], [`Refusal::Quota`].
    pub(super) fn has_room_and_host(&self, verb: &Delegate) -> Result<(), Refusal> {
        let placement = verb.placement.as_deref();
        if let Some(name) = placement.and_then(|it| it.pool.as_ref()) {
            let Some(pool) = self.pool_named(name) else {
                let names: BTreeSet<&str> = self.pools().map(|(name, _)| name).collect();
                return Err(refused(format!("there is no pool {name}; {}", known("pools", names.iter()))));
            };
            if !pool.workers.contains(&verb.worker) {
                return Err(refused(format!(
                    "worker {} is not in the pool {name}; {}",
                    verb.worker,
                    known("its workers", pool.workers.iter())
                )));
            }
        }
        if let Some((name, pool)) =
            self.pools_of(&verb.worker).find(|(_, it)| self.waiting_in(it) >= it.waiting)
        {
            return Err(Refusal::quota(
                &format!("as many tasks as may wait for a place in the pool {name}"),
                pool.waiting,
                "wait for some to begin, or cancel them",
            ));
        }
        self.has_label(verb)
    }

    /// Checks that a known host has the label that a task asks for. Whether that host has the worker as well is
    /// checked later, once the task's work is known.
    fn has_label(&self, verb: &Delegate) -> Result<(), Refusal> {
        let Some(label) = verb.label() else { return Ok(()) };
        let of_others = self.abilities.iter().flat_map(|it| &it.labels);
        let labels: BTreeSet<&Box<str>> = self.settings.labels.iter().chain(of_others).collect();
        if !labels.iter().any(|it| &***it == label) && !verb.waits_for_host() {
            return Err(refused(format!(
                "no host has the label {label}; {}: `labels` in `[host]` says them",
                known("labels", labels.into_iter())
            )));
        }
        let is_broken = self.settings.workers.get(&verb.worker).is_some_and(|it| it.broken.is_some());
        if is_broken && self.here.is_alone() {
            return Err(refused(format!("no host has the worker {}", verb.worker)));
        }
        Ok(())
    }

    /// Returns the pools of all hosts, those of this host first.
    fn pools(&self) -> impl Iterator<Item = (&str, &PoolSetting)> {
        let others = self.abilities.iter().filter(|it| it.daemon.host != self.here.host);
        let all = std::iter::once(&self.settings.pools).chain(others.map(|it| &it.pools));
        all.flatten().map(|(name, pool)| (&**name, pool))
    }

    fn pool_named(&self, name: &str) -> Option<&PoolSetting> {
        self.pools().find(|(it, _)| *it == name).map(|(_, pool)| pool)
    }

    fn pools_of<'a>(&'a self, worker: &'a AgentId) -> impl Iterator<Item = (&'a str, &'a PoolSetting)> {
        self.pools().filter(move |(_, pool)| pool.workers.contains(worker))
    }

    /// Checks that one more task of a worker may run in its pool.
    ///
    /// # Errors
    /// [`Refusal::NotPlaced`] if the pool is full.
    pub(super) fn has_place_in_pool(&self, worker: &AgentId) -> Result<(), Refusal> {
        let is_running = |it: &Task| matches!(it.state, TaskState::Running { .. });
        for (name, pool) in self.pools_of(worker) {
            let running = self.in_pool(pool, is_running);
            if running >= pool.concurrent {
                return Err(refused(format!(
                    "{running} tasks run in the pool {name}, which is as many as may; wait for one to end"
                )));
            }
        }
        Ok(())
    }

    /// Checks whether the pool of a worker has a place for a task that no host has taken yet.
    pub(super) fn has_open_place_in_pool(&self, worker: &AgentId) -> bool {
        let has_place = |it: &Task| {
            let is_taken = it.state.is_queued() && it.travel.is_some() && !it.is_open();
            is_taken || matches!(it.state, TaskState::Running { .. })
        };
        self.pools_of(worker).all(|(_, pool)| self.in_pool(pool, has_place) < pool.concurrent)
    }

    fn waiting_in(&self, pool: &PoolSetting) -> u32 {
        self.in_pool(pool, |it| !matches!(it.state, TaskState::Running { .. }))
    }

    fn in_pool(&self, pool: &PoolSetting, is_meant: impl Fn(&Task) -> bool) -> u32 {
        let tasks = pool.workers.iter().flat_map(|worker| self.tasks.of_worker(worker));
        u32::try_from(tasks.filter(|task| is_meant(task)).count()).unwrap_or(u32::MAX)
    }
}

/// Returns the names that exist, for a sentence.
fn known<'a, T: ToString + 'a>(what: &str, all: impl Iterator<Item = &'a T>) -> String {
    let all: Vec<String> = all.take(20).map(ToString::to_string).collect();
    if all.is_empty() {
        format!("there are no {what}")
    } else {
        format!("{what} that there are: {}", all.join(", "))
    }
}

/// The query whether a worker's pool has a place for one more task.
#[derive(Clone, Debug)]
pub struct PoolHasPlace(pub AgentId);

impl View for PoolHasPlace {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.has_place_in_pool(&self.0).is_ok()
    }
}

/// The query for the usable worker of a pool that has the least to do; of several, the first by name. `None` if no
/// worker can be used, or no such pool exists.
#[derive(Clone, Debug)]
pub struct IdlestInPool(pub Box<str>);

impl View for IdlestInPool {
    type Out = Option<AgentId>;

    fn look(self, _now: Timestamp, state: &State) -> Option<AgentId> {
        let pool = state.pool_named(&self.0)?;
        let is_usable = |it: &&AgentId| {
            let setting = state.settings.workers.get(*it);
            let is_elsewhere = || state.others().any(|host| host.workers.get(*it).is_some_and(|it| it.takes));
            let is_there = setting.is_some_and(|it| it.broken.is_none()) || is_elsewhere();
            is_there && state.switches.of(it) == Switch::On
        };
        let least = |it: &&AgentId| (state.tasks.of_worker(it).count(), (*it).clone());
        pool.workers.iter().filter(is_usable).min_by_key(least).cloned()
    }
}

/// The query for the pool of a worker, with the number of tasks that run in it at once.
#[derive(Clone, Debug)]
pub struct PoolOf(pub AgentId);

impl View for PoolOf {
    type Out = Option<(Box<str>, u32)>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.settings.pool_of(&self.0).map(|(name, pool)| (name.into(), pool.concurrent))
    }
}
