//! Decides when allowed work begins: its priority, and the tasks that it waits for.
//!
//! ```text
//!   [awaiting] --granted--> [waiting] --all of them have succeeded--> [queued]
//!                               |
//!                               v one has failed, or was cancelled
//!                         [finished: failed]
//! ```
//! A task can only wait for tasks that exist, and that list never changes, so tasks alone form no circle. A circle
//! needs a worker that waits for its own delegation; that is refused. The end of a task and its consequences for
//! waiting tasks are one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{Delegate, Delegated, Status};
use super::progress::Ending;
use super::{
    Call, Change, Core, EventKind, Failure, MailKind, Outbox, Principal, Proof, Refusal, State, Task,
    TaskState, Tasks, Usage, WorkerKind,
};
use provost_base::limits::{AFTER_MAX, CIRCLE_LOOKED_AT_MAX};
use provost_base::{Digest, TaskId, Timestamp};

/// The order in which waiting tasks begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After all others.
    Low,
    /// The usual order.
    #[default]
    Normal,
    /// Before all others; only for the operator, and for agents that the configuration names.
    High,
}

impl Priority {
    /// All priorities, lowest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// Returns the priority with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    /// Checks whether this is the usual priority.
    pub fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

/// When and where a task begins, as its asker wants it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// The order in which it begins among waiting tasks.
    #[serde(skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// The tasks that have to succeed before it begins; each once. With `after_any`, the success of one is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskId>,
    /// The pool that its worker is in, if the asker named a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Box<str>>,
    /// The label that its host must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Box<str>>,
    /// Whether the task waits for a host if no host can do it now.
    #[serde(skip_serializing_if = "is_false")]
    pub wait_for_host: bool,
    /// Whether the success of one of the tasks is enough.
    #[serde(skip_serializing_if = "is_false")]
    pub after_any: bool,
    /// How often it begins again where its run fails; `None` as often as its worker's entry says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

fn is_false(it: &bool) -> bool {
    !*it
}

impl Placement {
    /// Returns the placement, or `None` if it asks for nothing special, so that the digest of such a request stays the same.
    pub fn unless_usual(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl Delegate {
    /// Returns the order in which it begins among waiting tasks.
    pub fn priority(&self) -> Priority {
        self.placement.as_ref().map_or(Priority::Normal, |it| it.priority)
    }

    /// Returns how often the task is to begin again where its run fails, if the request says so.
    pub fn retries(&self) -> Option<u32> {
        self.placement.as_ref().and_then(|it| it.retries)
    }

    /// Checks whether the success of one of these tasks is enough.
    pub fn begins_after_any(&self) -> bool {
        self.placement.as_ref().is_some_and(|it| it.after_any)
    }

    /// Returns the tasks that have to succeed before it begins.
    pub fn after(&self) -> &[TaskId] {
        self.placement.as_ref().map_or(&[], |it| &it.after)
    }
}

/// A step of a task that waits its turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueEvent {
    /// An allowed task waits for others.
    TaskWaits {
        /// The task that waits.
        task: TaskId,
        /// The tasks that have not ended yet.
        after: Vec<TaskId>,
    },
    /// A task no longer waits for other tasks, and goes to its worker.
    TaskReleased {
        /// The task that has waited.
        task: TaskId,
        /// The task that was the last to succeed.
        after: TaskId,
    },
    /// An attempt has failed, and another one follows.
    AttemptFailed {
        /// The task whose attempt has failed.
        task: TaskId,
        /// The number of the attempt; the first is 1.
        attempt: u32,
        /// The reason for the failure.
        failure: Option<Failure>,
        /// The digest of its report.
        report: Digest,
        /// The usage that its worker reports.
        usage: Option<Box<Usage>>,
        /// When the next one begins.
        again_at: Timestamp,
    },
    /// The next attempt begins as soon as a place is free.
    AttemptBegins {
        /// The task of the attempt.
        task: TaskId,
        /// The number of the attempt.
        attempt: u32,
    },
    /// A task waits for a host that takes it.
    TaskOpen {
        /// The task that waits.
        task: TaskId,
    },
    /// A host has taken a task, and starts its worker.
    TaskTaken {
        /// The task that was taken.
        task: TaskId,
    },
    /// A host does not take a task.
    TaskLeft {
        /// The task that the host leaves to others.
        task: TaskId,
        /// The reason, in words for people.
        why: Box<str>,
    },
}

impl QueueEvent {
    /// Returns the kind's name, as it is stored and as filters name it.
    pub fn name(&self) -> &'static str {
        match self {
            QueueEvent::TaskWaits { .. } => "task_waits",
            QueueEvent::TaskReleased { .. } => "task_released",
            QueueEvent::AttemptFailed { .. } => "attempt_failed",
            QueueEvent::AttemptBegins { .. } => "attempt_begins",
            QueueEvent::TaskOpen { .. } => "task_open",
            QueueEvent::TaskTaken { .. } => "task_taken",
            QueueEvent::TaskLeft { .. } => "task_left",
        }
    }

    /// Returns the task that the event is about.
    pub fn task(&self) -> &TaskId {
        match self {
            QueueEvent::TaskWaits { task, .. }
            | QueueEvent::TaskReleased { task, .. }
            | QueueEvent::AttemptFailed { task, .. }
            | QueueEvent::AttemptBegins { task, .. }
            | QueueEvent::TaskOpen { task }
            | QueueEvent::TaskTaken { task }
            | QueueEvent::TaskLeft { task, .. } => task,
        }
    }
}

pub(super) fn refused(why: String) -> Refusal {
    Refusal::NotPlaced { why: why.into() }
}

impl State {
    /// Checks whether a delegation may have the placement that it asks for.
    ///
    /// # Errors
    /// [`Refusal::NotPlaced`], with what is wrong and the next step.
    pub(super) fn can_be_placed(&self, call: &Call<'_>, verb: &Delegate) -> Result<(), Refusal> {
        self.may_have_priority(call.who, verb)?;
        let after = verb.after();
        if after.len() > AFTER_MAX {
            return Err(refused(format!(
                "a task waits for {AFTER_MAX} others at the most, and this one names {}; have one of them wait for the rest",
                after.len()
            )));
        }
        for earlier in after {
            self.can_wait_for(call, verb, earlier)?;
        }
        self.begins_no_circle(call.who, after)?;
        self.has_room_and_host(verb)
    }

    fn may_have_priority(&self, who: &Principal, verb: &Delegate) -> Result<(), Refusal> {
        let is_named = || self.settings.high_priority.contains(who.agent()) && !who.has_free_name();
        if verb.priority() < Priority::High || who.operates() || is_named() {
            return Ok(());
        }
        Err(refused(format!(
            "only the user gives work a high priority, at a terminal or in a script where no agent has spoken, and agents with proof of \
             their names that `high_priority` in `[queue]` lists; {} asks without, so delegate it with the priority `normal`",
            who.agent()
        )))
    }

    fn can_wait_for(&self, call: &Call<'_>, verb: &Delegate, earlier: &TaskId) -> Result<(), Refusal> {
        if *earlier == verb.task {
            return Err(refused(format!("task {earlier} cannot wait for itself; that is a circle")));
        }
        let live = self.tasks.get(earlier);
        let found = live.or_else(|| call.earlier.iter().find(|it| it.id() == earlier));
        let Some(found) = found.filter(|it| may_see(call.who, it)) else {
            return Err(refused(format!(
                "there is no task {earlier} to wait for; name one that `provost task list` shows, or that was delegated before"
            )));
        };
        match found.state {
            TaskState::Finished { status: Status::Completed, .. } => Ok(()),
            TaskState::Finished { .. } => Err(refused(format!(
                "task {earlier} {}, so that a task which waits for its success would never begin",
                how_ended(found)
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that no worker waits for its own task: a worker that delegates may wait for the outcome, and would wait forever.
    fn begins_no_circle(&self, who: &Principal, after: &[TaskId]) -> Result<(), Refusal> {
        let above: BTreeSet<&TaskId> = self.tasks.worked_on(who).map(|task| task.id()).collect();
        if above.is_empty() {
            return Ok(());
        }
        let (mut open, mut seen): (Vec<&TaskId>, BTreeSet<&TaskId>) =
            (after.iter().collect(), BTreeSet::new());
        while let Some(id) = open.pop() {
            if above.contains(id) {
                return Err(refused(format!(
                    "{} works on task {id}, so that what it delegates cannot wait for that task: this would be a circle; leave \
                     the task out, or have the asker of {id} delegate this",
                    who.agent()
                )));
            }
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > CIRCLE_LOOKED_AT_MAX {
                return Err(Refusal::busy("too many tasks wait for each other to see that no circle begins"));
            }
            open.extend(self.tasks.get(id).into_iter().flat_map(|task| &task.waits));
        }
        Ok(())
    }

    /// Updates a task that has waited for one that has ended.
    fn goes_on_after(&self, now: Timestamp, ended: &Task, waiting: &TaskId, out: &mut Outbox) {
        let Some(task) = self.tasks.get(waiting) else { return };
        if !matches!(ended.state, TaskState::Finished { status: Status::Completed, .. }) {
            if task.order.begins_after_any() && task.waits.len() > 1 {
                let mut task = Task::clone(task);
                task.waits.retain(|it| it != ended.id());
                return out.put(Change::PutTask(Arc::new(task)));
            }
            return self.never_begins(now, task, ended, out);
        }
        let mut task = Task::clone(task);
        task.waits.retain(|it| it != ended.id());
        if task.order.begins_after_any() {
            task.waits.clear();
        }
        task.updated_at = now;
        match task.state {
            TaskState::Waiting if task.waits.is_empty() => self.lets_go(now, task, ended.id(), out),
            // A task that also waits for approval begins when that is granted.
            _ => out.put(Change::PutTask(Arc::new(task))),
        }
    }

    fn lets_go(&self, now: Timestamp, task: Task, after: &TaskId, out: &mut Outbox) {
        if let Err(refusal) = self.tasks.has_room_at_worker(&task, &self.mail) {
            let why = format!("{refusal}, when task {after} had ended");
            let summary = format!("Task {} did not begin: {why}", task.id());
            let failure = Failure::NotBegun { task: after.clone(), why: why.into() };
            return self.finish(now, &task, Ending::failed(summary, failure), out);
        }
        let (id, after) = (task.id().clone(), after.clone());
        out.append_event(EventKind::Queue(QueueEvent::TaskReleased { task: id, after }));
        self.hand_over(now, task, out);
    }

    fn never_begins(&self, now: Timestamp, task: &Task, ended: &Task, out: &mut Outbox) {
        if let TaskState::Awaiting { approval } = task.state {
            self.drop_approval(approval, out);
        }
        let (id, how) = (ended.id(), how_ended(ended));
        let summary = format!("Task {} did not begin: it has waited for task {id}, which {how}", task.id());
        let failure = Failure::NotBegun { task: id.clone(), why: format!("task {id} {how}").into() };
        self.finish(now, task, Ending::failed(summary, failure), out);
    }
}

impl Tasks {
    /// Checks that the worker's queue takes a task.
    ///
    /// # Errors
    /// [`Refusal::Busy`] names the queue that is full.
    pub(super) fn has_room_at_worker(&self, task: &Task, mail: &super::Mailboxes) -> Result<(), Refusal> {
        let work = MailKind::Work { task: task.id().clone(), payload: task.order.payload.clone() };
        if mail.is_full() {
            return Err(Refusal::busy("too much mail waits for agents that do not collect it"));
        }
        if task.kind == WorkerKind::Polling && !mail.has_room(&task.order.worker, &work) {
            return Err(Refusal::busy("the worker's queue is full; wait until it has collected its mail"));
        }
        Ok(())
    }

    /// Lets a task wait for others that have not ended.
    pub(super) fn let_wait(&self, now: Timestamp, mut task: Task, out: &mut Outbox) -> Delegated {
        (task.state, task.updated_at, task.daemon) = (TaskState::Waiting, now, out.owner());
        let (id, after) = (task.id().clone(), task.waits.clone());
        out.append_event(EventKind::Queue(QueueEvent::TaskWaits { task: id.clone(), after }));
        let done = Delegated { task: id, state: task.state };
        out.put(Change::PutTask(Arc::new(task)));
        done
    }
}

/// Checks whether the caller may learn of a task: an agent in a jail sees its own only.
fn may_see(who: &Principal, task: &Task) -> bool {
    who.proof() != Proof::Jailed || task.share() == who.share() || who.works_inside_on(task.id())
}

/// Returns how a task without success has ended, in words.
fn how_ended(task: &Task) -> &'static str {
    match (task.state, &task.failure) {
        (TaskState::Finished { status: Status::Cancelled, .. }, _) => "was cancelled",
        (_, Some(Failure::Lost)) => "was lost",
        (_, Some(Failure::NotBegun { .. })) => "did not begin",
        (_, Some(failure)) if failure.is_denial() => "was denied",
        _ => "has failed",
    }
}

impl Core {
    /// Applies the consequences of tasks that have ended since `from` in the changes, one step after the other.
    /// Each step sees the effects of those before; tasks that end on the way have their consequences, too.
    pub(super) fn follow_ends(&mut self, now: Timestamp, from: usize, out: &mut Outbox) {
        let mut next = from;
        while let Some(change) = out.changes.get(next) {
            next += 1;
            let Change::FinishTask(ended) = change else { continue };
            let ended = ended.clone();
            for waiting in self.state().tasks.waiting_for(ended.id()) {
                self.step(now, out, |state, out| state.goes_on_after(now, &ended, &waiting, out));
            }
        }
    }
}
