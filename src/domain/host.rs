//! Hosts that are down: what their daemons held is freed, and what they ran is lost.
//!
//! A host is judged by those who look on, and buried in their turn at the store: so it happens once, and no host leads. What
//! ends is what cannot go on without its daemon. Locks that an agent took by itself stay until their time is up, since the
//! agent may come back through another host. A lost task is never begun again by itself: the host may have stood still, and its
//! worker may go on.

use std::sync::Arc;

use super::progress::Ending;
use super::{Change, Core, EventKind, Failure, Lock, Outbox, State, Switch, Task, Waiter};
use provost_base::{DaemonId, Json, Timestamp};

/// The kind of the event that says so.
pub const HOST_DOWN: &str = "host.down";

/// The command that a switch names which ends with its host.
const ENDED_WITH_HOST: &str = "host.down";

impl Core {
    /// Says by which daemon this core decides. What it grants from now on belongs to that one.
    pub fn decides_at(&mut self, daemon: DaemonId) {
        self.state.here = daemon;
    }

    /// Ends what a daemon held that is down: those who wait there leave, messages on their way come back, locks of processes
    /// and runs are free, switches that agents have set there are undone, and running tasks are lost. A second time finds
    /// nothing.
    pub fn bury(&mut self, now: Timestamp, daemon: DaemonId, out: &mut Outbox) {
        self.by_itself(now, out, |state, out| state.free_all_of(daemon, out));
        let lost = self.state.tasks.iter().filter(|it| it.runs_at(daemon)).cloned();
        for task in lost.collect::<Vec<Arc<Task>>>() {
            self.by_itself(now, out, |state, out| state.lose(now, &task, out));
        }
    }

    /// Passes numbers over that a database may have given and lost, when it continues from another server. Fences and the other
    /// numbers then still rise.
    pub fn skip_numbers(&mut self, now: Timestamp, step: u64, out: &mut Outbox) {
        self.by_itself(now, out, |_, out| out.skip_numbers(step));
    }
}

impl State {
    fn free_all_of(&self, daemon: DaemonId, out: &mut Outbox) {
        out.append_event(EventKind::Recorded {
            what: HOST_DOWN.into(),
            subject: daemon.to_string().into(),
            details: Json::null(),
        });
        let waits: Vec<&Arc<Waiter>> = self.locks.waiters().filter(|it| it.daemon == daemon).collect();
        waits.into_iter().for_each(|it| self.give_up(it, out));
        self.mail.come_back_from(daemon, out);
        let is_its = |it: &&Arc<Lock>| it.daemon == daemon && (it.process.is_some() || it.run.is_some());
        let locks: Vec<&Arc<Lock>> = self.locks.iter().filter(is_its).collect();
        locks.into_iter().for_each(|it| self.free(it, "its host is down", out));
        for (worker, _) in self.switches.iter().filter(|(_, it)| !it.is_lasting() && it.daemon == daemon) {
            out.append_event(EventKind::WorkerSwitched {
                worker: worker.clone(),
                to: Switch::On,
                command: ENDED_WITH_HOST.into(),
            });
            out.put(Change::Switch(worker.clone(), None));
        }
        out.put(Change::HostDown(daemon));
    }

    fn lose(&self, now: Timestamp, task: &Task, out: &mut Outbox) {
        let summary = format!("Worker {} was lost: its host is down", task.order.worker);
        self.finish(now, task, Ending::failed(summary, Failure::Lost), out);
    }

    /// Keeps from an earlier state of this daemon what belongs to it alone, and no store has.
    pub(super) fn keep_own(&mut self, old: State) {
        self.agents.keep_own(old.agents);
        (self.grants, self.written, self.circles) = (old.grants, old.written, old.circles);
        (self.here, self.swept_at, self.awake_since) = (old.here, old.swept_at, old.awake_since);
    }
}

impl Task {
    /// Whether that daemon runs its worker.
    fn runs_at(&self, daemon: DaemonId) -> bool {
        self.daemon == daemon && matches!(self.state, super::TaskState::Running { .. })
    }
}
