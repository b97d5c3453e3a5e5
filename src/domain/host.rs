//! Hosts that are down: the resources of their daemons are freed, and their runs are lost.
//!
//! The other hosts judge that a host is down, and bury it in their turn at the store: so it happens once, and no
//! host leads. Everything ends that cannot go on without its daemon. Locks that an agent took by itself stay until
//! their time is up, since the agent may come back through another host. A lost task is never begun again by
//! itself: the host may only have stood still, and its worker may go on. A daemon that starts ends what the daemon
//! before it held, and goes on with what belongs to the host: processes, runs and owed effects.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::EndJob;
use super::progress::Ending;
use super::{
    Change, Core, Counters, Effect, Event, EventKind, Failure, JobState, Lock, LogEntry, Outbox, Owed, State,
    Switch, Task, TaskState, Waiter, WorkerKind,
};
use provost_base::{DaemonId, HostId, Json, TaskId, Timestamp};

/// The kind of the event that a host is down.
pub const HOST_DOWN: &str = "host.down";

/// The stored kind of the event that a host was removed. Its text is kept for ever: hosts that were away learn from it alone who is no member any
/// more.
pub const HOST_REMOVED: &str = "host_removed";

/// Checks whether a record says that a host was removed.
pub(super) fn says_removed(what: &str, details: &Json) -> bool {
    what == HOST_DOWN && details.value()["removed"] == true
}

impl Event {
    /// Returns the id of the host that this event removes, as text.
    pub fn removed_host(&self) -> Option<&str> {
        match &self.kind {
            EventKind::Recorded { what, subject, details } if says_removed(what, details) => {
                subject.split('/').next()
            }
            _ => None,
        }
    }
}

/// The command named by a switch that ends because its host is down.
const ENDED_WITH_HOST: &str = "host.down";

impl Core {
    /// Sets the daemon that decides with this core. Its grants from now on belong to that daemon.
    pub fn decides_at(&mut self, daemon: DaemonId) {
        self.state.here = daemon;
    }

    /// Continues from a state that other daemons share. The parts that belong to this daemon alone stay.
    pub fn take_over(&mut self, state: State) {
        let old = std::mem::replace(&mut self.state, state);
        self.state.keep_own(old);
    }

    /// Takes over a decision of another host's daemon.
    pub fn fold(&mut self, entry: &LogEntry) {
        entry.changes.iter().for_each(|change| self.state.apply(change));
    }

    /// Sets whether this host takes no new tasks from now on.
    pub fn drains(&mut self, drains: bool) {
        self.state.drains = drains;
    }

    /// Sets the hosts that were removed, as this daemon's store knows by the signed journal. This is for decisions here alone: no entry says it.
    pub fn knows_removed(&mut self, hosts: BTreeSet<HostId>) {
        self.state.removed = hosts;
    }

    /// Ends everything that a daemon which is down held, and earlier daemons of its host: agents that wait there
    /// leave, messages on their way come back, locks of processes and runs are freed, switches that agents have set
    /// there are undone, and tasks of its workers are lost. Of the effects that it `owed`, this daemon takes over
    /// notices and hooks; those about its disk wait for its return; the rest is dropped. For a removed host nothing
    /// waits: its jobs fail, and questions asked there are no longer answered. A second call changes nothing.
    pub fn bury(
        &mut self,
        now: Timestamp,
        (daemon, gone): (DaemonId, Gone),
        owed: &[Owed],
        out: &mut Outbox,
    ) {
        let is_its = |it: DaemonId| it.host == daemon.host && it.incarnation <= daemon.incarnation;
        let lost: Vec<Arc<Task>> =
            self.state.tasks.iter().filter(|it| it.is_carried_out_by(is_its)).cloned().collect();
        self.by_itself(now, out, |state, out| {
            out.append_event(EventKind::Recorded {
                what: HOST_DOWN.into(),
                subject: daemon.to_string().into(),
                details: state.details_of(gone, owed, lost.len()),
            });
            state.end_connections_of(is_its, out);
            state.free_bound_locks_of(is_its, out);
            owed.iter().for_each(|it| it.when_its_host_is(gone, out));
            out.put(Change::HostDown(daemon, gone));
        });
        for task in lost {
            // The end of one task may have ended tasks that wait for it.
            let Some(task) = self.state.tasks.get(task.id()).cloned() else { continue };
            self.by_itself(now, out, |state, out| {
                if !state.goes_on_elsewhere(now, &task, out) {
                    state.lose(now, &task, out);
                }
            });
        }
        if gone == Gone::Removed {
            self.by_itself(now, out, |state, out| state.give_up_questions_of(now, is_its, out));
            for it in owed {
                self.by_itself(now, out, |state, out| state.end_job_of(now, &it.effect, out));
            }
        }
    }

    /// Ends what earlier daemons of this host held for their callers, who are gone: waits, messages on their way,
    /// and switches that agents have set.
    pub fn begin_again(&mut self, now: Timestamp, out: &mut Outbox) {
        let here = self.state.here;
        let is_before = |it: DaemonId| it.host == here.host && it.incarnation < here.incarnation;
        self.by_itself(now, out, |state, out| state.end_connections_of(is_before, out));
    }

    /// Ends the tasks that would begin by themselves and have waited since before `at`, when a person went on without a part of the history:
    /// there, they may have run, or may have been cancelled. A host that only works leaves that to the others.
    pub fn give_up_what_waited(&mut self, now: Timestamp, at: Timestamp, out: &mut Outbox) {
        if self.state.only_works() {
            return;
        }
        let waited = |it: &&Arc<Task>| {
            let begins_by_itself = it.is_open() || matches!(it.state, TaskState::Retrying { .. });
            it.kind == WorkerKind::Cli && begins_by_itself && it.updated_at < at
        };
        let all: Vec<TaskId> = self.state.tasks.iter().filter(waited).map(|it| it.id().clone()).collect();
        for id in all {
            self.by_itself(now, out, |state, out| {
                // The end of one task may have ended tasks that wait for it.
                let Some(task) = state.tasks.get(&id) else { return };
                let worker = &task.order.worker;
                let summary = format!(
                    "Worker {worker} did not begin: a part of the history was lost while the task waited"
                );
                state.finish(now, task, Ending::failed(summary, Failure::Lost), out);
            });
        }
    }

    /// Ends what this daemon holds for its callers, since it stops.
    pub fn leave(&mut self, now: Timestamp, out: &mut Outbox) {
        let here = self.state.here;
        self.by_itself(now, out, |state, out| {
            state.end_connections_of(|it| it == here, out);
            state.give_back_taken(now, out);
            if state.abilities.of(here.host).is_some() {
                out.put(Change::DropAbility(here.host));
            }
        });
    }

    /// Skips numbers that a database may have issued and lost, when it continues from another server. Fences and
    /// the other numbers then still rise.
    pub fn skip_numbers(&mut self, now: Timestamp, step: u64, out: &mut Outbox) {
        self.by_itself(now, out, |_, out| out.skip_numbers(step));
    }

    /// Goes on above numbers that another daemon has skipped.
    pub fn raise_numbers(&mut self, now: Timestamp, to: &Counters, out: &mut Outbox) {
        self.by_itself(now, out, |_, out| out.raise_numbers(to));
    }
}

impl State {
    fn details_of(&self, gone: Gone, owed: &[Owed], lost: usize) -> Json {
        let count = |fate: Fate| owed.iter().filter(|it| it.effect.fate(gone) == fate).count();
        Json::from_value(&serde_json::json!({
            "removed": gone == Gone::Removed, "tasks_lost": lost, "dropped": count(Fate::Dropped),
            "taken_over": count(Fate::TakenOver), "waiting": count(Fate::Waits),
        }))
    }

    /// Gives up the questions that were asked at such a daemon, since their commands would be carried out there.
    fn give_up_questions_of(&self, now: Timestamp, is_its: impl Fn(DaemonId) -> bool, out: &mut Outbox) {
        for parked in self.approvals.iter().filter(|it| is_its(it.daemon)) {
            self.drop_approval(parked.id, out);
            let failure = Failure::NoHost { why: "its host was removed".into() };
            self.give_up_parked(now, parked, "Its host was removed", failure, out);
        }
    }

    fn end_job_of(&self, now: Timestamp, effect: &Effect, out: &mut Outbox) {
        let Effect::RunJob { job } = effect else { return };
        let (state, error) = (JobState::Failed, Some("its host was removed".into()));
        let end = EndJob { job: job.clone(), state, error, result: None, steps: 0 };
        // A job that is over already needs no end.
        let _ended = self.end_job(now, &end, out);
    }

    fn end_connections_of(&self, is_its: impl Fn(DaemonId) -> bool, out: &mut Outbox) {
        let waits: Vec<&Arc<Waiter>> = self.locks.waiters().filter(|it| is_its(it.daemon)).collect();
        waits.into_iter().for_each(|it| self.give_up(it, out));
        self.mail.come_back_from(&is_its, out);
        for (worker, _) in self.switches.iter().filter(|(_, it)| !it.is_lasting() && is_its(it.daemon)) {
            out.append_event(EventKind::WorkerSwitched {
                worker: worker.clone(),
                to: Switch::On,
                command: ENDED_WITH_HOST.into(),
            });
            out.put(Change::Switch(worker.clone(), None));
        }
    }

    fn free_bound_locks_of(&self, is_its: impl Fn(DaemonId) -> bool, out: &mut Outbox) {
        let is_bound = |it: &&Arc<Lock>| is_its(it.daemon) && (it.process.is_some() || it.run.is_some());
        let locks: Vec<&Arc<Lock>> = self.locks.iter().filter(is_bound).collect();
        locks.into_iter().for_each(|it| self.free(it, "its host is down", out));
    }

    fn lose(&self, now: Timestamp, task: &Task, out: &mut Outbox) {
        let summary = format!("Worker {} was lost: its host is down", task.order.worker);
        self.finish(now, task, Ending::failed(summary, Failure::Lost), out);
    }

    /// Checks whether a daemon is one of this host: the deciding one, or one before it.
    pub fn is_here(&self, daemon: DaemonId) -> bool {
        daemon.host == self.here.host
    }

    /// Keeps from an earlier state of this daemon the parts that belong to it alone, and that no store has.
    pub(super) fn keep_own(&mut self, old: State) {
        self.agents.keep_own(old.agents);
        // Outcomes of questions may come from a batch that is not stored: their askers ask again.
        (self.written, self.circles) = (old.written, old.circles);
        (self.here, self.swept_at, self.awake_since) = (old.here, old.swept_at, old.awake_since);
        self.works_only = old.works_only;
    }
}

impl Task {
    /// Checks whether such a daemon runs the task's worker or takes its picture, or was going to.
    fn is_carried_out_by(&self, is_it: impl Fn(DaemonId) -> bool) -> bool {
        let is_under_way = matches!(
            self.state,
            TaskState::Waiting
                | TaskState::Retrying { .. }
                | TaskState::Queued { .. }
                | TaskState::Running { .. }
        );
        is_under_way && (self.kind == WorkerKind::Cli || self.capture) && is_it(self.daemon)
    }
}

/// The way in which a daemon has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gone {
    /// It was silent for too long. Its host may come back.
    Silent,
    /// A person has removed its host, or the host was drained.
    Removed,
}

/// The consequence for an effect that a host owed when it went down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Any host can carry it out: the one that has noticed the silence does.
    TakenOver,
    /// It concerns that host's disk, and waits until the host comes back.
    Waits,
    /// It makes no sense without that daemon.
    Dropped,
}

impl Effect {
    fn fate(&self, gone: Gone) -> Fate {
        match self {
            Effect::RunHook { .. } | Effect::SendNotice { .. } => Fate::TakenOver,
            Effect::RunJob { .. }
            | Effect::WriteFiles { .. }
            | Effect::RunMerges { .. }
            | Effect::DropChanges { .. }
                if gone == Gone::Silent =>
            {
                Fate::Waits
            }
            Effect::RunJob { .. }
            | Effect::WriteFiles { .. }
            | Effect::RunMerges { .. }
            | Effect::DropChanges { .. }
            | Effect::SpawnWorker { .. }
            | Effect::StopWorker { .. }
            | Effect::SignalAck { .. }
            | Effect::WatchFiles { .. }
            | Effect::Capture { .. } => Fate::Dropped,
        }
    }
}

impl Owed {
    fn when_its_host_is(&self, gone: Gone, out: &mut Outbox) {
        match self.effect.fate(gone) {
            Fate::TakenOver => out.take_over(self.id, self.effect.clone()),
            Fate::Waits => {}
            Fate::Dropped => out.put(Change::DropEffect(self.id)),
        }
    }
}
