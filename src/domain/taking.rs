//! Lets a host take an open task: finds the next task, checks whether the host's rules and worker allow it, and
//! handles a task that the host leaves.
//!
//! All daemons have the same tasks and abilities in memory, so that each knows which task comes first. A host's
//! findings about its own clone are in the command; the turn at the store decides which host was first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::command::{TakeTask, TaskTaken};
use super::progress::Ending;
use super::queue::refused;
use super::view::View;
use super::{
    AbleWorker, Call, Change, Command, Decision, Delegate, Effect, EventKind, Facts, Failure, Judge, Outbox,
    QueueEvent, Refusal, State, Task, TaskState, Terms, Travel, WorkerKind,
};
use provost_base::{AgentId, DaemonId, Timestamp};

/// The room that a host has for open tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The host has a free place.
    Free,
    /// The host has no place, except for tasks that no other host could take, so that its own tasks do not keep these waiting.
    InLine,
    /// The host has no place.
    Full,
}

impl State {
    /// Returns the open task that this host takes next: by priority, then that of the asker with the fewest tasks
    /// under way, then that of the asker whose last turn was the earliest, then the oldest.
    pub(super) fn next_open(&self) -> Option<Arc<Task>> {
        if self.drains || self.tasks.open().next().is_none() {
            return None;
        }
        let mut under_way: BTreeMap<_, u32> = BTreeMap::new();
        for it in self.tasks.iter().filter(|it| it.kind == WorkerKind::Cli && !it.daemon.is_alone()) {
            if matches!(it.state, TaskState::Queued { .. } | TaskState::Running { .. }) {
                *under_way.entry(it.share()).or_default() += 1;
            }
        }
        let order = |it: &&Arc<Task>| {
            let asker = it.share();
            let of_asker = under_way.get(&asker).copied().unwrap_or(0);
            let last_turn = self.tasks.last_turn(&asker);
            (Reverse(it.order.priority()), of_asker, last_turn, it.created_at, it.id().clone())
        };
        let (room, mut has_place) = (self.room_here(), BTreeMap::new());
        let is_meant = |it: &&Arc<Task>| {
            let worker = &it.order.worker;
            *has_place.entry(worker.clone()).or_insert_with(|| self.has_place_for(worker))
                && self.would_take(it, room)
        };
        self.tasks.open().filter(is_meant).min_by_key(order).cloned()
    }

    /// Checks whether a worker has a place here for a task that no host has taken yet.
    fn has_place_for(&self, worker: &AgentId) -> bool {
        self.is_on(worker) && self.has_open_place_in_pool(worker)
    }

    fn room_here(&self) -> Room {
        let Some(here) = self.abilities.of(self.here.host) else { return Room::Full };
        if self.free_at(here) > 0 {
            return Room::Free;
        }
        let is_in_line =
            |it: &&Arc<Task>| it.travel.is_some() && it.state.is_queued() && it.daemon.host == self.here.host;
        let in_line = u32::try_from(self.tasks.iter().filter(is_in_line).count()).unwrap_or(u32::MAX);
        if in_line < here.places { Room::InLine } else { Room::Full }
    }

    /// Checks whether this host would take an open task now.
    fn would_take(&self, task: &Task, room: Room) -> bool {
        let Some(travel) = &task.travel else { return false };
        let is_home = travel.home == self.here.host;
        let takes = is_home || self.ability_takes(&task.order);
        let is_only_one = || !self.others().any(|it| task.may_go_to(it));
        // The host of the task's asker comes first.
        let home_has_room = || {
            let home = self.others().find(|it| it.daemon.host == travel.home);
            home.is_some_and(|it| task.may_go_to(it) && self.free_at(it) > 0)
        };
        takes
            && self.fits_here(&task.order)
            && task.refused_by(self.here).is_none()
            && (room == Room::Free || room == Room::InLine && is_only_one())
            && (is_home || !home_has_room())
    }

    fn ability_takes(&self, order: &Delegate) -> bool {
        self.settings.workers.get(&order.worker).is_some_and(|it| it.copy || it.other_hosts)
    }

    /// Takes an open task, or records why the host leaves it. If no other host is left, the task fails.
    pub(super) fn take_task(
        &self,
        judge: &dyn Judge,
        call: &Call<'_>,
        verb: &TakeTask,
        out: &mut Outbox,
    ) -> Result<TaskTaken, Refusal> {
        let task = self.tasks.get(&verb.task).ok_or(Refusal::TaskFinished)?;
        let Some(travel) = task.travel.as_ref().filter(|_| task.is_open()) else {
            return Err(Refusal::TaskCannot { from: task.state });
        };
        let takes = !self.drains && self.has_place_for(&task.order.worker);
        if !takes || !self.would_take(task, self.room_here()) {
            return Err(refused(format!("task {} is not for this host now", task.id())));
        }
        let why_not = match &verb.cannot {
            Some(why) => Err(why.clone()),
            None => self.judged_here(judge, call, task, travel, verb, out),
        };
        let is_taken = why_not.is_ok();
        match why_not {
            Ok((facts, terms)) => self.takes(call.now, task, (facts, terms), out),
            Err(why) => self.leaves_to_others(call.now, task, why, out),
        }
        Ok(TaskTaken { is_taken })
    }

    fn judged_here(
        &self,
        judge: &dyn Judge,
        call: &Call<'_>,
        task: &Task,
        travel: &Travel,
        verb: &TakeTask,
        out: &mut Outbox,
    ) -> Result<(Facts, Terms), Box<str>> {
        let facts = Facts {
            now: call.wall,
            directory: verb.directory.clone(),
            program: verb.program,
            running: self.tasks.asked_from(&travel.asker.share()),
            depth: task.depth,
            ..Facts::default()
        };
        let facts = self.settings.facts_of(&task.order, facts).map_err(|it| it.to_string())?;
        let own = AbleWorker {
            tier: facts.tier,
            network: facts.network.clone(),
            git: facts.git,
            secrets: facts.secrets.clone(),
            ..AbleWorker::default()
        };
        if let Some(what) = travel.judged.differs_in(&own) {
            return Err(format!(
                "its worker's {what} differs from the one that the asker's host has allowed"
            )
            .into());
        }
        let command = Command::Delegate(task.order.clone());
        let (rule, terms) = match judge.decide(&travel.asker, &command, &facts) {
            Decision::Allow { rule, terms } => (rule, terms),
            Decision::Deny { rule, reason } => return Err(format!("rule {rule} denies it: {reason}").into()),
            Decision::NeedApproval { rule, terms, by, .. } => match &travel.granted_by {
                Some(granter) if self.admits(&by, granter) => (rule, terms),
                _ => return Err(format!("rule {rule} asks for an approval, which it has not got").into()),
            },
        };
        if let Some(why) = self.over_attempts(&task.order, &rule, &terms) {
            return Err(why);
        }
        // The same rule has already counted the task on its asker's host.
        let over = (rule != task.rule).then(|| self.over_limits(call.now, &travel.asker, &rule, &terms, out));
        over.flatten().map_or(Ok((facts, terms)), Err)
    }

    fn takes(&self, now: Timestamp, task: &Task, (facts, terms): (Facts, Terms), out: &mut Outbox) {
        let mut task = task.clone();
        let start = out.owe(Effect::SpawnWorker { task: task.id().clone() });
        out.append_event(EventKind::Queue(QueueEvent::TaskTaken { task: task.id().clone() }));
        let retries = self.settings.workers.get(&task.order.worker).map(|it| it.retries).unwrap_or_default();
        task.terms = task.terms.within(&terms);
        (task.directory, task.program, task.network) = (facts.directory, facts.program, facts.network);
        (task.daemon, task.updated_at) = (self.here, now);
        task.travel.iter_mut().for_each(|it| (it.start, it.retries) = (Some(start), retries));
        out.put(Change::PutTask(Arc::new(task)));
    }

    fn leaves_to_others(&self, now: Timestamp, task: &Task, why: Box<str>, out: &mut Outbox) {
        let mut task = task.clone();
        let (id, said) = (task.id().clone(), why.clone());
        out.append_event(EventKind::Queue(QueueEvent::TaskLeft { task: id, why: said }));
        task.travel.iter_mut().for_each(|it| it.refused.push((self.here, why.clone())));
        task.updated_at = now;
        let is_left = self.others().any(|it| task.may_go_to(it));
        if is_left || task.order.waits_for_host() {
            return out.put(Change::PutTask(Arc::new(task)));
        }
        let said = |(daemon, why): &(DaemonId, Box<str>)| format!("host {}: {why}", daemon.host.short());
        let all: Vec<String> = task.travel.iter().flat_map(|it| &it.refused).map(said).collect();
        let why = format!("no host is left that could do it; {}", all.join("; "));
        let summary = format!("Task {} did not begin: {why}", task.id());
        self.finish(now, &task, Ending::failed(summary, Failure::NoHost { why: why.into() }), out);
    }
}

/// The query for the open task that this host takes next, if any.
#[derive(Clone, Copy, Debug)]
pub struct NextOpen;

impl View for NextOpen {
    /// The task, and whether it was asked for on this host.
    type Out = Option<(Arc<Task>, bool)>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let task = state.next_open()?;
        let is_home = task.travel.as_ref().is_some_and(|it| it.home == state.here.host);
        Some((task, is_home))
    }
}
