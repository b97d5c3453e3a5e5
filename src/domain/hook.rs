//! Notification hooks: their message, the bound of pending ones, and the hooks that an ACK releases.
//!
//! ```text
//!   word about a task --> [owed] --carried out--> gone
//!                           |  \--- ACK: SignalAck is owed too, and releases it wherever it is
//!                           +-- too many are owed: the oldest progress gives way, and the log says so
//! ```
//! An ACK releases every hook of its task that was pending before it. DevIt 1.9. `effects` runs the hooks; the door
//! names the variables of their environment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Change, Effect, EventKind, Failure, Outbox, Report, State, Task};
use provost_base::limits::{HOOKS_OWED_BYTES_MAX, HOOKS_OWED_MAX};
use provost_base::{AgentId, EffectId, TaskId, Timestamp};

/// The message of a notification hook.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// The task that the notice is about.
    pub task: TaskId,
    /// The worker of the task.
    pub worker: AgentId,
    /// The agent that gets the word about the task.
    pub return_to: AgentId,
    /// The goal of the task.
    pub goal: Box<str>,
    /// The working directory, as the delegator wrote it.
    pub working_dir: Option<Box<str>>,
    /// The status word, as its sender wrote it.
    pub said: Box<str>,
    /// Whether this is the last notice about the task.
    pub last: bool,
    /// The report, without the message in which it came.
    pub report: Report,
    /// The reason for the failure, if the daemon gives one.
    pub failure: Option<Failure>,
    /// The time of the word.
    pub at: Timestamp,
}

impl Notice {
    fn bytes(&self) -> usize {
        const OVERHEAD: usize = 512;
        OVERHEAD + self.report.bytes() + self.goal.len()
    }
}

/// Hooks that are owed, waiting or running.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hooks {
    owed: BTreeMap<EffectId, Arc<Notice>>,
    by_task: BTreeMap<TaskId, BTreeSet<EffectId>>,
    bytes: usize,
}

impl Hooks {
    /// Returns the message of a hook; `None` if it is not owed any more.
    pub fn get(&self, id: EffectId) -> Option<&Arc<Notice>> {
        self.owed.get(&id)
    }

    /// Returns how many hooks of a task are owed.
    pub fn of_task(&self, task: &TaskId) -> usize {
        self.by_task.get(task).map_or(0, BTreeSet::len)
    }

    /// Returns how many hooks are owed.
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// Checks whether no hook is owed.
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    pub(super) fn put(&mut self, id: EffectId, notice: Arc<Notice>) {
        self.bytes += notice.bytes();
        self.by_task.entry(notice.task.clone()).or_default().insert(id);
        self.owed.insert(id, notice);
    }

    pub(super) fn remove(&mut self, id: EffectId) {
        let Some(notice) = self.owed.remove(&id) else { return };
        self.bytes -= notice.bytes();
        if let Some(ids) = self.by_task.get_mut(&notice.task) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_task.remove(&notice.task);
            }
        }
    }

    /// Drops hooks until a hook of `bytes` fits: progress first, the oldest of each kind first.
    fn make_room(&self, bytes: usize, out: &mut Outbox) {
        let (mut count, mut total) = (self.owed.len(), self.bytes + bytes);
        for last in [false, true] {
            for (id, notice) in self.owed.iter().filter(|(_, notice)| notice.last == last) {
                if count < HOOKS_OWED_MAX && total <= HOOKS_OWED_BYTES_MAX {
                    return;
                }
                (count, total) = (count - 1, total - notice.bytes());
                out.put(Change::DropEffect(*id));
                out.append_event(EventKind::HookDropped { task: notice.task.clone(), effect: *id });
            }
        }
    }
}

/// The content of a notification.
pub(super) struct Words<'a> {
    pub(super) said: &'a str,
    pub(super) last: bool,
    pub(super) report: &'a Report,
    pub(super) failure: Option<&'a Failure>,
}

impl State {
    /// Owes the hook for a word about a task, if hooks are configured. A denial owes no hook: DevIt's hook never
    /// heard of denials, and the asker has the answer.
    pub(super) fn owe_hook(&self, now: Timestamp, task: &Task, words: &Words<'_>, out: &mut Outbox) {
        if !self.settings.hooks || words.failure.is_some_and(Failure::is_denial) {
            return;
        }
        let notice = Notice {
            task: task.id().clone(),
            worker: task.order.worker.clone(),
            return_to: task.order.return_to.as_ref().unwrap_or(&task.asked_by).clone(),
            goal: task.order.goal.clone(),
            working_dir: task.order.working_dir.clone(),
            said: words.said.into(),
            last: words.last,
            report: Report { relay: None, ..words.report.clone() },
            failure: words.failure.cloned(),
            at: now,
        };
        self.hooks.make_room(notice.bytes(), out);
        let notice = Arc::new(notice);
        let id = out.owe(Effect::RunHook { notice: notice.clone() });
        out.put(Change::OweHook(id, notice));
    }

    /// Returns how many hooks an ACK of this task releases; if there are any, owes their release.
    pub(super) fn signal_hooks(&self, task: &TaskId, out: &mut Outbox) -> usize {
        let waiting = self.hooks.of_task(task);
        if waiting > 0 {
            out.owe(Effect::SignalAck { task: task.clone() });
        }
        waiting
    }
}
