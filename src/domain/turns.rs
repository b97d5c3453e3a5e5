//! The order of tasks: the places in which workers run, and the tasks that wait for one.
//!
//! The order is: the priority, then the askers in turn, then the age. An asker that joins goes to the end of the round, so that an
//! asker with five hundred waiting tasks and one with a single task begin one each. A task that cannot begin now, since its worker
//! or its pool is full, keeps no other task from a free place. Nothing here is stored: after a start, the tasks join again.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::view::View;
use super::{Priority, Share, State, Task, WorkerKind};
use provost_base::{AgentId, TaskId, Timestamp};

/// The properties on which a task's turn depends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The task that waits.
    pub task: TaskId,
    /// The task's priority.
    pub priority: Priority,
    /// The asker to which it counts; all names of one share are one asker.
    pub asker: Share,
    /// When it was accepted.
    pub since: Timestamp,
    /// The task's worker, and how many tasks that worker may have at once.
    pub worker: (AgentId, Option<u32>),
    /// The worker's pool, and how many tasks may run in it at once.
    pub pool: Option<(Box<str>, u32)>,
}

impl Turn {
    /// Returns the turn of a task whose worker has so many places, in this pool.
    pub fn of(task: &Task, places: Option<u32>, pool: Option<(Box<str>, u32)>) -> Self {
        Self {
            task: task.id().clone(),
            priority: task.order.priority(),
            asker: task.share(),
            since: task.created_at,
            worker: (task.order.worker.clone(), places),
            pool,
        }
    }
}

/// The number by which a task waits, or has a place.
pub type TurnNo = u64;

/// The places, the tasks that have one, and the tasks that wait.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Turns {
    places: usize,
    taken: BTreeMap<TurnNo, Turn>,
    waiting: BTreeMap<TurnNo, Turn>,
    round: Round,
    at_workers: BTreeMap<AgentId, u32>,
    in_pools: BTreeMap<Box<str>, u32>,
    last: TurnNo,
}

/// The askers that have waiting tasks, in turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// For each asker: the number of its waiting tasks, and when its last turn was.
    askers: BTreeMap<Share, (usize, u64)>,
    turns: u64,
}

/// All are equal: a round is not stored, and a start begins another one.
impl PartialEq for Round {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Round {}

impl Round {
    /// Adds a waiting task of an asker. An asker without any goes to the end of the round.
    pub(super) fn join(&mut self, asker: Share) {
        self.askers.entry(asker).or_insert((0, self.turns)).0 += 1;
    }

    /// Notes that a task of an asker begins.
    pub(super) fn had_turn(&mut self, asker: &Share) {
        self.turns += 1;
        if let Some((_, last_turn)) = self.askers.get_mut(asker) {
            *last_turn = self.turns;
        }
    }

    /// Removes a waiting task of an asker.
    pub(super) fn leave(&mut self, asker: &Share) {
        if let Some((count, _)) = self.askers.get_mut(asker) {
            *count -= 1;
            if *count == 0 {
                self.askers.remove(asker);
            }
        }
    }

    /// Returns a number that is higher the later the asker's last turn was.
    pub(super) fn last_turn(&self, asker: &Share) -> u64 {
        self.askers.get(asker).map_or(0, |it| it.1)
    }
}

impl Turns {
    /// Makes `places` places, all of them free.
    pub fn new(places: usize) -> Self {
        Self { places, ..Self::default() }
    }

    /// Adds a task to those that wait. It may get a place at once; see [`Turns::take_next`].
    pub fn join(&mut self, turn: Turn) -> TurnNo {
        self.last += 1;
        self.round.join(turn.asker.clone());
        self.waiting.insert(self.last, turn);
        self.last
    }

    /// Checks whether a waiting task could begin now.
    pub fn fits(&self, number: TurnNo) -> bool {
        self.waiting.get(&number).is_some_and(|turn| self.has_place(turn))
    }

    /// Returns the task whose turn it is, which has its place now; `None` if no waiting task can begin.
    pub fn take_next(&mut self) -> Option<TurnNo> {
        if self.taken.len() >= self.places {
            return None;
        }
        let fitting = self.waiting.iter().filter(|(_, turn)| self.has_place(turn));
        let order = |(number, turn): &(&TurnNo, &Turn)| {
            (Reverse(turn.priority), self.round.last_turn(&turn.asker), turn.since, **number)
        };
        let number = *fitting.min_by_key(order)?.0;
        self.begin(number);
        Some(number)
    }

    /// Gives a waiting task its place, if it can begin now.
    pub fn begin(&mut self, number: TurnNo) -> bool {
        if !self.fits(number) {
            return false;
        }
        let Some(turn) = self.stand_up(number) else { return false };
        self.round.had_turn(&turn.asker);
        *self.at_workers.entry(turn.worker.0.clone()).or_default() += 1;
        if let Some((pool, _)) = &turn.pool {
            *self.in_pools.entry(pool.clone()).or_default() += 1;
        }
        self.taken.insert(number, turn);
        true
    }

    /// Removes a task that no longer waits, or gives its place back.
    pub fn leave(&mut self, number: TurnNo) {
        self.stand_up(number);
        let Some(turn) = self.taken.remove(&number) else { return };
        one_less(&mut self.at_workers, &turn.worker.0);
        if let Some((pool, _)) = &turn.pool {
            one_less(&mut self.in_pools, pool);
        }
    }

    /// Returns how many tasks wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn stand_up(&mut self, number: TurnNo) -> Option<Turn> {
        let turn = self.waiting.remove(&number)?;
        self.round.leave(&turn.asker);
        Some(turn)
    }

    fn has_place(&self, turn: &Turn) -> bool {
        let below = |taken: Option<&u32>, most: u32| taken.copied().unwrap_or(0) < most;
        self.taken.len() < self.places
            && turn.worker.1.is_none_or(|most| below(self.at_workers.get(&turn.worker.0), most))
            && turn.pool.as_ref().is_none_or(|(pool, most)| below(self.in_pools.get(pool), *most))
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, u32>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

impl State {
    /// Returns the place of each queued task among those that wait for its worker, or for the worker's pool; the
    /// first is 1. Those of polling workers are by age, the order in which such a worker collects them.
    pub(super) fn places_in_line(&self) -> BTreeMap<TaskId, usize> {
        let mut queued: Vec<&Arc<Task>> = self.tasks.iter().filter(|it| it.state.is_queued()).collect();
        queued.sort_by(|a, b| (a.created_at, a.id()).cmp(&(b.created_at, b.id())));
        let mut of_askers: BTreeMap<(Share, Priority), usize> = BTreeMap::new();
        let in_round = queued.into_iter().map(|task| {
            if task.kind == WorkerKind::Polling {
                return ((Reverse(Priority::Normal), 0), task);
            }
            let priority = task.order.priority();
            let nth = of_askers.entry((task.share(), priority)).or_default();
            *nth += 1;
            ((Reverse(priority), *nth), task)
        });
        let mut in_order: Vec<_> = in_round.collect();
        in_order.sort_by_key(|(order, _)| *order);
        let mut lines: BTreeMap<(bool, &str), usize> = BTreeMap::new();
        let mut places = BTreeMap::new();
        for (_, task) in in_order {
            let worker = &task.order.worker;
            let pool = self.settings.pool_of(worker).filter(|_| task.kind == WorkerKind::Cli);
            let line = pool.map_or((false, worker.as_str()), |(pool, _)| (true, pool));
            let ahead = lines.entry(line).or_default();
            *ahead += 1;
            places.insert(task.id().clone(), *ahead);
        }
        places
    }
}

/// The query for the place of a queued task in its line; `None` for a task that is not queued.
#[derive(Clone, Debug)]
pub struct PlaceInLine(pub TaskId);

impl View for PlaceInLine {
    type Out = Option<usize>;

    fn look(self, _now: Timestamp, state: &State) -> Option<usize> {
        state.tasks.get(&self.0).filter(|it| it.state.is_queued())?;
        state.places_in_line().remove(&self.0)
    }
}
