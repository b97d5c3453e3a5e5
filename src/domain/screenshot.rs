//! Pictures of the screen: requested, judged, counted, taken by the daemon itself.
//!
//! ```text
//!   asked --allowed--> [queued] --rules asked again--> [running] --> finished: the picture, or why there is none
//!     \\--approval--> [awaiting] --granted--^
//! ```
//! A picture is a task like any other, so that its asker is notified, can look it up and can cancel it. The picture
//! of an approval is kept for its asker: existing clients do not wait but ask again. DevIt 1.8.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::command::{
    BeginCapture, CaptureBegun, CaptureEnded, Captured, Command, EndCapture, Shot, Status, TakeScreenshot,
};
use super::judged::{Judged, Permit, Runs};
use super::post::slug;
use super::progress::Ending;
use super::{
    Action, Answer, Call, Change, Decision, Delegate, Effect, EventKind, Facts, Failure, Grant, GrantChange,
    Judge, Outbox, Outcome, Parked, Principal, Proof, Rate, Refusal, Reply, Report, Share, State, Task,
    TaskState, Tool, WorkerKind, grants,
};
use provost_base::limits::{CAPTURE_MS_MAX, CAPTURE_TRIES, CAPTURES_MAX};
use provost_base::{AgentId, Digest, Json, RuleId, TaskId, Timestamp, Ttl};

/// The time after which an ordered picture that was not taken is given up; all other limits have passed by then.
const WAIT_MAX: Ttl = Ttl::minutes(2);
/// The time after its own limit in which a run may report its end.
const GRACE: Ttl = Ttl::minutes(1);

/// A picture as the log and its asker know it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Picture {
    /// The path: from the workspace's root if the file lies in it, otherwise absolute.
    pub path: Box<str>,
    /// Its format, as a file extension.
    pub format: Box<str>,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The digest of its content.
    pub digest: Digest,
}

impl Judged for TakeScreenshot {
    fn action(&self) -> Action {
        Action::Screenshot
    }

    fn settled(
        &self,
        state: &State,
        call: &mut Call<'_>,
        out: &mut Outbox,
    ) -> Result<Option<Answer<Reply>>, Refusal> {
        state.before_screenshot(call, self, out)
    }

    fn permitted(
        &self,
        state: &State,
        judge: &dyn Judge,
        call: &Call<'_>,
        permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        let task = self.draft(state, call.now, call.who, &call.facts, permit);
        state.order_capture(call.now, call.who, task, judge.version(), out).map(Reply::Captured)
    }

    fn task(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn tool(&self) -> Box<str> {
        "TakeScreenshot".into()
    }
}

impl Runs for TakeScreenshot {
    fn draft(&self, state: &State, now: Timestamp, who: &Principal, _facts: &Facts, permit: Permit) -> Task {
        let order = Delegate {
            tool: Tool { name: "screenshot".into(), ..Tool::default() },
            ..Delegate::of(self.task.clone(), "Capture the screen".into(), super::provost(), time_limit())
        };
        let facts = Facts { worker_kind: Some(WorkerKind::Cli), ..Facts::default() };
        Task { capture: true, ..state.tasks.draft(now, who, &order, &facts, permit.rule, permit.terms) }
    }

    fn facts_now(&self, _state: &State, parked: &Parked) -> Result<Facts, Refusal> {
        Ok(parked.facts.clone())
    }

    /// Has the picture taken at once, and keeps it for its asker, who asks again.
    fn run_granted(
        &self,
        state: &State,
        now: Timestamp,
        parked: &Parked,
        task: Task,
        policy: Digest,
        out: &mut Outbox,
    ) -> Result<(), Refusal> {
        if !state.settings.screenshots {
            return Err(Refusal::SwitchedOff { what: "Screenshot capability".into() });
        }
        let done = state.order_capture(now, &parked.who, task, policy, out)?;
        grants::keep(now, asker_of(&parked.who), any_picture(), parked, Outcome::Made(done.task), out);
        Ok(())
    }
}

/// Returns the key under which a picture is kept: one for each asker, for any of its requests.
fn any_picture() -> Digest {
    Digest::of(b"screenshot")
}

impl State {
    /// Settles everything that comes before policy: the switch, repeats, a question that is open already, a picture
    /// that was approved meanwhile, and the rate.
    fn before_screenshot(
        &self,
        call: &Call<'_>,
        verb: &TakeScreenshot,
        out: &mut Outbox,
    ) -> Result<Option<Answer<Reply>>, Refusal> {
        if !self.settings.screenshots {
            return Err(Refusal::SwitchedOff { what: "Screenshot capability".into() });
        }
        let asker = asker_of(call.who);
        if let Some(task) = self.tasks.get(&verb.task).or(call.past.as_ref()) {
            let same = task.capture && task.asked_by == *call.who.agent();
            return if same { Ok(Some(as_it_stands(task))) } else { Err(Refusal::TaskExists) };
        }
        if let Some(waiting) = self.captures().find(|task| is_asked_by(task, &asker) && is_awaiting(task)) {
            return Ok(Some(as_it_stands(waiting)));
        }
        if let Some(Grant { outcome: Outcome::Made(task), .. }) =
            self.grants.get(call.now, &asker, any_picture())
        {
            let task = task.clone();
            // Finished tasks are not in memory; the record says how this one ended.
            let over = TaskState::Finished { status: Status::Completed, at: call.now };
            let state = self.tasks.get(&task).map_or(over, |task| task.state);
            out.put(GrantChange::Use(asker, any_picture()).into());
            return Ok(Some(Answer::Done(Reply::Captured(Captured { task, state }))));
        }
        self.has_rate_left(call.now)?;
        Ok(None)
    }

    fn captures(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks.of_worker(&super::provost()).filter(|task| task.capture)
    }

    /// Checks whether the rate allows another picture. Pictures count when they are taken; those under way count as taken.
    fn has_rate_left(&self, now: Timestamp) -> Result<(), Refusal> {
        let Some(rate) = self.settings.screenshot_rate else { return Ok(()) };
        let under_way = self.captures().filter(|task| !is_awaiting(task)).count();
        let used = self.quota.used(now, &taken(), &ours(), rate) + under_way;
        if u32::try_from(used).is_ok_and(|used| used < rate.count) { Ok(()) } else { Err(too_often(rate)) }
    }

    /// Orders an allowed or granted picture. This is the only way to have one taken.
    fn order_capture(
        &self,
        now: Timestamp,
        who: &Principal,
        mut task: Task,
        policy: Digest,
        out: &mut Outbox,
    ) -> Result<Captured, Refusal> {
        if self.tasks.get(task.id()).is_none() {
            self.tasks.room_for(&task.share(), &self.settings)?;
        }
        if self.captures().filter(|task| !is_awaiting(task)).count() >= CAPTURES_MAX {
            return Err(Refusal::busy("as many pictures as may be are waiting to be taken"));
        }
        self.has_rate_left(now)?;
        if let Some(rate) = self.settings.screenshot_rate {
            let tries = Rate { count: rate.count.saturating_mul(CAPTURE_TRIES), ..rate };
            let spent = self.quota.spend(now, &tried(), &ours(), tries, out);
            spent.map_err(|_| too_often(rate))?;
        }
        task.state = TaskState::Queued { until: now.after(WAIT_MAX) };
        task.updated_at = now;
        out.append_event(EventKind::TaskDelegated {
            task: task.id().clone(),
            worker: task.order.worker.clone(),
            tool: task.order.tool.name.clone(),
            rule: task.rule.clone(),
            policy,
            request: task.request,
            working_dir: None,
            approval: task.approval,
            judged: None,
            trace: task.order.trace.clone(),
        });
        task.daemon = out.owner();
        out.owe(Effect::Capture { task: task.id().clone(), asker: who.clone() });
        let done = Captured { task: task.id().clone(), state: task.state };
        out.put(Change::PutTask(Arc::new(task)));
        Ok(done)
    }

    /// Checks a picture at the last moment: switch and rules may have changed since it was allowed.
    pub(super) fn begin_capture(
        &self,
        now: Timestamp,
        judge: &dyn Judge,
        verb: &BeginCapture,
        out: &mut Outbox,
    ) -> Result<CaptureBegun, Refusal> {
        let task = self.tasks.get(&verb.task).ok_or(Refusal::TaskFinished)?;
        let TaskState::Queued { .. } = task.state else {
            return Err(Refusal::TaskCannot { from: task.state });
        };
        if !self.settings.screenshots {
            return Err(Refusal::SwitchedOff { what: "Screenshot capability".into() });
        }
        let command = Command::TakeScreenshot(TakeScreenshot { task: verb.task.clone() });
        match judge.decide(&verb.asker, &command, &Facts { now, ..Facts::default() }) {
            Decision::Allow { .. } => {}
            // A person has approved this picture; the rule that asks for that is satisfied.
            Decision::NeedApproval { .. } if task.approval.is_some() => {}
            Decision::NeedApproval { rule, reason, .. } | Decision::Deny { rule, reason } => {
                return Err(Refusal::Denied { rule, reason });
            }
        }
        let mut task = (**task).clone();
        let until = now.after(time_limit()).after(GRACE);
        (task.state, task.updated_at) = (TaskState::Running { since: now, lease_until: until }, now);
        out.append_event(EventKind::TaskStarted { task: verb.task.clone() });
        out.put(Change::StartEffect(verb.effect));
        out.put(Change::PutTask(Arc::new(task)));
        Ok(CaptureBegun)
    }

    /// Records that the picture was taken, or was not.
    pub(super) fn end_capture(&self, now: Timestamp, verb: &EndCapture, out: &mut Outbox) -> CaptureEnded {
        out.put(Change::DropEffect(verb.effect));
        let Some(task) = self.tasks.get(&verb.task) else { return CaptureEnded { heard: false } };
        let ending = match &verb.end {
            Shot::Taken(picture) => {
                out.append_event(EventKind::ScreenCaptured {
                    task: verb.task.clone(),
                    picture: picture.digest,
                    bytes: picture.bytes,
                });
                if let Some(rate) = self.settings.screenshot_rate {
                    // The room in the window was checked before; a full window stays full.
                    let _full = self.quota.spend(now, &taken(), &ours(), rate, out);
                }
                Ending {
                    status: Status::Completed,
                    said: "completed".into(),
                    from: Some(task.order.worker.clone()),
                    report: report(picture),
                    failure: None,
                    message: None,
                }
            }
            Shot::Failed(failure) => Ending::failed(sentence(failure), failure.clone()),
        };
        self.finish(now, task, ending, out);
        CaptureEnded { heard: true }
    }
}

/// Returns the end of a task whose picture was not taken in time.
pub(super) fn out_of_time(task: &Task) -> Ending {
    let timeout_s = WAIT_MAX.as_seconds();
    let summary = format!("Screenshot {} was not taken within {timeout_s}s", task.id());
    Ending::failed(summary, Failure::RunTimeout { timeout_s })
}

/// Returns the name under which a caller comes back. DevIt's own client makes a new name for every picture
/// (`mcp-screenshot-<uuid>`); names that are only proved by a shared secret are worth the same.
fn asker_of(who: &Principal) -> AgentId {
    let shared = who.proof() == Proof::SharedKey;
    shared.then(|| family_of(who.agent())).flatten().unwrap_or_else(|| who.agent().clone())
}

/// Returns one name for all names that differ only in their uuid. It is none of them, and not the name without a
/// uuid either, which may belong to an agent with a key of its own.
fn family_of(agent: &AgentId) -> Option<AgentId> {
    const NOBODYS: &str = "00000000-0000-0000-0000-000000000000";
    let name = without_uuid(agent.as_str())?;
    AgentId::parse(&format!("{name}-{NOBODYS}")).ok()
}

/// Returns the `name` in `name-<uuid>`.
fn without_uuid(name: &str) -> Option<&str> {
    const UUID_LEN: usize = 36;
    let at = name.len().checked_sub(UUID_LEN)?;
    let (head, uuid) = (name.get(..at)?.strip_suffix('-')?, name.get(at..)?);
    let is_uuid = uuid.char_indices().all(|(at, it)| match at {
        8 | 13 | 18 | 23 => it == '-',
        _ => it.is_ascii_hexdigit(),
    });
    (is_uuid && !head.is_empty()).then_some(head)
}

fn is_asked_by(task: &Task, asker: &AgentId) -> bool {
    task.asked_by == *asker || family_of(&task.asked_by).as_ref() == Some(asker)
}

fn is_awaiting(task: &Task) -> bool {
    matches!(task.state, TaskState::Awaiting { .. })
}

/// Returns the answer for a repeated request, which is that of the first one.
fn as_it_stands(task: &Task) -> Answer<Reply> {
    match task.state {
        TaskState::Awaiting { approval } => Answer::Parked(approval),
        state => Answer::Done(Reply::Captured(Captured { task: task.id().clone(), state })),
    }
}

fn time_limit() -> Ttl {
    Ttl::seconds_clamped(CAPTURE_MS_MAX / 1_000)
}

/// Returns the share to which all pictures count: no agent has the daemon's own name.
fn ours() -> Share {
    Share::Name(slug(super::provost().as_str()))
}

/// Returns the rule under which the quota counts pictures.
fn taken() -> RuleId {
    RuleId::parse("screenshot.taken").expect("a constant that is a valid id")
}

fn tried() -> RuleId {
    RuleId::parse("screenshot.tried").expect("a constant that is a valid id")
}

fn too_often(rate: Rate) -> Refusal {
    Refusal::TooOften { what: "Screenshot".into(), most: rate.count, per_s: rate.per.as_seconds() }
}

fn report(picture: &Picture) -> Report {
    let details = json!({
        "path": picture.path,
        "format": picture.format,
        "size": { "bytes": picture.bytes, "human": human(picture.bytes) },
        "sha256": picture.digest.to_string(),
    });
    Report {
        summary: format!("{} ({})", picture.path, human(picture.bytes)).into(),
        details: Some(Json::from_value(&details)),
        ..Report::default()
    }
}

fn sentence(failure: &Failure) -> String {
    match failure {
        Failure::Sandbox { why } | Failure::WorkerFailed { why } | Failure::JailRefused { why } => {
            why.to_string()
        }
        Failure::PolicyDenied { reason, .. } => reason.to_string(),
        Failure::Lost => "the daemon ended before the picture was taken; ask again".into(),
        Failure::RunTimeout { timeout_s } => format!("the program took longer than {timeout_s}s"),
        other => other.reason().into(),
    }
}

/// Returns a size as DevIt writes it: powers of 1024, two decimals. DevIt 1.8.
fn human(bytes: u64) -> String {
    let unit = match bytes {
        0 => return "0 B".into(),
        1..=0x3ff => ("B", 0),
        0x400..=0xf_ffff => ("KB", 10),
        0x10_0000..=0x3fff_ffff => ("MB", 20),
        0x4000_0000..=0xff_ffff_ffff => ("GB", 30),
        _ => ("TB", 40),
    };
    let hundredths = u128::from(bytes) * 100;
    let rounded = (hundredths + ((1_u128 << unit.1) >> 1)) >> unit.1;
    format!("{}.{:02} {}", rounded / 100, rounded % 100, unit.0)
}
