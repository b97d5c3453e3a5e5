//! The words for the agent of a task while it runs, and the session in which it works.
//!
//! ```text
//!   [waiting] --a turn begins with it--> [delivered]
//!       \-------the run ends before----> [not delivered]
//! ```
//! A saying is on the disk before it is acknowledged. It is delivered at least once: a daemon that is killed between the delivery
//! and its record delivers it again to a session that is resumed. The task's end reports sayings that were never delivered.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    NoteSaid, NoteSession, ResumeRun, RunResumed, SaidNoted, SaidToTask, SayToTask, SayingsTaken,
    SessionNoted, TakeSayings,
};
use super::progress::{RUN_GRACE, clip};
use super::{
    Change, EventKind, Outbox, Principal, Refusal, Report, Scope, State, Task, TaskState, WorkerKind,
};
use provost_base::limits::{SAID_TEXT_KEPT, SAY_BYTES_MAX, SAYINGS_KEPT_MAX, SAYINGS_WAITING_MAX};
use provost_base::{AgentId, Digest, TaskId, Timestamp, task_command};

/// The session that an agent has begun, with the agent's abilities to continue it. ACP v1, `AgentCapabilities`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentSession {
    /// Its id, as the agent chose it.
    pub id: Box<str>,
    /// The folder in which it works, as the agent sees it.
    pub folder: Box<str>,
    /// Whether the agent can load the session in a new process, repeating the conversation.
    pub loads: bool,
    /// Whether the agent can resume the session in a new process.
    pub resumes: bool,
    /// Whether the agent can list its sessions.
    pub lists: bool,
    /// Whether the agent can close it.
    pub closes: bool,
    /// The first task of the session, under whose name its home is kept; `None` if the home is not kept.
    #[serde(default)]
    pub kept: Option<TaskId>,
}

/// The session that a delegation continues.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Continued {
    /// The finished task whose session it is.
    pub task: TaskId,
    /// The session; filled by the service, and `None` until then.
    pub session: Option<AgentSession>,
}

impl AgentSession {
    /// Checks whether a later process of the agent can continue the session.
    pub fn goes_on(&self) -> bool {
        self.loads || self.resumes
    }
}

/// The state of a saying.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SayingState {
    /// It waits for the end of the agent's turn.
    Waiting,
    /// The agent got it.
    Delivered {
        /// When the agent got it.
        at: Timestamp,
    },
    /// The run ended before the agent got it.
    NotDelivered,
}

/// Words for the agent of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Saying {
    /// Its number, from 1 for each task.
    pub number: u32,
    /// The agent or person that said it.
    pub by: AgentId,
    /// When the core accepted it.
    pub at: Timestamp,
    /// The words; for a delivered saying only their beginning.
    pub text: Box<str>,
    /// Whether the agent's turn is ended for the saying.
    pub now: bool,
    /// The state of the saying.
    pub state: SayingState,
}

impl Saying {
    /// Checks whether the saying still has to be delivered.
    pub fn waits(&self) -> bool {
        self.state == SayingState::Waiting
    }
}

/// A task's session, and the sayings in it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Talk {
    /// The session, once the agent has begun it.
    pub session: Option<AgentSession>,
    /// The newest sayings, oldest first; all waiting ones are among them.
    pub sayings: Vec<Saying>,
    /// The number of the last saying.
    pub said: u32,
    /// Whether the agent's last turn is over, so that it takes no more words.
    pub closed: bool,
    /// The number of times that its run was begun again in the same session.
    pub resumed: u32,
}

/// A step of a conversation with an agent, as it stands in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TalkEvent {
    /// The actor has said something to the agent of a task.
    TaskSaid {
        /// The task that the agent works on.
        task: TaskId,
        /// The number of the saying.
        number: u32,
        /// The digest of the words.
        text: Digest,
        /// Their length in bytes.
        bytes: u64,
        /// Whether the agent's turn is ended for the saying.
        now: bool,
    },
    /// The agent of a task got sayings.
    SayingsDelivered {
        /// The task that the agent works on.
        task: TaskId,
        /// The number of the newest saying that the agent got.
        through: u32,
    },
    /// A run has ended before its agent got all sayings.
    SayingsLost {
        /// The task of the run.
        task: TaskId,
        /// The numbers of the sayings.
        numbers: Vec<u32>,
    },
    /// A run has begun again in the session of its agent, whose process had ended in the middle of a turn.
    RunResumed {
        /// The task of the run.
        task: TaskId,
    },
    /// An agent has begun a session, or continues one.
    SessionBegun {
        /// The task of the run.
        task: TaskId,
        /// The digest of the session's id.
        session: Digest,
        /// Whether a later process of the agent can continue it.
        goes_on: bool,
    },
}

impl TalkEvent {
    /// Returns the kind's name, as it is stored and as filters name it.
    pub fn name(&self) -> &'static str {
        match self {
            TalkEvent::TaskSaid { .. } => "task_said",
            TalkEvent::SayingsDelivered { .. } => "sayings_delivered",
            TalkEvent::SayingsLost { .. } => "sayings_lost",
            TalkEvent::RunResumed { .. } => "run_resumed",
            TalkEvent::SessionBegun { .. } => "session_begun",
        }
    }

    /// Returns the task that the event is about.
    pub fn task(&self) -> &TaskId {
        match self {
            TalkEvent::TaskSaid { task, .. }
            | TalkEvent::SayingsDelivered { task, .. }
            | TalkEvent::SayingsLost { task, .. }
            | TalkEvent::RunResumed { task }
            | TalkEvent::SessionBegun { task, .. } => task,
        }
    }
}

impl Talk {
    fn waiting(&self) -> impl Iterator<Item = &Saying> {
        self.sayings.iter().filter(|it| it.waits())
    }

    /// Forgets the oldest sayings that do not wait.
    fn prune(&mut self) {
        while self.sayings.len() > SAYINGS_KEPT_MAX
            && let Some(at) = self.sayings.iter().position(|it| !it.waits())
        {
            self.sayings.remove(at);
        }
    }
}

impl Task {
    /// Checks whether the run may begin again in the session of its agent: once, and only in the middle of a turn.
    pub fn can_be_resumed(&self) -> bool {
        let talk = self.talk.as_deref();
        talk.is_some_and(|it| {
            let session = it.session.as_ref();
            !it.closed && it.resumed == 0 && session.is_some_and(|it| it.goes_on() && it.kept.is_some())
        })
    }

    /// Checks whether a saying with a later number waits for which the agent's turn has to be ended.
    pub fn is_hurried(&self, after: u32) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.waiting().any(|it| it.now && it.number > after))
    }

    fn with_talk(&self, change: impl FnOnce(&mut Talk)) -> Task {
        let mut task = self.clone();
        change(task.talk.get_or_insert_default());
        task
    }

    /// Returns the task at the end of its run: undelivered sayings are marked so, and named in the report's summary.
    pub(super) fn talked_out(&self, mut report: Report, out: &mut Outbox) -> (Task, Report) {
        let Some(talk) = &self.talk else { return (self.clone(), report) };
        let numbers: Vec<u32> = talk.waiting().map(|it| it.number).collect();
        let task = self.with_talk(|talk| {
            talk.closed = true;
            for it in talk.sayings.iter_mut().filter(|it| it.waits()) {
                it.state = SayingState::NotDelivered;
            }
        });
        if !numbers.is_empty() {
            let named = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let lost = format!("These messages to its agent were not delivered: {named}. {}", report.summary);
            report.summary = clip(lost.trim_end());
            let event = TalkEvent::SayingsLost { task: self.id().clone(), numbers };
            out.append_event(EventKind::Talk(event));
        }
        (task, report)
    }
}

impl State {
    /// Keeps words for the agent of a task. The task's asker and people may send some, but no worker may to itself,
    /// and no model that has left out its name.
    pub(super) fn say_to_task(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &SayToTask,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<SaidToTask, Refusal> {
        let task = self.tasks.get(&verb.task).or(past).ok_or(Refusal::TaskNotFound)?;
        // That the task is over is not secret, and explains the refusal to every caller.
        if task.state.is_finished() {
            return Err(Refusal::TaskFinished);
        }
        let is_its_worker = who.works_inside_on(task.id()) || task.order.worker == *who.agent();
        match who.may(Scope::Operate) {
            true if who.is_of_agents() => return Err(Refusal::OutOfScope { needs: Scope::Operate }),
            false if is_its_worker || task.asked_by != *who.agent() => {
                return Err(Refusal::TaskNotYours { owner: task.asked_by.clone() });
            }
            _ => {}
        }
        self.takes_words(task)?;
        if verb.text.len() > SAY_BYTES_MAX {
            return Err(Refusal::too_long("what is said to an agent", SAY_BYTES_MAX, "bytes"));
        }
        let waiting = task.talk.as_ref().map_or(0, |talk| talk.waiting().count());
        if waiting >= SAYINGS_WAITING_MAX {
            return Err(Refusal::quota(
                "as many sayings as may wait for one agent",
                SAYINGS_WAITING_MAX,
                "wait until its turn ends, or cancel the task",
            ));
        }
        let number = task.talk.as_ref().map_or(0, |it| it.said).saturating_add(1);
        let (by, text) = (who.agent().clone(), verb.text.clone());
        let saying = Saying { number, by, at: now, text, now: verb.now, state: SayingState::Waiting };
        let event = TalkEvent::TaskSaid {
            task: verb.task.clone(),
            number,
            text: Digest::of(verb.text.as_bytes()),
            bytes: verb.text.len() as u64,
            now: verb.now,
        };
        out.append_event(EventKind::Talk(event));
        let mut task = task.with_talk(|talk| {
            talk.said = number;
            talk.sayings.push(saying);
            talk.prune();
        });
        task.updated_at = now;
        out.put(Change::PutTask(Arc::new(task)));
        Ok(SaidToTask { number, waiting: waiting + 1 })
    }

    /// Checks whether the agent of a task accepts words now.
    fn takes_words(&self, task: &Task) -> Result<(), Refusal> {
        let refused = |why: String| Err(Refusal::SessionCannot { why: why.into() });
        let worker = &task.order.worker;
        if let from @ TaskState::Awaiting { .. } = task.state {
            return Err(Refusal::TaskCannot { from });
        }
        let speaks = match self.abilities.of(task.daemon.host).filter(|_| !self.is_here(task.daemon)) {
            Some(host) => host.workers.get(worker).is_some_and(|it| it.speaks),
            None => self.settings.workers.get(worker).is_some_and(|it| it.speaks),
        };
        if task.kind != WorkerKind::Cli || !speaks || task.order.command().is_some() {
            return refused(format!(
                "nothing can be said to {worker} while it works: only agents that speak ACP hear more than their task; \
                 cancel the task, and delegate it with the new words"
            ));
        }
        if task.talk.as_ref().is_some_and(|it| it.closed) {
            let again = task_command("delegate --continue", task.id().as_str(), "\"…\"");
            return refused(format!(
                "the last turn of {worker} is over; follow up when the task has ended: {again}"
            ));
        }
        Ok(())
    }

    /// Records the session that a run is in.
    pub(super) fn note_session(&self, verb: &NoteSession, out: &mut Outbox) -> Result<SessionNoted, Refusal> {
        let task = self.tasks.get(&verb.task).ok_or(Refusal::TaskFinished)?;
        let event = TalkEvent::SessionBegun {
            task: verb.task.clone(),
            session: Digest::of(verb.session.id.as_bytes()),
            goes_on: verb.session.goes_on(),
        };
        out.append_event(EventKind::Talk(event));
        let task = task.with_talk(|talk| {
            talk.session = Some(verb.session.clone());
        });
        out.put(Change::PutTask(Arc::new(task)));
        Ok(SessionNoted)
    }

    /// Lets a run begin again, once, whose process has ended in the middle of a turn.
    pub(super) fn resume_run(
        &self,
        now: Timestamp,
        verb: &ResumeRun,
        out: &mut Outbox,
    ) -> Result<RunResumed, Refusal> {
        let task = self.tasks.get(&verb.task).ok_or(Refusal::TaskFinished)?;
        let TaskState::Running { since, .. } = task.state else {
            return Err(Refusal::TaskCannot { from: task.state });
        };
        if !task.can_be_resumed() {
            return Err(Refusal::SessionCannot { why: "its run cannot begin again in a session".into() });
        }
        out.append_event(EventKind::Talk(TalkEvent::RunResumed { task: verb.task.clone() }));
        self.drop_forms_of(&verb.task, out);
        let mut task = task.with_talk(|talk| talk.resumed += 1);
        task.state = TaskState::Running { since, lease_until: verb.until.after(RUN_GRACE) };
        task.updated_at = now;
        self.keep_needs(&task, verb.until.after(RUN_GRACE), out);
        out.put(Change::PutTask(Arc::new(task)));
        Ok(RunResumed)
    }

    /// Hands out the sayings that wait for an agent. If none waits, the agent accepts no more.
    pub(super) fn take_sayings(&self, verb: &TakeSayings, out: &mut Outbox) -> Result<SayingsTaken, Refusal> {
        let task = self.tasks.get(&verb.task).ok_or(Refusal::TaskFinished)?;
        let sayings: Vec<Saying> =
            task.talk.as_ref().map(|talk| talk.waiting().cloned().collect()).unwrap_or_default();
        if sayings.is_empty() {
            out.put(Change::PutTask(Arc::new(task.with_talk(|talk| talk.closed = true))));
        }
        Ok(SayingsTaken { sayings })
    }

    /// Records that an agent got its sayings.
    pub(super) fn note_said(
        &self,
        now: Timestamp,
        verb: &NoteSaid,
        out: &mut Outbox,
    ) -> Result<SaidNoted, Refusal> {
        let task = self.tasks.get(&verb.task).ok_or(Refusal::TaskFinished)?;
        let event = TalkEvent::SayingsDelivered { task: verb.task.clone(), through: verb.through };
        out.append_event(EventKind::Talk(event));
        let mut task = task.with_talk(|talk| {
            for it in talk.sayings.iter_mut().filter(|it| it.waits() && it.number <= verb.through) {
                it.state = SayingState::Delivered { at: now };
                let kept = it.text.floor_char_boundary(SAID_TEXT_KEPT);
                it.text = it.text[..kept].into();
            }
            talk.prune();
        });
        task.updated_at = now;
        out.put(Change::PutTask(Arc::new(task)));
        Ok(SaidNoted)
    }
}
