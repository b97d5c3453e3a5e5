//! The life of a task as spans, made from its events.
//!
//! ```text
//!   task     |-------------------------------------------------|
//!   ask      |------------|                                      from the question to the acceptance
//!   judge    |                                                   what the rules said, at once
//!   approve  |------------|                                      where a person was asked
//!   queue                 |------|                               until its worker began
//!   run                          |-----------------------------|
//!   apply                                                             |---|   each writing of its changes
//! ```
//! A task's spans are returned when it ends, those of applies when these end. A restarted daemon knows no earlier
//! events: if a task goes on over a restart, its spans begin with its first event after that.

use std::collections::BTreeMap;

use prost::Message as _;

use crate::ids::Traced;
use crate::messages::{
    DONE, FAILED, INTERNAL, KeyValue, ResourceSpans, ScopeSpans, SpanMessage, SpanStatus, TraceRequest,
    resource, scope, text, whole,
};
use provost_base::{ApplyId, ApprovalId, Digest, TaskId, Timestamp, TraceContext};
use provost_domain::command::Status;
use provost_domain::{ApplyEvent, Event, EventKind, QueueEvent, Verdict};

/// The most tasks that are followed at a time; beyond that, the oldest is forgotten.
const FOLLOWED_MAX: usize = 20_000;

/// An attribute of a span, with a name of Provost's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Attribute {
    /// A word.
    Word(&'static str, String),
    /// A number.
    Number(&'static str, i64),
}

/// A span that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The name of its work.
    pub name: &'static str,
    /// The trace, the span, and its parent, if any.
    pub ids: ([u8; 16], [u8; 8], Option<[u8; 8]>),
    /// When it began and ended.
    pub times: (Timestamp, Timestamp),
    /// Whether its work was done; `None` if that is not known.
    pub done: Option<bool>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
}

/// The known events of a task.
#[derive(Default)]
struct TaskTimes {
    first: Timestamp,
    asked: Option<(ApprovalId, Timestamp)>,
    answered: Option<(Timestamp, &'static str)>,
    accepted: Option<Timestamp>,
    began: Option<Timestamp>,
    worker: Option<String>,
    /// How many of its attempts have failed before the last one.
    failed: u32,
    /// Whether it was there at the daemon's start: how it was judged was not heard.
    is_earlier: bool,
}

/// The unfinished tasks, according to their events.
pub struct Traces {
    repository: Digest,
    tasks: BTreeMap<TaskId, TaskTimes>,
    approvals: BTreeMap<ApprovalId, TaskId>,
    applies: BTreeMap<ApplyId, (Timestamp, Option<TaskId>)>,
    /// The traces within which tasks were asked for, with the places of their requests, also of tasks that are over: their changes may be applied.
    within: BTreeMap<TaskId, (u64, TraceContext)>,
    /// The same by place. Of too many, the one that was asked for first is forgotten.
    places: BTreeMap<u64, TaskId>,
}

impl Traces {
    /// Makes the traces of tasks in the repository with this digest.
    pub fn of(repository: Digest) -> Self {
        let (approvals, applies, within) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { repository, tasks: BTreeMap::new(), approvals, applies, within, places: BTreeMap::new() }
    }

    /// Remembers the trace of a task's request.
    pub fn keep(&mut self, task: TaskId, trace: TraceContext) {
        let place = self.places.last_key_value().map_or(0, |(place, _)| place.saturating_add(1));
        if let Some((earlier, _)) = self.within.insert(task.clone(), (place, trace)) {
            self.places.remove(&earlier);
        }
        self.places.insert(place, task);
        if self.places.len() > FOLLOWED_MAX
            && let Some((_, oldest)) = self.places.pop_first()
        {
            self.within.remove(&oldest);
        }
    }

    /// Takes in a task that was there at the daemon's start, with the approval that it waits for. What it went through before has no spans.
    pub fn was_there(&mut self, task: &TaskId, at: Timestamp, waits_for: Option<ApprovalId>) {
        waits_for.iter().for_each(|it| drop(self.approvals.insert(*it, task.clone())));
        let heard = self.heard(task, at);
        heard.is_earlier = true;
        heard.asked = waits_for.map(|it| (it, at));
    }

    fn trace_of(&self, task: &TaskId) -> Option<TraceContext> {
        self.within.get(task).map(|it| it.1)
    }

    /// Returns whether the acceptance of a task was heard, which tells its trace.
    pub fn was_accepted(&self, task: &TaskId) -> bool {
        self.tasks.get(task).is_some_and(|it| it.accepted.is_some())
    }

    /// Begins the span of an apply, of this task's changes if the task is known.
    pub fn begin_apply(&mut self, apply: ApplyId, at: Timestamp, task: Option<TaskId>) {
        if self.applies.len() < FOLLOWED_MAX {
            self.applies.insert(apply, (at, task));
        }
    }

    /// Processes an event; returns the spans that end with it.
    pub fn follow(&mut self, event: &Event) -> Vec<Span> {
        let at = event.at;
        match &event.kind {
            EventKind::ApprovalAsked { approval, task: Some(task), .. } => {
                self.approvals.insert(*approval, task.clone());
                let heard = self.heard(task, at);
                heard.is_earlier = false;
                heard.asked.get_or_insert((*approval, at));
            }
            EventKind::ApprovalAnswered { approval, verdict, .. } => {
                let word = match verdict {
                    Verdict::Granted => "granted",
                    Verdict::Denied => "denied",
                };
                self.answer(*approval, at, word);
            }
            EventKind::ApprovalExpired { approval } => self.answer(*approval, at, "expired"),
            EventKind::TaskDelegated { task, worker, trace, .. } => {
                trace.iter().for_each(|it| self.keep(task.clone(), **it));
                let heard = self.heard(task, at);
                heard.is_earlier = false;
                heard.accepted.get_or_insert(at);
                heard.worker = Some(worker.to_string());
            }
            EventKind::TaskAssigned { task, .. } | EventKind::TaskStarted { task } => {
                self.heard(task, at).began.get_or_insert(at);
            }
            EventKind::Queue(QueueEvent::AttemptFailed { task, attempt, .. }) => {
                self.heard(task, at).failed = *attempt;
            }
            EventKind::TaskFinished { task, status, .. } => {
                self.heard(task, at);
                return self.end(task, at, status.as_str(), *status == Status::Completed);
            }
            EventKind::Apply(ApplyEvent::ApplyEnded { apply, applied, errors, broken_off, .. }) => {
                let counts = (i64::from(*applied), i64::from(*errors));
                return self.end_apply(*apply, at, counts, *broken_off).into_iter().collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn heard(&mut self, task: &TaskId, at: Timestamp) -> &mut TaskTimes {
        if self.tasks.len() >= FOLLOWED_MAX && !self.tasks.contains_key(task) {
            // A task that never ends must not keep the memory of all that come after it.
            let oldest = self.tasks.iter().min_by_key(|(_, it)| it.first).map(|(id, _)| id.clone());
            oldest.iter().for_each(|id| drop(self.tasks.remove(id)));
        }
        self.tasks.entry(task.clone()).or_insert_with(|| TaskTimes { first: at, ..TaskTimes::default() })
    }

    fn answer(&mut self, approval: ApprovalId, at: Timestamp, word: &'static str) {
        if let Some(heard) = self.approvals.remove(&approval).and_then(|task| self.tasks.get_mut(&task)) {
            heard.answered.get_or_insert((at, word));
        }
    }

    fn end(&mut self, task: &TaskId, at: Timestamp, outcome: &str, done: bool) -> Vec<Span> {
        let Some(heard) = self.tasks.remove(task) else { return Vec::new() };
        self.approvals.retain(|_, of| of != task);
        let trace = self.trace_of(task);
        let ids = Traced::of(self.repository, task).within(trace);
        let asked_in = trace.map(|it| it.span);
        let word = |key, value: &str| Attribute::Word(key, value.to_owned());
        let mut known = vec![word("provost.task.id", task.as_str()), word("provost.outcome", outcome)];
        if heard.failed > 0 {
            known.push(Attribute::Number("provost.attempts", i64::from(heard.failed) + 1));
        }
        known.extend(heard.worker.as_deref().map(|it| word("provost.worker", it)));
        let root = ids.span_id("task");
        let span = |name: &'static str, from, to, done, attributes| {
            let parent = if name == "task" { asked_in } else { Some(root) };
            Span {
                name,
                ids: (ids.trace_id(), ids.span_id(name), parent),
                times: (from, to),
                done,
                attributes,
            }
        };
        let decided = heard.accepted.or(heard.answered.map(|(at, _)| at)).unwrap_or(at);
        let said = match (heard.asked, heard.accepted) {
            (Some(_), _) => "ask",
            (None, Some(_)) => "allow",
            (None, None) => "deny",
        };
        let mut spans = vec![span("task", heard.first, at, Some(done), known)];
        if !heard.is_earlier || heard.asked.is_some() {
            spans.push(span("ask", heard.first, decided, None, Vec::new()));
            spans.push(span("judge", heard.first, heard.first, None, vec![word("provost.decision", said)]));
        }
        if let Some((approval, asked)) = heard.asked {
            let number = Attribute::Number("provost.approval", i64::try_from(approval.0).unwrap_or(i64::MAX));
            let (until, answer) = heard.answered.unwrap_or((at, "none"));
            let known = vec![number, word("provost.answer", answer)];
            spans.push(span("approve", asked, until, Some(answer == "granted"), known));
        }
        if let Some(accepted) = heard.accepted {
            spans.push(span("queue", accepted, heard.began.unwrap_or(at), None, Vec::new()));
        }
        if let Some(began) = heard.began {
            spans.push(span("run", began, at, Some(done), vec![word("provost.outcome", outcome)]));
        }
        spans
    }

    fn end_apply(
        &mut self,
        apply: ApplyId,
        at: Timestamp,
        (applied, errors): (i64, i64),
        broken_off: bool,
    ) -> Option<Span> {
        let (began, task) = self.applies.remove(&apply)?;
        // Without a task, the apply has a trace of its own.
        let name = format!("apply-{apply}");
        let alone = || TaskId::parse(&name).ok();
        let trace = task.as_ref().and_then(|it| self.trace_of(it));
        let ids = Traced::of(self.repository, &task.clone().or_else(alone)?).within(trace);
        let parent = task.is_some().then(|| ids.span_id("task"));
        let mut attributes = vec![
            Attribute::Number("provost.apply", i64::try_from(apply.0).unwrap_or(i64::MAX)),
            Attribute::Number("provost.files.applied", applied),
            Attribute::Number("provost.files.failed", errors),
        ];
        attributes.extend(task.map(|it| Attribute::Word("provost.task.id", it.to_string())));
        let ids = (ids.trace_id(), ids.span_id(&name), parent);
        Some(Span {
            name: "apply",
            ids,
            times: (began, at),
            done: Some(errors == 0 && !broken_off),
            attributes,
        })
    }
}

/// Returns the body of a request to `/v1/traces`.
pub fn traces_request(spans: &[Span], (version, instance): (&str, &str)) -> Vec<u8> {
    let spans = spans.iter().map(message).collect();
    let scope_spans = vec![ScopeSpans { scope: scope(version), spans }];
    let resource_spans = vec![ResourceSpans { resource: resource(version, instance), scope_spans }];
    TraceRequest { resource_spans }.encode_to_vec()
}

fn message(span: &Span) -> SpanMessage {
    let (trace, id, parent) = span.ids;
    let attribute = |it: &Attribute| -> KeyValue {
        match it {
            Attribute::Word(key, value) => text(key, value),
            Attribute::Number(key, value) => whole(key, *value),
        }
    };
    SpanMessage {
        trace_id: trace.into(),
        span_id: id.into(),
        parent_span_id: parent.map(Vec::from).unwrap_or_default(),
        name: span.name.into(),
        kind: INTERNAL,
        start_time_unix_nano: nanos(span.times.0),
        end_time_unix_nano: nanos(span.times.1),
        attributes: span.attributes.iter().map(attribute).collect(),
        status: span.done.map(|done| SpanStatus { code: if done { DONE } else { FAILED } }),
    }
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(1_000_000)
}
