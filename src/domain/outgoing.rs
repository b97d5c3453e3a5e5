//! Notices to addresses elsewhere: which events of a command are reported, to which address, and in which words.
//!
//! ```text
//!   event --> [owed], in the commit of its event --delivered--> gone
//!                |  \--- three days over, or the address is gone for good: given up, which the journal tells
//!                +------ too many are owed to the address: the oldest gives way, which the journal tells, too
//! ```
//! A notice has facts, which the daemon knows, and words, which agents wrote. Only notices to addresses that want
//! words keep them. `effects` sends the notices; no answer to one changes anything here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Change, Command, Effect, Event, EventKind, Failure, Outbox, Parked, Risk, State, Status, Task, Verdict,
    approvers_text,
};
use provost_base::limits::{NOTICE_FACT_BYTES_MAX, NOTICE_WORDS_BYTES_MAX, NOTICES_OWED_MAX};
use provost_base::{
    AgentId, ApprovalId, Digest, EffectId, EventSeq, Json, RuleId, TaskId, Timestamp, clipped, visible,
};

/// The kind of occurrence that a notice reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A question to a person, asked or asked again.
    Approval,
    /// A question about a tool of an agent's host, which waits for seconds only.
    Permission,
    /// A question that no longer waits.
    Answered,
    /// A task that has failed.
    Failed,
    /// A task that is completed.
    Done,
    /// A run that has left a file that runs later.
    Tainted,
    /// A passkey, or a browser that gets notices, was added or removed.
    Passkey,
}

impl NoticeKind {
    /// Returns the word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Approval => "approval",
            NoticeKind::Permission => "permission",
            NoticeKind::Answered => "answered",
            NoticeKind::Failed => "failed",
            NoticeKind::Done => "done",
            NoticeKind::Tainted => "tainted",
            NoticeKind::Passkey => "passkey",
        }
    }

    /// Checks whether other kinds give way to this one when too many notices are owed to an address.
    fn is_urgent(self) -> bool {
        matches!(self, NoticeKind::Approval | NoticeKind::Permission | NoticeKind::Passkey)
    }
}

/// An address of the configuration, with the members that rules need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoticeTarget {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// The kinds of notices that it gets.
    pub kinds: Vec<NoticeKind>,
    /// Whether it also gets the words of agents.
    pub words: bool,
}

/// A notice to one address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutgoingNotice {
    /// The name of the address in the configuration.
    pub to: Box<str>,
    /// The kind of occurrence that it reports.
    pub kind: NoticeKind,
    /// The event that it reports.
    pub event: EventSeq,
    /// When the event happened.
    pub at: Timestamp,
    /// The facts that the daemon knows.
    pub about: NoticeAbout,
    /// The words of agents; empty if the address gets facts only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<NoticeWords>,
    /// The earliest time to send it, if a person has put it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

/// A text that an agent wrote, with its hidden characters made visible and its length bounded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoticeWords {
    /// The kind of text: `goal`, `request`, `report`, `files`.
    pub what: Box<str>,
    /// The text.
    pub text: Box<str>,
}

/// The subject of a notice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeAbout {
    /// A question to approvers.
    Approval(Box<ApprovalFacts>),
    /// A task.
    Task(Box<TaskFacts>),
    /// A passkey, or a browser that a passkey has signed for.
    Passkey {
        /// `added`, `revoked` or `reset`; `browser_added` or `browser_removed`.
        what: Box<str>,
        /// Its name for people; `None` if all passkeys were given up.
        name: Option<Box<str>>,
    },
    /// A sample without an occurrence: a person tries the address.
    Sample,
}

/// The facts that the daemon knows of a question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApprovalFacts {
    /// The number of the approval, which an answer names.
    pub approval: ApprovalId,
    /// The digest of what is shown to the approver.
    pub shown: Digest,
    /// The agent that asks.
    pub asker: AgentId,
    /// The name of the verb, as in the table of verbs.
    pub verb: Box<str>,
    /// The tool that policy was asked about.
    pub tool: Box<str>,
    /// The task that the command would make.
    pub task: Option<TaskId>,
    /// The worker that would do it.
    pub worker: Option<AgentId>,
    /// The rule that asks.
    pub rule: RuleId,
    /// The rule's reason.
    pub reason: Box<str>,
    /// The risk of the command.
    pub risk: Risk,
    /// The kinds of approvers that the rule accepts, in words.
    pub by: Box<str>,
    /// The directory where the worker would work, relative to the workspace.
    pub directory: Option<Box<str>>,
    /// When it was first asked.
    pub asked_at: Timestamp,
    /// When its time is over.
    pub expires_at: Timestamp,
    /// The number of times that it has been asked again so far.
    pub asked_again: u32,
    /// The number of times that it will still be asked again.
    pub asks_left: u32,
    /// The outcome: `granted`, `denied`, `expired`, `withdrawn`; `None` while the question waits.
    pub outcome: Option<Box<str>>,
    /// The agent that has answered, if any.
    pub answered_by: Option<AgentId>,
    /// The proof of that agent.
    pub proof: Option<Box<str>>,
}

/// The facts that the daemon knows of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskFacts {
    /// The id of the task.
    pub task: TaskId,
    /// The worker that has done it.
    pub worker: AgentId,
    /// The agent that has asked for it.
    pub asker: AgentId,
    /// The task's status, in a word.
    pub status: Box<str>,
    /// The reason for the failure, in a word, if the daemon gives one.
    pub failure: Option<Box<str>>,
    /// The number of files of its run that run later.
    pub later: Option<u32>,
    /// Whether the comparison of its files is incomplete.
    pub unknown: bool,
}

/// Notices that are owed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outgoing {
    owed: BTreeMap<EffectId, Arc<OutgoingNotice>>,
    by_address: BTreeMap<Box<str>, BTreeMap<EffectId, NoticeKind>>,
}

impl Outgoing {
    /// Returns the notice of this effect; `None` if it is not owed any more.
    pub fn get(&self, id: EffectId) -> Option<&Arc<OutgoingNotice>> {
        self.owed.get(&id)
    }

    /// Returns how many notices are owed.
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// Checks whether no notice is owed.
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// Checks whether an address is owed a notice of a question that was put off.
    pub(super) fn is_put_off(&self, to: &str, approval: ApprovalId) -> bool {
        self.owed_to(to).iter().filter_map(|id| self.owed.get(id)).any(|notice| {
            let is_it =
                |about: &NoticeAbout| matches!(about, NoticeAbout::Approval(it) if it.approval == approval);
            notice.not_before.is_some() && is_it(&notice.about)
        })
    }

    /// Returns the effects of the notices that an address is owed.
    pub(super) fn owed_to(&self, to: &str) -> Vec<EffectId> {
        self.by_address.get(to).map(|owed| owed.keys().copied().collect()).unwrap_or_default()
    }

    /// Returns each address with owed notices: its name, their number, and when the oldest was made.
    pub fn by_address(&self) -> impl Iterator<Item = (&str, usize, Timestamp)> {
        self.by_address.iter().filter_map(|(to, owed)| {
            let (first, _) = owed.first_key_value()?;
            Some((&**to, owed.len(), self.owed.get(first)?.at))
        })
    }

    pub(super) fn put(&mut self, id: EffectId, notice: Arc<OutgoingNotice>) {
        self.by_address.entry(notice.to.clone()).or_default().insert(id, notice.kind);
        self.owed.insert(id, notice);
    }

    pub(super) fn remove(&mut self, id: EffectId) {
        let Some(notice) = self.owed.remove(&id) else { return };
        if let Some(owed) = self.by_address.get_mut(&notice.to) {
            owed.remove(&id);
            if owed.is_empty() {
                self.by_address.remove(&notice.to);
            }
        }
    }

    /// Gives up notices of an address until `more` others fit: those that are not urgent first, the oldest of each kind first.
    fn make_room(&self, to: &str, more: usize, out: &mut Outbox) {
        let Some(owed) = self.by_address.get(to) else { return };
        let over = (owed.len() + more).saturating_sub(NOTICES_OWED_MAX);
        let of = |urgent: bool| owed.iter().filter(move |(_, kind)| kind.is_urgent() == urgent);
        for (id, kind) in of(false).chain(of(true)).take(over) {
            out.put(Change::DropEffect(*id));
            let details = json!({ "effect": id, "kind": kind, "why": "too many are owed to this address" });
            out.append_event(EventKind::Recorded {
                what: GIVEN_UP.into(),
                subject: to.into(),
                details: Json::from_value(&details),
            });
        }
    }
}

/// The entry of the journal about a notice that will not be sent.
const GIVEN_UP: &str = "notice.given_up";

/// A notice for any address, made from an event.
struct News {
    kind: NoticeKind,
    event: EventSeq,
    at: Timestamp,
    about: NoticeAbout,
    words: Vec<NoticeWords>,
}

impl State {
    /// Owes each address the notices of the current command's events. This is the last step of every command, so
    /// that no rule has to do it.
    pub(super) fn owe_notices(&self, now: Timestamp, out: &mut Outbox) {
        if self.settings.notices.is_empty() && self.push.is_empty() {
            return;
        }
        let news = self.news(now, out);
        let browsers = self.push.targets(&self.settings.push, out.news().1);
        for target in self.settings.notices.iter().chain(&browsers) {
            let wanted: Vec<&News> = news.iter().filter(|it| it.is_for(target)).collect();
            self.outgoing.make_room(&target.name, wanted.len(), out);
            for it in wanted {
                let notice = Arc::new(OutgoingNotice {
                    to: target.name.clone(),
                    kind: it.kind,
                    event: it.event,
                    at: it.at,
                    about: it.about.clone(),
                    words: if target.words { it.words.clone() } else { Vec::new() },
                    not_before: None,
                });
                let id = out.owe(Effect::SendNotice { notice: notice.clone() });
                out.put(Change::OweNotice(id, notice));
            }
        }
    }

    fn news(&self, now: Timestamp, out: &Outbox) -> Vec<News> {
        let (events, changes) = out.news();
        let mut news: Vec<News> = events.iter().filter_map(|event| self.news_of(event, changes)).collect();
        let last = events.last().map(|it| it.seq).unwrap_or_default();
        news.extend(self.settled_questions(now, last, events, changes));
        news
    }

    fn news_of(&self, event: &Event, changes: &[Change]) -> Option<News> {
        let task = |id: &TaskId| task_in(changes, id).or_else(|| self.tasks.get(id));
        let (kind, about, words) = match &event.kind {
            EventKind::ApprovalAsked { approval, .. } | EventKind::ApprovalAskedAgain { approval, .. } => {
                let parked = changes.iter().find_map(|it| match it {
                    Change::PutApproval(parked) if parked.id == *approval => Some(parked),
                    _ => None,
                })?;
                (kind_of(parked), NoticeAbout::Approval(Box::new(facts_of(parked))), words_of(parked))
            }
            EventKind::TaskFinished { task: id, status, failure, .. } => {
                let kind = match status {
                    Status::Failed if !failure.as_ref().is_some_and(Failure::is_denial) => NoticeKind::Failed,
                    Status::Completed => NoticeKind::Done,
                    _ => return None,
                };
                let task = task(id)?;
                let failure = failure.as_ref().map(|it| it.reason().into());
                let facts = TaskFacts { failure, ..task_facts(task, status.as_str()) };
                let report = task.notes.last().map(|it| words("report", &it.report.summary));
                let words = [words("goal", &task.order.goal)].into_iter().chain(report).collect();
                (kind, NoticeAbout::Task(Box::new(facts)), words)
            }
            EventKind::TaskTainted { task: id, findings, more, unknown } => {
                let task = task(id)?;
                let later = u32::try_from(findings.len()).unwrap_or(u32::MAX).saturating_add(*more);
                let facts = TaskFacts {
                    later: Some(later),
                    unknown: unknown.is_some(),
                    ..task_facts(task, task.state.status().as_str())
                };
                let files: Vec<&str> = findings.iter().map(|it| &*it.path).collect();
                let words = vec![words("goal", &task.order.goal), words("files", &files.join("\n"))];
                (NoticeKind::Tainted, NoticeAbout::Task(Box::new(facts)), words)
            }
            EventKind::PasskeyAdded { passkey, .. } => of_passkey("added", Some(&passkey.name)),
            EventKind::PasskeyRevoked { name, .. } => of_passkey("revoked", Some(name)),
            EventKind::PasskeysReset { .. } => of_passkey("reset", None),
            EventKind::PushAdded { name, .. } => of_passkey("browser_added", Some(name)),
            EventKind::PushRemoved { name, .. } => of_passkey("browser_removed", Some(name)),
            _ => return None,
        };
        Some(News { kind, event: event.seq, at: event.at, about, words })
    }

    /// Returns the questions that no longer wait: answered, expired or withdrawn ones.
    fn settled_questions<'a>(
        &'a self,
        now: Timestamp,
        last: EventSeq,
        events: &'a [Event],
        changes: &'a [Change],
    ) -> impl Iterator<Item = News> + 'a {
        let goes_on = |id: ApprovalId| {
            changes.iter().any(|it| matches!(it, Change::PutApproval(parked) if parked.id == id))
        };
        let dropped = changes.iter().filter_map(move |it| match it {
            Change::DropApproval(id) if !goes_on(*id) => self.approvals.get(*id),
            _ => None,
        });
        dropped.map(move |parked| {
            let end = events.iter().find_map(|event| end_in(event, parked.id));
            let taken_back = End { event: last, outcome: "withdrawn", by: None, proof: None };
            let End { event, outcome, by, proof } = end.unwrap_or(taken_back);
            let facts =
                ApprovalFacts { outcome: Some(outcome.into()), answered_by: by, proof, ..facts_of(parked) };
            let about = NoticeAbout::Approval(Box::new(facts));
            News { kind: NoticeKind::Answered, event, at: now, about, words: words_of(parked) }
        })
    }
}

impl News {
    fn is_for(&self, target: &NoticeTarget) -> bool {
        let wants = |kind| target.kinds.contains(&kind);
        match (&self.about, self.kind) {
            // An address that gets no questions about tools of hosts gets no answers to them either.
            (NoticeAbout::Approval(it), NoticeKind::Answered) if it.verb.as_ref() == PERMISSION => {
                wants(NoticeKind::Answered) && wants(NoticeKind::Permission)
            }
            (_, kind) => wants(kind),
        }
    }
}

/// The verb of a question about a tool of an agent's host.
const PERMISSION: &str = "AskPermission";

pub(super) fn kind_of(parked: &Parked) -> NoticeKind {
    match parked.command {
        Command::AskPermission(_) => NoticeKind::Permission,
        _ => NoticeKind::Approval,
    }
}

/// The end of a question.
struct End {
    event: EventSeq,
    outcome: &'static str,
    by: Option<AgentId>,
    proof: Option<Box<str>>,
}

/// Returns the end that an event brings to a question, if it does.
fn end_in(event: &Event, id: ApprovalId) -> Option<End> {
    match &event.kind {
        EventKind::ApprovalAnswered { approval, verdict, proof, .. } if *approval == id => {
            let outcome = if *verdict == Verdict::Granted { "granted" } else { "denied" };
            let (by, proof) = (Some(event.actor.clone()), Some(proof.clone()));
            Some(End { event: event.seq, outcome, by, proof })
        }
        EventKind::ApprovalExpired { approval } if *approval == id => {
            Some(End { event: event.seq, outcome: "expired", by: None, proof: None })
        }
        _ => None,
    }
}

pub(super) fn facts_of(parked: &Parked) -> ApprovalFacts {
    let worker = match &parked.command {
        Command::Delegate(order) => Some(order.worker.clone()),
        _ => None,
    };
    let again = parked.again;
    ApprovalFacts {
        approval: parked.id,
        shown: parked.shown,
        asker: parked.who.agent().clone(),
        verb: parked.command.name().into(),
        tool: fact(&parked.tool()),
        task: parked.task().cloned(),
        worker,
        rule: parked.rule.clone(),
        reason: fact(&parked.reason),
        risk: parked.risk,
        by: fact(&approvers_text(&parked.by)),
        directory: parked.facts.directory.as_ref().map(|it| fact(it.relative.as_str())),
        asked_at: parked.asked_at,
        expires_at: parked.expires_at,
        asked_again: again.map_or(0, |it| it.asked),
        asks_left: parked.asks_left(),
        outcome: None,
        answered_by: None,
        proof: None,
    }
}

/// Returns the words of the asker: the goal of a delegation, or the request as an approver is shown it.
fn words_of(parked: &Parked) -> Vec<NoticeWords> {
    match &parked.command {
        Command::Delegate(order) => vec![words("goal", &order.goal)],
        _ => vec![words("request", &parked.details().value().to_string())],
    }
}

fn task_in<'a>(changes: &'a [Change], id: &TaskId) -> Option<&'a Arc<Task>> {
    changes.iter().rev().find_map(|it| match it {
        Change::PutTask(task) | Change::FinishTask(task) | Change::AmendTask(task) if task.id() == id => {
            Some(task)
        }
        _ => None,
    })
}

fn task_facts(task: &Task, status: &str) -> TaskFacts {
    TaskFacts {
        task: task.id().clone(),
        worker: task.order.worker.clone(),
        asker: task.asked_by.clone(),
        status: status.into(),
        failure: None,
        later: None,
        unknown: false,
    }
}

fn of_passkey(what: &str, name: Option<&str>) -> (NoticeKind, NoticeAbout, Vec<NoticeWords>) {
    let about = NoticeAbout::Passkey { what: what.into(), name: name.map(fact) };
    (NoticeKind::Passkey, about, Vec::new())
}

fn fact(text: &str) -> Box<str> {
    clipped(&visible(text), NOTICE_FACT_BYTES_MAX).into()
}

fn words(what: &str, text: &str) -> NoticeWords {
    // The part that is cut off need not be made visible first.
    let beginning = clipped(text, 2 * NOTICE_WORDS_BYTES_MAX);
    NoticeWords { what: what.into(), text: clipped(&visible(&beginning), NOTICE_WORDS_BYTES_MAX).into() }
}
