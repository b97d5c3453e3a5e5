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
    /// The worker that was to do it.
    pub worker: AgentId,
    /// The agent that gets the word about the task.
    pub return_to: AgentId,
    /// The goal of the task.
    pub goal: Box<str>,
    /// Where, as the delegator wrote it.
    pub working_dir: Option<Box<str>>,
    /// The status word, as its sender wrote it.
    pub said: Box<str>,
    /// Whether nothing more will come.
    pub last: bool,
    /// The report; without the message as it came.
    pub report: Report,
    /// Why the task failed, when the daemon says so.
    pub failure: Option<Failure>,
    /// When it was said.
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
    /// The message of a hook; `None` when it is not owed any more.
    pub fn get(&self, id: EffectId) -> Option<&Arc<Notice>> {
        self.owed.get(&id)
    }

    /// How many hooks of a task are owed.
    pub fn of_task(&self, task: &TaskId) -> usize {
        self.by_task.get(task).map_or(0, BTreeSet::len)
    }

    /// How many are owed.
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// Whether none is owed.
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

    /// Gives up hooks until one of `bytes` fits: progress first, the oldest of each first.
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
    /// A word about a task is news for the hook, if there is one. A denial is not: DevIt's hook never heard of
    /// those, and the asker has the answer.
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

    /// How many hooks an ACK of this task releases; to do so is owed when there are any.
    pub(super) fn signal_hooks(&self, task: &TaskId, out: &mut Outbox) -> usize {
        let waiting = self.hooks.of_task(task);
        if waiting > 0 {
            out.owe(Effect::SignalAck { task: task.clone() });
        }
        waiting
    }
}
