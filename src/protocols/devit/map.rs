//! The dictionary between DevIt's words and Provost's: payloads to verbs, tasks and mail to payloads, refusals to errors.

use serde_json::{Value, json};
use uuid::Uuid;

use super::meeting::{met_payload, wanted_payload};
use super::wire::{self, Code, DevitError};
use provost_base::limits::{DELEGATION_TIMEOUT_S, NOTES_MAX, STATUS_BYTES_MAX};
use provost_base::{AgentId, ApprovalId, Digest, Json, TaskId, Timestamp, Ttl, WatchPatterns};
use provost_domain::command::{AckTask, AnswerApproval, Register, ReportTask};
use provost_domain::{
    Delegate, Denial, Failure, Mail, MailKind, Notice, Refusal, Report, Status, Task, TaskNote, TaskState,
    Tool, Verdict,
};
use provost_service::{Snapshot, TaskFilter};

/// The most bytes of a text in a shortened task.
const BRIEF_BYTES: usize = 240;

/// A message to be signed and sent.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Message {
    pub(super) msg_type: &'static str,
    /// The id; `None` for a new one.
    pub(super) msg_id: Option<String>,
    /// The sender: the daemon, except for the end of a lease.
    pub(super) from: String,
    pub(super) payload: Json,
}

impl Message {
    pub(super) fn new(msg_type: &'static str, payload: Json) -> Self {
        Self { msg_type, msg_id: None, from: wire::ORCHESTRATOR.into(), payload }
    }

    /// Adds the id of the message that this one answers: several processes may share a connection.
    pub(super) fn answering(mut self, msg_id: &str) -> Self {
        let mut payload = self.payload.value();
        if let Some(members) = payload.as_object_mut() {
            members.insert("in_reply_to".into(), json!(msg_id));
            self.payload = Json::from_value(&payload);
        }
        self
    }

    pub(super) fn ack(payload: &Value) -> Self {
        Self::new("ACK", Json::from_value(payload))
    }

    pub(super) fn fault(fault: &DevitError) -> Self {
        Self::new("ERR", fault.payload())
    }
}

fn text(it: Option<String>) -> Option<Box<str>> {
    it.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).map(Into::into)
}

fn json_of(it: Option<&Value>) -> Option<Json> {
    it.filter(|it| !it.is_null()).map(Json::from_value)
}

fn agent(name: &str, member: &str) -> Result<AgentId, DevitError> {
    AgentId::parse(name).map_err(|err| DevitError::invalid(format!("{member} {err}")))
}

pub(super) fn task_id(name: &str) -> Result<TaskId, DevitError> {
    TaskId::parse(name).map_err(|err| DevitError::invalid(format!("task id {err}")))
}

pub(super) fn new_task_id(name: &str) -> Result<TaskId, DevitError> {
    TaskId::chosen(name).map_err(|err| DevitError::invalid(format!("task id {err}")))
}

pub(super) fn register(payload: wire::Register, peer_pid: Option<u32>) -> Register {
    let caps = payload.caps.into_iter().map(Into::into).collect();
    Register { caps, pid: payload.pid, peer_pid, version: text(payload.version) }
}

/// Reads a DELEGATE: the message's id is the task's, `to` is the worker.
pub(super) fn delegate(msg_id: &str, to: &str, raw: &str) -> Result<Delegate, DevitError> {
    let payload: wire::Delegate = wire::payload(raw)?;
    let json = Json::parse(raw).map_err(|err| DevitError::invalid(format!("payload: {err}")))?;
    order(new_task_id(msg_id)?, agent(to, "worker")?, payload, json)
}

pub(super) fn order(
    task: TaskId,
    worker: AgentId,
    payload: wire::Delegate,
    json: Json,
) -> Result<Delegate, DevitError> {
    let order = payload.task.unwrap_or_default();
    let return_to = text(payload.return_to).map(|it| agent(&it, "return_to")).transpose()?;
    let seconds = order.timeout.or(order.timeout_s).unwrap_or(DELEGATION_TIMEOUT_S);
    let watch_patterns = order.watch_patterns.unwrap_or_default();
    WatchPatterns::check(&watch_patterns).map_err(|err| DevitError::invalid(format!("task.{err}")))?;
    let command = order.command.as_ref().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    let goal = text(order.goal).unwrap_or_else(|| format!("Task {task} delegated").into());
    let timeout = Ttl::seconds_clamped(if seconds == 0 { DELEGATION_TIMEOUT_S } else { seconds });
    let delegation = Delegate {
        return_to,
        tool: Tool {
            name: text(order.action).unwrap_or_else(|| "unknown".into()),
            path: order.path.as_deref().map(|it| provost_base::normalised_path(it).into()),
            command: command.map(Into::into),
            max_bytes: order.max_bytes,
            timeout_s: order.timeout_secs,
        },
        model: text(order.model).or_else(|| {
            text(
                order
                    .context
                    .as_ref()
                    .and_then(|it| it.get("model"))
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            )
        }),
        context: json_of(order.context.as_ref()),
        watch_patterns: watch_patterns.into_iter().map(Into::into).collect(),
        working_dir: text(order.working_dir),
        format: text(order.format),
        payload: json,
        ..Delegate::of(task, goal, worker, timeout)
    };
    delegation.checked().map_err(|err| DevitError::invalid(err.to_string()))
}

/// The request of a NOTIFY.
pub(super) enum Notified {
    Ack(AckTask),
    Report(Box<ReportTask>),
}

/// Reads a NOTIFY. The document's words count by their meaning; other words mean progress for a signed client, and
/// are an error (`strict`) in the document's dialect.
pub(super) fn notify(msg_id: &str, raw: &str, strict: bool) -> Result<Notified, DevitError> {
    let payload: wire::Notify = wire::payload(raw)?;
    let task = task_id(payload.task_id.as_deref().unwrap_or(msg_id))?;
    let said = payload.status.clone().unwrap_or_else(|| "completed".into());
    let status = match said.to_ascii_lowercase().as_str() {
        "ack" => return Ok(Notified::Ack(AckTask { task })),
        "completed" => Status::Completed,
        "failed" => Status::Failed,
        "cancelled" => Status::Cancelled,
        "pending" => Status::Pending,
        "in_progress" | "progress" | "blocked" => Status::InProgress,
        other if strict => {
            let known = "pending, in_progress, progress, blocked, completed, failed, cancelled, ack";
            return Err(DevitError::invalid(format!("status '{other}' is not one of {known}")));
        }
        _ => Status::InProgress,
    };
    let relay = (!strict)
        .then(|| Json::parse(raw))
        .transpose()
        .map_err(|err| DevitError::invalid(err.to_string()))?;
    let report = Report { relay, ..report(&payload) };
    let message = (!msg_id.is_empty()).then(|| msg_id.into());
    Ok(Notified::Report(Box::new(ReportTask { task, status, report, message })))
}

/// Converts `artifacts` to the parts of a note. DevIt 1.5, NOTIFY.
fn report(payload: &wire::Notify) -> Report {
    let none = Value::Null;
    let artifacts = payload.artifacts.as_ref().unwrap_or(&none);
    let object = artifacts.as_object();
    let member = |name: &str| object.and_then(|it| it.get(name));
    let summary = match (payload.summary.as_deref(), member("summary").and_then(Value::as_str)) {
        (Some(text), _) | (None, Some(text)) => text.to_owned(),
        (None, None) if object.is_some() => "daemon notification".to_owned(),
        (None, None) => artifacts.to_string(),
    };
    let mut details =
        member("details").cloned().or_else(|| payload.details.clone()).filter(|it| !it.is_null());
    for name in ["truncated", "original_size"] {
        let Some(value) = member(name).filter(|it| !it.is_null()) else { continue };
        let held = details.take().unwrap_or_else(|| json!({}));
        let mut held = if held.is_object() { held } else { json!({ "payload": held }) };
        held[name] = value.clone();
        details = Some(held);
    }
    Report {
        summary: summary.into(),
        details: json_of(details.as_ref()),
        evidence: json_of(member("evidence").or(payload.evidence.as_ref())),
        metadata: json_of(member("metadata")),
        original_size: member("original_size").and_then(Value::as_u64),
        relay: None,
    }
}

/// Reads an APPROVAL_DECISION. The message's own id names the approval.
pub(super) fn decision(msg_id: &str, raw: &str, salt: &Digest) -> Result<AnswerApproval, DevitError> {
    let payload: wire::ApprovalDecision = wire::payload(raw)?;
    let named = payload.approval_id.as_deref().unwrap_or(msg_id);
    let unknown = || DevitError::new(Code::ApprovalNotFound, format!("no approval '{named}' is waiting"));
    let approval = approval_of(named, salt).ok_or_else(unknown)?;
    let verdict = match payload.status.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("granted" | "approved") => Verdict::Granted,
        Some("denied" | "rejected") => Verdict::Denied,
        other => {
            let got = other.unwrap_or("nothing");
            return Err(DevitError::invalid(format!(
                "status is 'granted' or 'denied', not '{got}'; the request still waits"
            )));
        }
    };
    let shown = payload.digest.map(Digest::try_from).transpose();
    let shown = shown.map_err(|err| DevitError::invalid(format!("digest: {err}")))?;
    Ok(AnswerApproval { approval, verdict, note: text(payload.note), shown, signed: None })
}

/// Returns an approval's id on the wire: a UUID (version 8) of its number and a keyed check, so that the daemon
/// finds it without a table and no client can guess it from another one.
pub(super) fn approval_id(id: ApprovalId, salt: &Digest) -> String {
    let check = Digest::of_fields([salt.as_bytes().as_slice(), &id.0.to_be_bytes()]);
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&id.0.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&check.as_bytes()[..10]);
    Uuid::new_v8(bytes).to_string()
}

fn approval_of(text: &str, salt: &Digest) -> Option<ApprovalId> {
    let uuid = Uuid::parse_str(text).ok()?;
    let mut number = [0; 8];
    number[2..].copy_from_slice(&uuid.as_bytes()[..6]);
    let id = ApprovalId(u64::from_be_bytes(number));
    (approval_id(id, salt) == uuid.to_string()).then_some(id)
}

pub(super) fn filter(name: Option<&str>) -> Result<TaskFilter, DevitError> {
    match name.unwrap_or("all") {
        "all" => Ok(TaskFilter::All),
        "active" => Ok(TaskFilter::Active),
        "completed" => Ok(TaskFilter::Completed),
        "failed" => Ok(TaskFilter::Failed),
        other => {
            Err(DevitError::invalid(format!("filter '{other}' is not one of all, active, completed, failed")))
        }
    }
}

/// Encodes a status. The whole answer must reach a client within the second that it waits, so unfinished tasks
/// share a bound in bytes. None is left out, since clients take an absent task for an unknown one: those beyond the
/// bound are shortened. Finished tasks get the remaining bytes, the newest first.
pub(super) fn status(snapshot: &Snapshot, salt: &Digest) -> wire::Status {
    let (mut room, mut shortened) = (STATUS_BYTES_MAX, false);
    let mut active = |it: &Task| match room.checked_sub(weight(it)) {
        Some(left) => {
            room = left;
            task(it, salt)
        }
        None => {
            shortened = true;
            in_brief(it, salt)
        }
    };
    let active_tasks = snapshot.active.iter().map(|it| active(it)).collect();
    let mut finished = |it: &Task| {
        room = room.checked_sub(weight(it))?;
        Some(task(it, salt))
    };
    let completed_tasks: Vec<_> = snapshot.finished.tasks.iter().map_while(&mut finished).collect();
    shortened |= completed_tasks.len() < snapshot.finished.tasks.len();
    wire::Status {
        active_tasks,
        completed_tasks,
        summary: wire::Summary {
            total_active: snapshot.active.len(),
            total_completed: snapshot.completed,
            total_failed: snapshot.failed,
            oldest_active_task: snapshot.active.first().map(|it| it.id().to_string()),
        },
        truncated: snapshot.finished.truncated || shortened,
    }
}

/// Returns the bytes of a task in an answer that its agents determine.
fn weight(task: &Task) -> usize {
    let length = |it: &Option<Json>| it.as_ref().map_or(0, |it| it.as_str().len());
    let order = &task.order;
    let texts = [&order.format, &order.model].into_iter().flatten().chain(&order.watch_patterns);
    let notes = task.notes.iter().map(|it| {
        let report = &it.report;
        let texts = it.said.len() + report.summary.len();
        texts + length(&report.details) + length(&report.evidence) + length(&report.metadata)
    });
    order.goal.len() + length(&order.context) + texts.map(|it| it.len()).sum::<usize>() + notes.sum::<usize>()
}

pub(super) fn task(task: &Task, salt: &Digest) -> wire::Task {
    let order = &task.order;
    wire::Task {
        goal: order.goal.to_string(),
        context: order.context.as_ref().map(Json::value),
        watch_patterns: order.watch_patterns.iter().map(ToString::to_string).collect(),
        notifications: task.notes.iter().take(NOTES_MAX).map(|it| note(task, it, salt)).collect(),
        response_format: order.format.as_ref().map(ToString::to_string),
        model: order.model.as_ref().map(ToString::to_string),
        model_resolved: task.model_used.as_ref().map(ToString::to_string),
        ..in_brief(task, salt)
    }
}

/// Encodes a task without its large parts: with its state, and the beginnings of its goal and of its last note.
fn in_brief(task: &Task, salt: &Digest) -> wire::Task {
    let order = &task.order;
    let working_dir = task.directory.as_ref().map(|it| it.relative.as_str()).filter(|it| !it.is_empty());
    let approval = match task.state {
        TaskState::Awaiting { approval } => Some(approval_id(approval, salt)),
        _ => None,
    };
    let last = task.notes.last().map(|it| wire::Note {
        received_at: it.at.rfc3339(),
        status: beginning(&it.said),
        summary: beginning(&it.report.summary),
        details: None,
        evidence: None,
        auto_generated: true,
        metadata: None,
    });
    wire::Task {
        id: order.task.to_string(),
        goal: beginning(&order.goal),
        delegated_to: order.worker.to_string(),
        created_at: task.created_at.rfc3339(),
        timeout_secs: order.timeout.as_seconds(),
        status: task.state.status().as_str(),
        context: None,
        watch_patterns: Vec::new(),
        last_activity: task.updated_at.rfc3339(),
        notifications: last.into_iter().collect(),
        working_dir: working_dir.map(str::to_owned),
        response_format: order.format.as_deref().map(beginning),
        model: order.model.as_deref().map(beginning),
        model_resolved: task.model_used.as_deref().map(beginning),
        shared_directory_with: task.beside.iter().map(ToString::to_string).collect(),
        tainted: task.tainted(),
        approval_id: approval,
    }
}

fn beginning(text: &str) -> String {
    text[..text.floor_char_boundary(BRIEF_BYTES)].to_owned()
}

fn note(task: &Task, note: &TaskNote, salt: &Digest) -> wire::Note {
    let (worker, goal) = (&task.order.worker, &task.order.goal);
    let failure =
        note.failure.as_ref().map(|it| dated(it, note.at, salt, failure(it, task.id(), worker, goal)));
    let (details, metadata) = with_failure(&note.report, failure);
    wire::Note {
        received_at: note.at.rfc3339(),
        status: note.said.to_string(),
        summary: note.report.summary.to_string(),
        details,
        evidence: note.report.evidence.as_ref().map(Json::value),
        auto_generated: true,
        metadata,
    }
}

/// Returns `details` and `metadata` of the message for a hook.
pub(super) fn told(notice: &Notice, salt: &Digest) -> (Option<Value>, Option<Value>) {
    let (worker, goal) = (&notice.worker, &notice.goal);
    let why = notice.failure.as_ref();
    let why = why.map(|it| dated(it, notice.at, salt, failure(it, &notice.task, worker, goal)));
    with_failure(&notice.report, why)
}

/// Returns `details` and `metadata` of a report, with the daemon's reason if the task has failed.
fn with_failure(report: &Report, failure: Option<(Value, Value)>) -> (Option<Value>, Option<Value>) {
    let (mut details, mut metadata) =
        (report.details.as_ref().map(Json::value), report.metadata.as_ref().map(Json::value));
    if let Some((more, failure)) = failure {
        details = details.or(Some(more));
        let mut block = metadata.filter(Value::is_object).unwrap_or_else(|| json!({}));
        block["failure"] = failure;
        metadata = Some(block);
    }
    (details, metadata)
}

/// Returns `details` and `metadata.failure` for a failure that the daemon itself reports. DevIt 1.5, 1.6.
fn failure(failure: &Failure, task: &TaskId, worker: &AgentId, goal: &str) -> (Value, Value) {
    let reason = failure.reason();
    let (mut details, mut block) = (json!({ "reason": reason }), json!({ "reason": reason }));
    let mut both = |name: &str, value: Value| {
        details[name] = value.clone();
        block[name] = value;
    };
    both("task_id", json!(task.as_str()));
    match failure {
        Failure::PolicyDenied { rule, reason, tool } => {
            both("tool", json!(tool));
            both("rule", json!(rule.as_str()));
            both("explanation", json!(reason));
        }
        Failure::ApprovalDenied { approver, note, tool, .. } => {
            both("tool", json!(tool));
            both("approver", json!(approver.as_str()));
            if let Some(note) = note {
                both("note", json!(note));
            }
        }
        Failure::ApprovalTimeout { tool, .. } => both("tool", json!(tool)),
        Failure::Sandbox { why } | Failure::JailRefused { why } | Failure::WorkerFailed { why } => {
            both("explanation", json!(why));
        }
        Failure::LeaseTimeout { timeout_s, worker } => {
            both("timeout_secs", json!(timeout_s));
            both("worker", json!(worker.as_str()));
        }
        Failure::WorkerAway { kept_s, worker } => {
            both("kept_secs", json!(kept_s));
            both("worker", json!(worker.as_str()));
        }
        Failure::NotBegun { why, .. } | Failure::NoHost { why } => both("explanation", json!(why)),
        Failure::RunTimeout { timeout_s } => both("timeout_secs", json!(timeout_s)),
        Failure::Lost => {}
    }
    details["worker"] = json!(worker.as_str());
    details["goal"] = json!(goal);
    (details, block)
}

/// Adds the members that depend on the moment and on the door.
fn dated(
    failure: &Failure,
    at: Timestamp,
    salt: &Digest,
    (mut details, mut block): (Value, Value),
) -> (Value, Value) {
    let (name, value) = match failure {
        Failure::LeaseTimeout { .. } => ("expired_at", at.rfc3339()),
        Failure::ApprovalDenied { approval, .. } | Failure::ApprovalTimeout { approval, .. } => {
            ("approval_id", approval_id(*approval, salt))
        }
        _ => return (details, block),
    };
    details[name] = json!(value);
    block[name] = json!(value);
    (details, block)
}

/// Encodes a queued message.
pub(super) fn mail(mail: &Mail, now: Timestamp, salt: &Digest) -> Message {
    match &mail.kind {
        MailKind::Work { task, payload } => {
            Message { msg_id: Some(task.to_string()), ..Message::new("DELEGATE", payload.clone()) }
        }
        MailKind::Word { report: Report { relay: Some(relay), .. }, .. } => {
            Message::new("NOTIFY", relay.clone())
        }
        MailKind::Word { failure, worker, .. } => {
            let from = match failure {
                Some(Failure::LeaseTimeout { .. }) => worker.to_string(),
                _ => wire::ORCHESTRATOR.to_owned(),
            };
            Message { from, ..Message::new("NOTIFY", Json::from_value(&word_payload(mail, now, salt))) }
        }
        MailKind::Approval { approval, task, tool, reason, risk, details, shown, expires_at } => {
            let payload = json!({
                "reason": "on_request",
                "explanation": reason,
                "tool": tool,
                "task_id": task.as_ref().map(TaskId::as_str),
                "original_msg_id": task.as_ref().map(TaskId::as_str),
                "details": details.value(),
                "timestamp": mail.at.rfc3339().replace('Z', "+00:00"),
                "risk_level": risk,
                "digest": shown.to_string(),
                "expires_at": expires_at.rfc3339(),
            });
            let msg_id = Some(approval_id(*approval, salt));
            Message { msg_id, ..Message::new("APPROVAL", Json::from_value(&payload)) }
        }
        MailKind::Met { file, mine, other } => {
            Message::new("NOTIFY", Json::from_value(&met_payload(file, *mine, other, now)))
        }
        MailKind::Wanted { symbol, agent, until, fence } => {
            let word = wanted_payload((symbol, *fence), agent, *until, now);
            Message::new("NOTIFY", Json::from_value(&word))
        }
    }
}

/// Encodes the daemon's own NOTIFY about its workers and about failures. DevIt 1.10.
fn word_payload(mail: &Mail, now: Timestamp, salt: &Digest) -> Value {
    let MailKind::Word { task, worker, goal, said, report, failure: why, return_to, .. } = &mail.kind else {
        return Value::Null;
    };
    let why = why.as_ref().map(|it| dated(it, mail.at, salt, failure(it, task, worker, goal)));
    let failed = why.as_ref().map(|(_, block)| block.clone());
    let (details, metadata) = with_failure(report, why);
    let mut artifacts = json!({ "summary": report.summary, "reported_at": now.rfc3339() });
    if let Some(details) = details {
        artifacts["details"] = details;
    }
    if let Some(evidence) = &report.evidence {
        artifacts["evidence"] = evidence.value();
    }
    if let Some(size) = report.original_size {
        artifacts["truncated"] = json!(true);
        artifacts["original_size"] = json!(size);
    }
    if let Some(metadata) = metadata {
        artifacts["metadata"] = metadata;
    }
    let mut payload = json!({ "task_id": task.as_str(), "status": said, "artifacts": artifacts });
    if let Some(failed) = failed {
        payload["metadata"] = json!({ "failure": failed });
    }
    if let Some(return_to) = return_to {
        payload["return_to"] = json!(return_to.as_str());
    }
    payload
}

/// Returns the error for a delegation that policy or the sandbox has denied.
pub(super) fn denied(denial: &Denial, verb: &Delegate) -> DevitError {
    let (details, _) = failure(&denial.failure, &verb.task, &verb.worker, &verb.goal);
    match &denial.failure {
        Failure::Sandbox { why } => {
            DevitError::new(Code::Sandbox, why.to_string()).with(json!({ "details": details }))
        }
        _ => {
            let message = format!("Task denied by policy (tool: {})", verb.tool.name);
            DevitError::new(Code::PolicyDenied, message).with(json!({ "details": details }))
        }
    }
}

/// Translates a refusal into an error. A new refusal needs an arm here.
pub(super) fn fault(refusal: Refusal, advertised: &str) -> DevitError {
    let text = refusal.to_string();
    let code = match &refusal {
        Refusal::VersionMismatch { expected, received } => {
            return DevitError::new(Code::VersionMismatch, text).with(json!({
                "expected_worker_version": expected,
                "received_worker_version": received,
                "daemon_version": advertised,
            }));
        }
        Refusal::VersionMissing { expected } | Refusal::RegisterFirst { expected } => {
            return DevitError::new(Code::VersionMismatch, text).with(json!({
                "expected_worker_version": expected,
                "received_worker_version": null,
                "detail_code": "E_VERSION_MISSING",
                "daemon_version": advertised,
            }));
        }
        Refusal::OutOfScope { .. }
        | Refusal::RoleTooLow { .. }
        | Refusal::TaskNotYours { .. }
        | Refusal::ApprovalOwn
        | Refusal::ApprovalFromAsker { .. }
        | Refusal::NotYoursToSwitch { .. }
        | Refusal::ApprovalNotYours { .. }
        | Refusal::LockNotHeld { .. }
        | Refusal::IntentNotOwned { .. }
        | Refusal::ContractOwn
        | Refusal::ContractNotYours { .. } => Code::Forbidden,
        Refusal::NameTaken { .. } | Refusal::NameElsewhere { .. } => Code::Forbidden,
        Refusal::OtherSpelling { .. } => Code::Forbidden,
        Refusal::TaskExists => Code::TaskExists,
        Refusal::TaskNotFound => Code::TaskNotFound,
        Refusal::TaskFinished | Refusal::TaskCannot { .. } => Code::TaskFinished,
        // These clients have no words for the functions of other doors.
        Refusal::AlreadyNamed { .. }
        | Refusal::TokenNotFound
        | Refusal::LockConflict(_)
        | Refusal::WouldDeadlock { .. }
        | Refusal::NotSoMany { .. }
        | Refusal::NeedsYours { .. }
        | Refusal::HeldElsewhere(_)
        | Refusal::LockNotFound
        | Refusal::IntentNotFound
        | Refusal::IntentCannot { .. }
        | Refusal::ContractNotFound
        | Refusal::Crew(_)
        | Refusal::ContractSettled { .. } => Code::Invalid,
        Refusal::NoChanges | Refusal::ChangesGone | Refusal::ChangesInUse { .. } => Code::Invalid,
        Refusal::MergeCannot { .. } | Refusal::WorkerBroken { .. } => Code::Invalid,
        Refusal::NoWorkTree { .. } | Refusal::WorkTreeCannot { .. } => Code::Invalid,
        Refusal::SessionCannot { .. } | Refusal::NotPlaced { .. } => Code::Invalid,
        Refusal::ApprovalChanged | Refusal::MailNotFound | Refusal::PasskeyRefused { .. } => Code::Invalid,
        Refusal::TooLong { .. } | Refusal::Exists { .. } | Refusal::UserCannot { .. } => Code::Invalid,
        Refusal::ApprovalNotFound(_) => Code::ApprovalNotFound,
        Refusal::Denied { .. } | Refusal::OnlyWorks(_) => Code::PolicyDenied,
        Refusal::SwitchedOff { .. } | Refusal::TooOften { .. } => Code::ScreenshotDenied,
        Refusal::Busy { .. } | Refusal::Quota { .. } => Code::Busy,
        Refusal::NotReady { .. } | Refusal::Unavailable { .. } | Refusal::Stopping => Code::Internal,
    };
    DevitError::new(code, text)
}
