//! Provost's rules, as one deterministic state machine.
//!
//! Nothing here reads a clock, a file, a socket or a random source. [`Core::apply`] is given the time, the
//! caller, a command and the facts about it; it answers, and writes what must be stored, announced and done
//! into an [`Outbox`]. The same inputs give the same outputs, always. Deciding borrows the state immutably, so
//! a refusal cannot have changed anything.
#![forbid(unsafe_code)]

mod approval;
pub mod command;
mod event;
mod files;
mod hook;
mod inside;
mod judge;
mod mail;
mod outbox;
mod principal;
mod progress;
mod quota;
mod refusal;
mod screenshot;
mod session;
mod settings;
mod task;
pub mod view;

use std::sync::Arc;

use crate::base::{AgentId, ApprovalId, RuleId, TaskId, Timestamp, Ttl};

use approval::Question;
pub use approval::{Approvals, Parked, Verdict, approvers_text};
use command::{AnswerApproval, Answered, Collected, Delegated, EffectSettled, Recorded, Settled};
pub use command::{Command, Delegate, Durability, Reply, Status, Tool, Verb};
pub use event::{Change, Counters, Effect, Event, EventKind, Owed};
pub use files::{FileChange, Finding, FindingKind, Handoff, Watched, WatchedFile};
pub use hook::{Hooks, Notice};
pub use judge::{
    Approver, Credentials, Decision, Directory, Facts, Judge, Network, Rate, SecretUse, Terms, Tier,
    WorkerKind,
};
pub use mail::{Mail, MailKind, Mailboxes, Risk};
pub use outbox::Outbox;
pub use principal::{Door, Principal, Proof, Scope, Scopes};
use progress::Ending;
pub use quota::{Quota, Uses};
pub use refusal::{Failure, Refusal};
pub use screenshot::{Held, Picture, Shelf};
pub use session::{ALIVE_FOR, Agent, Agents};
pub use settings::{Settings, WorkerSetting};
use task::Repeat;
pub use task::{Report, Task, TaskNote, TaskState, Tasks};

/// How often old mail is looked for.
const SWEEP_EVERY: Ttl = Ttl::minutes(1);

/// The name under which the daemon itself appears in the log.
pub fn provost() -> AgentId {
    AgentId::parse("provost").expect("a constant that is a valid id")
}

/// The outcome of a command that was not refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer<R> {
    /// Carried out.
    Done(R),
    /// Waits for someone's word.
    Parked(ApprovalId),
    /// Policy said no, and that is on record: the task it would have made has failed, its asker has mail.
    Denied(Denial),
}

/// A "no" by policy or by the sandbox, which unlike a [`Refusal`] leaves a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The task that failed before it began.
    pub task: Option<TaskId>,
    /// The rule; `sandbox` when the working directory was the reason.
    pub rule: RuleId,
    /// Its reason, for the caller.
    pub reason: Box<str>,
    /// The same, for programs.
    pub failure: Failure,
}

/// Everything Provost knows that is not history. Memory is a fold of committed [`Change`]s.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// Known agents.
    pub agents: Agents,
    /// Unfinished tasks.
    pub tasks: Tasks,
    /// Waiting commands.
    pub approvals: Approvals,
    /// Queued messages.
    pub mail: Mailboxes,
    /// Uses of rate-limited rules.
    pub quota: Quota,
    /// Hooks that are owed.
    pub hooks: Hooks,
    /// Approved pictures that wait for their askers.
    pub shelf: Shelf,
    /// Last numbers and totals.
    pub counters: Counters,
    /// The configuration's part in it.
    pub settings: Settings,
    swept_at: Timestamp,
    /// When the first command or deadline after the last start came; signs of life were not seen before.
    awake_since: Option<Timestamp>,
}

impl State {
    /// The state before anything happened.
    pub fn new(settings: Settings) -> Self {
        Self {
            agents: Agents::default(),
            tasks: Tasks::default(),
            approvals: Approvals::default(),
            mail: Mailboxes::default(),
            quota: Quota::default(),
            hooks: Hooks::default(),
            shelf: Shelf::default(),
            counters: Counters::default(),
            settings,
            swept_at: Timestamp::default(),
            awake_since: None,
        }
    }

    /// The only place where state changes, for commands and for loading alike.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::PutTask(task) => self.tasks.put(task.clone()),
            Change::FinishTask(task) => self.tasks.remove(task.id()),
            // History is the store's.
            Change::AmendTask(_) => {}
            Change::PutAgent(agent) => self.agents.put(agent.clone()),
            Change::Beat(agent, at) => self.agents.seen(agent, *at),
            Change::DropAgent(agent) => self.agents.forget(agent),
            Change::PutMail(mail) => self.mail.put(mail.clone()),
            Change::DropMail(agent, seq) => self.mail.remove(agent, *seq),
            Change::CarryMail(agent, seq, carried) => self.mail.carry(agent, *seq, *carried),
            Change::PutApproval(parked) => self.approvals.put(parked.clone()),
            Change::DropApproval(id) => self.approvals.remove(*id),
            Change::Hold(agent, held) => self.shelf.put(agent, held.clone()),
            Change::PutUses(uses) => self.quota.put(uses),
            Change::OweHook(id, notice) => self.hooks.put(*id, notice.clone()),
            Change::DropEffect(id) => self.hooks.remove(*id),
            Change::StartEffect(_) => {}
            Change::Count(counters) => self.counters = *counters,
        }
    }

    /// When [`Core::tick`] next has something to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let sweep =
            (!self.mail.is_empty() || !self.quota.is_empty()).then(|| self.swept_at.after(SWEEP_EVERY));
        self.tasks.next_deadline().into_iter().chain(self.approvals.next_deadline()).chain(sweep).min()
    }
}

/// One command on its way in.
#[derive(Clone, PartialEq, Debug)]
pub struct Call<'a> {
    /// When.
    pub now: Timestamp,
    /// Who.
    pub who: &'a Principal,
    /// What was found out beforehand.
    pub facts: Facts,
    /// The finished task of the id that the command names, if there is one; see [`Command::names_task`].
    pub past: Option<Arc<Task>>,
}

/// The rules over the state.
pub struct Core {
    state: State,
    judge: Box<dyn Judge>,
}

impl Core {
    /// A core that continues from `state`.
    pub fn new(state: State, judge: Box<dyn Judge>) -> Self {
        Self { state, judge }
    }

    /// What it knows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Goes on from another state, after the store has been read again.
    pub fn restore(&mut self, state: State) {
        self.state = state;
    }

    /// Puts other rules in force from the next command on.
    pub fn set_judge(&mut self, judge: Box<dyn Judge>) {
        self.judge = judge;
    }

    /// Takes over another configuration from the next command on.
    pub fn set_settings(&mut self, settings: Settings) {
        self.state.settings = settings;
    }

    /// The single door: scope, then policy, then the rule.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed and `out` is as it was.
    pub fn apply(
        &mut self,
        call: Call<'_>,
        command: Command,
        out: &mut Outbox,
    ) -> Result<Answer<Reply>, Refusal> {
        self.state.awake_since.get_or_insert(call.now);
        let durability = command.durability();
        out.begin(self.state.counters, call.now, call.who.agent().clone());
        match decide(&self.state, &*self.judge, call, command, out) {
            Ok(answer) => {
                let durability = if out.wrote() { durability.max(Durability::Commit) } else { durability };
                out.finish(durability).iter().for_each(|change| self.state.apply(change));
                Ok(answer)
            }
            Err(refusal) => {
                out.undo();
                Err(refusal)
            }
        }
    }

    /// Ends what has run out. The engine calls this when [`State::next_deadline`] has come.
    pub fn tick(&mut self, now: Timestamp, out: &mut Outbox) {
        self.state.awake_since.get_or_insert(now);
        for parked in self.state.approvals.due(now) {
            self.by_itself(now, out, |state, out| {
                out.say(EventKind::ApprovalExpired { approval: parked.id });
                state.drop_approval(parked.id, out);
                let failure = Failure::ApprovalTimeout { approval: parked.id, tool: parked.tool() };
                state.give_up_parked(now, &parked, "Approval timed out", failure, out);
            });
        }
        for task in self.state.tasks.due(now) {
            self.by_itself(now, out, |state, out| state.overdue(now, &task, out));
        }
        if self.state.swept_at.after(SWEEP_EVERY) <= now {
            self.by_itself(now, out, |state, out| {
                state.mail.expire(now, state.settings.mail_keep, out);
                state.quota.expire(now, out);
            });
            self.state.swept_at = now;
        }
    }

    /// One step of the daemon's own. Each sees what the one before has done, queues that have filled up included.
    fn by_itself(&mut self, now: Timestamp, out: &mut Outbox, step: impl FnOnce(&State, &mut Outbox)) {
        out.begin(self.state.counters, now, provost());
        step(&self.state, out);
        out.finish(Durability::Commit).iter().for_each(|change| self.state.apply(change));
    }
}

fn decide(
    state: &State,
    judge: &dyn Judge,
    mut call: Call<'_>,
    command: Command,
    out: &mut Outbox,
) -> Result<Answer<Reply>, Refusal> {
    if !call.who.may(command.scope()) {
        return Err(Refusal::OutOfScope { needs: command.scope() });
    }
    if call.who.door() == Door::Devit && !matches!(command, Command::Register(_)) {
        state.agents.admit(call.who.agent(), &state.settings)?;
    }
    // A person at the terminal is the root of approval authority; policy has a say over agents that approve.
    let judged = command.judged() && !(matches!(command, Command::AnswerApproval(_)) && call.who.is_person());
    if !judged {
        return dispatch(state, judge, &call, &command, out).map(Answer::Done);
    }
    if let Some(answer) = state.before_policy(&mut call, &command, out)? {
        return Ok(answer);
    }
    match judge.decide(call.who, &command, &call.facts) {
        Decision::Allow { rule, terms } => {
            if let Some(reason) = state.over_limits(call.now, call.who.agent(), &rule, &terms, out) {
                return Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)));
            }
            allowed(state, judge, &call, &command, rule, terms, out).map(Answer::Done)
        }
        Decision::Deny { rule, reason } => {
            Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)))
        }
        // An answer that waited for an answer would never end.
        Decision::NeedApproval { rule, reason, .. } if matches!(command, Command::AnswerApproval(_)) => {
            Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)))
        }
        Decision::NeedApproval { rule, reason, terms, wait, by } => {
            if let Some(reason) = state.over_limits(call.now, call.who.agent(), &rule, &terms, out) {
                return Ok(Answer::Denied(state.deny(&call, &command, rule, reason, judge, out)));
            }
            state.tasks.room_for(call.who.agent(), &state.settings)?;
            let expires_at = call.now.after(wait.min(state.settings.approval_wait_max));
            let question = Question { rule, reason, terms, expires_at, by, policy: judge.version() };
            state.park(call.now, call.who, command, call.facts, question, out).map(Answer::Parked)
        }
    }
}

/// Runs a judged command that policy has let through, under the terms policy gave it.
fn allowed(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    command: &Command,
    rule: RuleId,
    terms: Terms,
    out: &mut Outbox,
) -> Result<Reply, Refusal> {
    match command {
        Command::Delegate(verb) => {
            let task = state.tasks.draft(call.now, call.who, verb, &call.facts, rule, terms);
            start(state, judge, call.now, task, out).map(Reply::Delegated)
        }
        Command::TakeScreenshot(verb) => {
            let task = state.draft_capture(call.now, call.who, verb, rule, terms);
            state.order_capture(call.now, call.who, task, judge.version(), out).map(Reply::Captured)
        }
        _ => dispatch(state, judge, call, command, out),
    }
}

fn start(
    state: &State,
    judge: &dyn Judge,
    now: Timestamp,
    task: Task,
    out: &mut Outbox,
) -> Result<Delegated, Refusal> {
    state.tasks.dispatch(now, task, &state.settings, judge.version(), &state.mail, out)
}

/// Runs a command that needs no more permission.
fn dispatch(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    command: &Command,
    out: &mut Outbox,
) -> Result<Reply, Refusal> {
    let (now, who, past) = (call.now, call.who, call.past.as_ref());
    match command {
        Command::Register(it) => {
            for task in state.mail.clear_recurring(now, who.agent(), &state.agents, out) {
                state.not_collected(now, &task, out);
            }
            state.agents.register(now, who, it, &state.settings, out).map(Reply::Registered)
        }
        Command::CollectMail(it) => {
            let mail = state.mail.collect(now, who, it, &state.agents, out);
            let waiting = state.tasks.asked_by(who.agent()) > 0;
            Ok(Reply::Collected(Collected { mail, waiting }))
        }
        Command::SettleMail(it) => {
            let arrived = state.mail.settle(who, it, out)?;
            if let Some(MailKind::Work { task, .. }) = arrived.as_ref().map(|mail| &mail.kind) {
                state.assigned(now, task, out);
            }
            Ok(Reply::Settled(Settled))
        }
        Command::Delegate(it) => Err(Refusal::WorkerBroken {
            worker: it.worker.clone(),
            why: "a delegation is only carried out after policy was asked".into(),
        }),
        Command::ReportTask(it) => state.report(now, who, it, past, out).map(Reply::Reported),
        Command::AckTask(it) => state.ack(who, it, past, out).map(Reply::Acked),
        Command::CancelTask(it) => state.cancel(now, who, it, past, out).map(Reply::Cancelled),
        Command::AnswerApproval(it) => answer(state, judge, call, it, out).map(Reply::Answered),
        Command::TakeScreenshot(_) => Err(Refusal::busy("a picture is only taken after policy was asked")),
        Command::BeginCapture(it) => state.begin_capture(now, judge, it, out).map(Reply::CaptureBegun),
        Command::EndCapture(it) => Ok(Reply::CaptureEnded(state.end_capture(now, it, out))),
        Command::BeginRun(it) => state.begin_run(now, it, out).map(Reply::Begun),
        Command::NoteFiles(it) => state.note_files(now, it, past, out).map(Reply::FilesNoted),
        Command::EndRun(it) => Ok(Reply::Ended(state.end_run(now, it, out))),
        Command::SettleEffect(it) => {
            out.put(Change::DropEffect(it.effect));
            Ok(Reply::EffectSettled(EffectSettled))
        }
        Command::Record(it) => {
            let (what, subject, details) = (it.what.clone(), it.subject.clone(), it.details.clone());
            out.say(EventKind::Recorded { what, subject, details });
            Ok(Reply::Recorded(Recorded))
        }
    }
}

/// Carries out what an approver decided. A granted command takes the path of an allowed one.
fn answer(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    verb: &AnswerApproval,
    out: &mut Outbox,
) -> Result<Answered, Refusal> {
    let parked = state.answered(call.now, call.who, verb, out)?;
    let task = parked.task().cloned();
    if verb.verdict == Verdict::Denied {
        let failure = Failure::ApprovalDenied {
            approval: parked.id,
            approver: call.who.agent().clone(),
            note: verb.note.clone(),
            tool: parked.tool(),
        };
        let why = verb.note.as_deref().unwrap_or_default();
        state.give_up_parked(call.now, &parked, why, failure, out);
        return Ok(Answered { task, failed: None });
    }
    let failed = grant(state, judge, call, &parked, out).err();
    if let Some((why, failure)) = &failed {
        out.say(EventKind::GrantFailed { approval: parked.id, why: why.clone() });
        state.give_up_parked(call.now, &parked, why, failure.clone(), out);
    }
    Ok(Answered { task, failed: failed.map(|(why, _)| why) })
}

/// The grant is checked once more: rules may have become stricter since the question was asked, and the worker
/// may have become another one.
fn grant(
    state: &State,
    judge: &dyn Judge,
    call: &Call<'_>,
    parked: &Parked,
    out: &mut Outbox,
) -> Result<(), (Box<str>, Failure)> {
    let denied = |rule: &RuleId, reason: Box<str>| {
        let failure =
            Failure::PolicyDenied { rule: rule.clone(), reason: reason.clone(), tool: parked.tool() };
        (reason, failure)
    };
    let refused = |refusal: Refusal| denied(&parked.rule, refusal.to_string().into());
    let waiting = parked.task().and_then(|task| state.tasks.get(task));
    let mut task = Task::clone(waiting.ok_or_else(|| refused(Refusal::TaskNotFound))?);
    let facts = match task.capture {
        true => parked.facts.clone(),
        false => state.settings.facts_of(&task.order.worker, parked.facts.clone()).map_err(refused)?,
    };
    if facts != parked.facts {
        return Err(refused(Refusal::ApprovalChanged));
    }
    match judge.decide(&parked.who, &parked.command, &Facts { now: call.now, ..facts }) {
        Decision::Deny { rule, reason } => return Err(denied(&rule, reason)),
        Decision::NeedApproval { rule, by, .. } if !by.iter().any(|by| by.admits(call.who)) => {
            return Err(refused(Refusal::ApprovalNotYours { rule }));
        }
        Decision::NeedApproval { terms, .. } | Decision::Allow { terms, .. } => {
            task.terms = task.terms.within(&terms);
        }
    }
    let mark = out.mark();
    let started = match task.capture {
        true => state.grant_capture(call.now, parked, task, judge.version(), out),
        false => start(state, judge, call.now, task, out).map(|_| ()),
    };
    started.map_err(|refusal| {
        out.rewind(mark);
        refused(refusal)
    })
}

impl State {
    /// What is settled before policy is asked: repeats, switched-off capabilities, broken workers, and a
    /// working directory outside the workspace. Completes the facts on the way.
    fn before_policy(
        &self,
        call: &mut Call<'_>,
        command: &Command,
        out: &mut Outbox,
    ) -> Result<Option<Answer<Reply>>, Refusal> {
        call.facts.now = call.now;
        let verb = match command {
            Command::Delegate(verb) => verb,
            Command::TakeScreenshot(verb) => return self.before_screenshot(call, verb, out),
            _ => return Ok(None),
        };
        if let Repeat::Same(task) = self.tasks.repeat(call.who, verb, call.past.as_ref())? {
            return Ok(Some(same_answer(&task)));
        }
        call.facts = self.settings.facts_of(&verb.worker, std::mem::take(&mut call.facts))?;
        call.facts.running = self.tasks.asked_by(call.who.agent());
        call.facts.depth = self.tasks.depth_below(call.who.agent());
        let Some(why) = call.facts.directory_refused.clone() else { return Ok(None) };
        let failure = Failure::Sandbox { why: why.clone() };
        let rule = RuleId::parse("sandbox").expect("a constant that is a valid id");
        Ok(Some(Answer::Denied(self.record_denial(call, command, rule, why, failure, out))))
    }

    /// Rate and concurrency limits that came with the permission.
    fn over_limits(
        &self,
        now: Timestamp,
        agent: &AgentId,
        rule: &RuleId,
        terms: &Terms,
        out: &mut Outbox,
    ) -> Option<Box<str>> {
        if let Some(most) = terms.concurrent
            && self.tasks.running_under(agent, rule) >= most
        {
            return Some(
                format!("{most} tasks of {agent} are unfinished, which is as many as rule {rule} allows")
                    .into(),
            );
        }
        let seconds = self.quota.spend(now, rule, agent, terms.rate?, out).err()?;
        Some(format!("rule {rule} has been used as often as it allows; again in {seconds}s").into())
    }

    fn deny(
        &self,
        call: &Call<'_>,
        command: &Command,
        rule: RuleId,
        reason: Box<str>,
        judge: &dyn Judge,
        out: &mut Outbox,
    ) -> Denial {
        let tool: Box<str> = match command {
            Command::Delegate(verb) => verb.tool.name.clone(),
            other => other.name().into(),
        };
        out.say(EventKind::Denied {
            verb: command.name().into(),
            task: command.names_task().cloned(),
            tool: Some(tool.clone()),
            rule: rule.clone(),
            reason: reason.clone(),
            policy: judge.version(),
        });
        let failure = Failure::PolicyDenied { rule: rule.clone(), reason: reason.clone(), tool };
        self.record_denial(call, command, rule, reason, failure, out)
    }

    fn record_denial(
        &self,
        call: &Call<'_>,
        command: &Command,
        rule: RuleId,
        reason: Box<str>,
        failure: Failure,
        out: &mut Outbox,
    ) -> Denial {
        if let Command::Delegate(verb) = command {
            let task =
                self.tasks.draft(call.now, call.who, verb, &call.facts, rule.clone(), Terms::default());
            let summary = match &failure {
                Failure::Sandbox { why } => format!("Task refused: {why}"),
                _ => format!("Task denied by policy (tool: {})", verb.tool.name),
            };
            self.finish(call.now, &task, Ending::failed(summary, failure.clone()), out);
        }
        Denial { task: command.names_task().cloned(), rule, reason, failure }
    }

    /// A parked command will not be carried out: its task fails, its asker is told.
    fn give_up_parked(&self, now: Timestamp, parked: &Parked, why: &str, failure: Failure, out: &mut Outbox) {
        let Some(task) = parked.task().and_then(|task| self.tasks.get(task)) else { return };
        let summary = match (&failure, why) {
            (Failure::ApprovalDenied { .. }, "") => {
                format!("Approval denied for task {} (tool: {})", task.id(), parked.tool())
            }
            (Failure::ApprovalDenied { .. }, note) => {
                format!("Approval denied for task {}: {note}", task.id())
            }
            (_, why) => format!("{why} for task {} (tool: {})", task.id(), parked.tool()),
        };
        self.finish(now, task, Ending::failed(summary, failure), out);
    }
}

/// A repeated request gets the answer that the first one got.
fn same_answer(task: &Task) -> Answer<Reply> {
    match (&task.state, &task.failure) {
        (TaskState::Awaiting { approval }, _) => Answer::Parked(*approval),
        (
            TaskState::Finished { .. },
            Some(failure @ (Failure::PolicyDenied { .. } | Failure::Sandbox { .. })),
        ) => {
            let reason = match failure {
                Failure::PolicyDenied { reason, .. } => reason.clone(),
                Failure::Sandbox { why } => why.clone(),
                _ => Box::default(),
            };
            let (task, rule, failure) = (Some(task.id().clone()), task.rule.clone(), failure.clone());
            Answer::Denied(Denial { task, rule, reason, failure })
        }
        (state, _) => Answer::Done(Reply::Delegated(Delegated { task: task.id().clone(), state: *state })),
    }
}
