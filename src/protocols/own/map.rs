//! The dictionary between the own API's words and Provost's.

pub(super) mod coordinate;
pub(super) mod crew;
pub(super) mod graph;
pub(super) mod inbox;
mod queue;
mod run;
pub(super) mod talk;

pub(super) use queue::{delegated, denied, parked, state_word};

use std::collections::BTreeSet;

use hyper::StatusCode;
use serde_json::{Value, json};

use provost_api::wire;
use provost_base::limits::{DELEGATION_TIMEOUT_S, ID_LEN_MAX, KEY_FILE_BYTES_MAX, SUMMARY_LEN_MAX};
use provost_base::{
    AgentId, ApprovalId, Digest, Json, TaskId, TraceContext, Ttl, WatchPatterns, task_command,
};
use provost_domain::command::{AnswerApproval, CancelTask, Record, ReportTask, TakeScreenshot};
use provost_domain::view::KnownAgent;
use provost_domain::{
    Approver, AwaitedNeed, ChangesState, Command, CrewRefusal, Delegate, Finding, Network, Parked, Refusal,
    Report, ScanReport, Status, Task, TaskChanges, TaskNote, TaskState, Tool, Usage, Verdict, WorkerKind,
    approvers_now,
};
use provost_service::Snapshot;

/// An error answer.
#[derive(Debug)]
pub(super) struct OwnError {
    pub(super) status: StatusCode,
    pub(super) body: wire::ErrorBody,
}

impl OwnError {
    pub(super) fn new(status: StatusCode, error: &str, message: impl Into<String>) -> Self {
        let body = wire::ErrorBody { error: error.into(), message: message.into(), hint: None, data: None };
        Self { status, body }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    pub(super) fn data(mut self, data: Value) -> Self {
        self.body.data = Some(data);
        self
    }
}

/// Translates refusals into the own API's words, with the next step if there is one.
// tidy: long because it is one table of refusals
pub(super) fn fault(refusal: Refusal) -> OwnError {
    let text = refusal.to_string();
    let (status, error) = word(&refusal);
    let fault = naming_right(OwnError::new(status, error, text), &refusal);
    match refusal {
        Refusal::OutOfScope { needs: provost_domain::Scope::Approve } => fault.hint(
            "a person answers at a terminal in which no agent has run, or with a passkey; an agent with an approver's key",
        ),
        Refusal::OutOfScope { needs: provost_domain::Scope::Operate } => {
            fault.hint("do it in a terminal of your own, in which no agent has run")
        }
        Refusal::OutOfScope { needs: provost_domain::Scope::Apply } => {
            fault.hint("a person makes such a token, in a terminal of their own, in which no agent has run")
        }
        Refusal::RoleTooLow { .. } | Refusal::UserCannot { .. } => fault.hint("`provost user list` lists users, and who is an admin"),
        Refusal::OnlyWorks(_) => fault.hint("`provost host list` lists the hosts, and which of them are full ones"),
        Refusal::TaskNotFound => fault.hint("`provost task list` lists what there is"),
        Refusal::ApprovalNotFound(_) | Refusal::ApprovalChanged => fault.hint("`provost approval list` lists what waits"),
        Refusal::SessionCannot { why } => talk::with_next_step(fault, &why),
        Refusal::SwitchedOff { .. } => {
            fault.hint("set `enabled = true` in `[screenshot]` of provost.toml, then: provost down && provost up")
        }
        Refusal::WorkerBroken { .. } => fault.hint("`provost doctor` says what to mend"),
        Refusal::PasskeyRefused { .. } => fault.hint("`provost passkey list` lists passkeys, and how they stand"),
        Refusal::NameTaken { agent } => fault.hint(format!(
            "set PROVOST_TOKEN; or, in a terminal in which no agent has run: provost token revoke --of {}",
            provost_base::shell_word(agent.as_str())
        )),
        Refusal::NameElsewhere { agent } => fault.hint(format!(
            "a token proves that you are this agent: provost token mint {}",
            provost_base::shell_word(agent.as_str())
        )),
        Refusal::TokenNotFound => fault.hint("`provost token list` lists what there is"),
        Refusal::Crew(CrewRefusal::NotInCrew) => fault.hint("announce it first: `provost adapter run` does, and POST /agents/announce at Agent Protocol's door"),
        Refusal::Crew(CrewRefusal::FileClaimed { .. } | CrewRefusal::FileLocked { .. }) => fault.hint("work on something else, or ask the holder"),
        Refusal::Crew(CrewRefusal::FileConflicted) => fault.hint("an agent or a person has to decide whose change counts: resource.conflict_resolved"),
        Refusal::Busy { .. } => fault.hint("try again in a moment"),
        refusal => coordinate::with_data(fault, &refusal),
    }
}

/// Returns the status and the word of a refusal.
fn word(refusal: &Refusal) -> (StatusCode, &'static str) {
    match refusal {
        Refusal::OutOfScope { .. } => (StatusCode::FORBIDDEN, "out_of_scope"),
        Refusal::RoleTooLow { .. } => (StatusCode::FORBIDDEN, "role_too_low"),
        Refusal::OnlyWorks(_) => (StatusCode::FORBIDDEN, "only_works"),
        Refusal::UserCannot { .. } => (StatusCode::CONFLICT, "user_cannot"),
        Refusal::VersionMismatch { .. } | Refusal::VersionMissing { .. } | Refusal::RegisterFirst { .. } => {
            (StatusCode::FORBIDDEN, "version")
        }
        Refusal::TaskExists => (StatusCode::CONFLICT, "task_exists"),
        Refusal::TaskNotFound => (StatusCode::NOT_FOUND, "task_not_found"),
        Refusal::TaskNotYours { .. } => (StatusCode::FORBIDDEN, "task_not_yours"),
        Refusal::TaskFinished => (StatusCode::CONFLICT, "task_finished"),
        Refusal::TaskCannot { .. } => (StatusCode::CONFLICT, "task_cannot"),
        Refusal::NoChanges => (StatusCode::NOT_FOUND, "nothing_kept"),
        Refusal::ChangesGone => (StatusCode::GONE, "discarded"),
        Refusal::MergeCannot { .. } => (StatusCode::CONFLICT, "merge_refused"),
        Refusal::ChangesInUse { .. } => (StatusCode::CONFLICT, "apply_not_over"),
        Refusal::WorkerBroken { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "worker_broken"),
        Refusal::NoWorkTree { .. } => (StatusCode::CONFLICT, "no_work_tree"),
        Refusal::NotPlaced { .. } => (StatusCode::CONFLICT, "not_placed"),
        Refusal::WorkTreeCannot { .. } => (StatusCode::CONFLICT, "work_tree_cannot"),
        Refusal::SessionCannot { .. } => (StatusCode::CONFLICT, "session_cannot"),
        Refusal::NotYoursToSwitch { .. } => (StatusCode::FORBIDDEN, "held_back"),
        Refusal::ApprovalNotFound(_) => (StatusCode::NOT_FOUND, "approval_not_found"),
        Refusal::ApprovalOwn | Refusal::ApprovalFromAsker { .. } => (StatusCode::FORBIDDEN, "approval_own"),
        Refusal::ApprovalNotYours { .. } => (StatusCode::FORBIDDEN, "approval_not_yours"),
        Refusal::ApprovalChanged => (StatusCode::CONFLICT, "approval_changed"),
        Refusal::PasskeyRefused { .. } => (StatusCode::FORBIDDEN, "passkey_refused"),
        Refusal::Denied { .. } => (StatusCode::FORBIDDEN, "denied"),
        Refusal::SwitchedOff { .. } => (StatusCode::FORBIDDEN, "switched_off"),
        Refusal::Crew(CrewRefusal::NotInCrew) => (StatusCode::NOT_FOUND, "not_in_crew"),
        Refusal::Crew(
            CrewRefusal::FileClaimed { .. } | CrewRefusal::FileLocked { .. } | CrewRefusal::FileConflicted,
        ) => (StatusCode::CONFLICT, "file_held"),
        Refusal::Crew(CrewRefusal::PersonOnly) => (StatusCode::CONFLICT, "person_only"),
        Refusal::Crew(_) => (StatusCode::CONFLICT, "crew"),
        Refusal::MailNotFound => (StatusCode::NOT_FOUND, "mail_not_found"),
        Refusal::AlreadyNamed { .. } => (StatusCode::CONFLICT, "already_named"),
        Refusal::LockConflict(_) => (StatusCode::CONFLICT, "lock_conflict"),
        Refusal::WouldDeadlock { .. } => (StatusCode::CONFLICT, "would_deadlock"),
        Refusal::NotSoMany { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "not_so_many"),
        Refusal::NeedsYours { .. } => (StatusCode::CONFLICT, "needs_yours"),
        Refusal::HeldElsewhere(_) => (StatusCode::CONFLICT, "held_elsewhere"),
        Refusal::LockNotFound => (StatusCode::NOT_FOUND, "lock_not_found"),
        Refusal::LockNotHeld { .. } => (StatusCode::FORBIDDEN, "lock_not_held"),
        Refusal::IntentNotFound => (StatusCode::NOT_FOUND, "intent_not_found"),
        Refusal::IntentNotOwned { .. } => (StatusCode::FORBIDDEN, "intent_not_owned"),
        Refusal::IntentCannot { .. } => (StatusCode::CONFLICT, "intent_cannot"),
        Refusal::ContractNotFound => (StatusCode::NOT_FOUND, "contract_not_found"),
        Refusal::ContractSettled { .. } => (StatusCode::CONFLICT, "contract_settled"),
        Refusal::ContractOwn => (StatusCode::FORBIDDEN, "contract_own"),
        Refusal::ContractNotYours { .. } => (StatusCode::FORBIDDEN, "contract_not_yours"),
        Refusal::NameTaken { .. } => (StatusCode::FORBIDDEN, "reserved"),
        Refusal::NameElsewhere { .. } => (StatusCode::FORBIDDEN, wire::NAME_ELSEWHERE),
        Refusal::OtherSpelling { .. } => (StatusCode::FORBIDDEN, "other_spelling"),
        Refusal::TokenNotFound => (StatusCode::NOT_FOUND, "token_not_found"),
        Refusal::TooOften { .. } => (StatusCode::TOO_MANY_REQUESTS, "too_often"),
        Refusal::Busy { .. } => (StatusCode::TOO_MANY_REQUESTS, "busy"),
        Refusal::Quota { .. } => (StatusCode::TOO_MANY_REQUESTS, "quota"),
        Refusal::TooLong { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_long"),
        Refusal::Exists { .. } => (StatusCode::CONFLICT, "exists"),
        Refusal::NotReady { .. } => (StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
        Refusal::Unavailable { .. } | Refusal::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    }
}

/// Adds the missing right, for programs.
fn naming_right(fault: OwnError, refusal: &Refusal) -> OwnError {
    let Refusal::OutOfScope { needs } = refusal else { return fault };
    fault.data(json!({ "needs": needs.as_str() }))
}

fn text(it: Option<String>) -> Option<Box<str>> {
    it.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).map(Into::into)
}

pub(super) fn agent(name: &str, member: &str) -> Result<AgentId, OwnError> {
    AgentId::parse(name).map_err(|err| OwnError::invalid(format!("{member} {err}")))
}

pub(super) fn task_id(id: &str) -> Result<TaskId, OwnError> {
    TaskId::parse(id).map_err(|err| OwnError::invalid(format!("task {err}")))
}

/// Makes a delegation. Its payload is that of a DevIt client, since a polling worker gets it unchanged.
pub(super) fn delegate(it: wire::Delegate) -> Result<Delegate, OwnError> {
    let id = it.task.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let placement = queue::placement(&it)?;
    let goal = text(Some(it.goal)).ok_or_else(|| OwnError::invalid("goal is empty"))?;
    let seconds = it.timeout_s.unwrap_or(DELEGATION_TIMEOUT_S);
    if seconds == 0 {
        return Err(OwnError::invalid("timeout_s is zero"));
    }
    let tool = text(it.tool).unwrap_or_else(|| "devit_delegate".into());
    let (model, format, working_dir) = (text(it.model), text(it.format), text(it.working_dir));
    let mut order = json!({ "action": tool, "goal": goal, "timeout": seconds });
    for (name, value) in [("model", &model), ("format", &format), ("working_dir", &working_dir)] {
        if let Some(value) = value {
            order[name] = json!(value);
        }
    }
    let context = it.context.filter(|it| !it.is_null());
    if let Some(context) = &context {
        order["context"] = context.clone();
    }
    WatchPatterns::check(&it.watch_patterns).map_err(|err| OwnError::invalid(err.to_string()))?;
    if !it.watch_patterns.is_empty() {
        order["watch_patterns"] = json!(it.watch_patterns);
    }
    let return_to = text(it.return_to);
    let mut payload = json!({ "task": order });
    if let Some(return_to) = &return_to {
        payload["return_to"] = json!(return_to);
    }
    let delegation = Delegate {
        task: queue::new_task(&id)?,
        goal,
        worker: agent(&it.worker, "worker")?,
        return_to: return_to.map(|it| agent(&it, "return_to")).transpose()?,
        tool: Tool { name: tool, ..Tool::default() },
        timeout: Ttl::seconds_clamped(seconds),
        model,
        context: context.as_ref().map(Json::from_value),
        watch_patterns: it.watch_patterns.into_iter().map(Into::into).collect(),
        working_dir,
        format,
        payload: Json::from_value(&payload),
        errand: None,
        work_tree: it.worktree.map(|branch| branch.trim().into()),
        continues: talk::continued(it.continues.as_deref())?,
        placement,
        trace: it.traceparent.as_deref().and_then(|it| TraceContext::parse(it).ok()).map(Box::new),
    };
    delegation.checked().map_err(|err| OwnError::invalid(err.to_string()))
}

pub(super) fn screenshot(it: wire::Screenshot) -> Result<TakeScreenshot, OwnError> {
    let id = it.task.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    Ok(TakeScreenshot { task: queue::new_task(&id)? })
}

pub(super) fn cancel(it: wire::Cancel) -> Result<CancelTask, OwnError> {
    let reason = text(it.reason).unwrap_or_else(|| "no reason given".into());
    Ok(CancelTask { task: task_id(&it.task)?, reason })
}

pub(super) fn report(it: wire::Report) -> Result<ReportTask, OwnError> {
    let status = match it.status.as_str() {
        "pending" => Status::Pending,
        "in_progress" | "progress" | "blocked" => Status::InProgress,
        "completed" => Status::Completed,
        "failed" => Status::Failed,
        "cancelled" => Status::Cancelled,
        other => {
            let known = "pending, in_progress, completed, failed, cancelled, ack";
            return Err(OwnError::invalid(format!("status '{other}' is not one of {known}")));
        }
    };
    let json = |it: Option<Value>| it.filter(|it| !it.is_null()).as_ref().map(Json::from_value);
    let report = Report {
        summary: it.summary.unwrap_or_default().into(),
        details: json(it.details),
        evidence: json(it.evidence),
        ..Report::default()
    };
    Ok(ReportTask { task: task_id(&it.task)?, status, report, message: None })
}

/// Reads a record of a person's tools: a change of keys or secrets. All other records are the daemon's own, and no
/// client may write them.
pub(super) fn record(it: &wire::Record) -> Result<Record, OwnError> {
    const WHAT: [&str; 7] = [
        "agent.added",
        "agent.removed",
        "key.added",
        "key.rotated",
        "key.revoked",
        "secret.added",
        "secret.removed",
    ];
    if !WHAT.contains(&&*it.what) {
        return Err(OwnError::invalid(format!("what is one of {}", WHAT.join(", "))));
    }
    if it.subject.len() > ID_LEN_MAX || it.details.to_string().len() > KEY_FILE_BYTES_MAX {
        return Err(OwnError::invalid("subject or details are too long"));
    }
    let details = Json::from_value(&it.details);
    Ok(Record { what: it.what.as_str().into(), subject: it.subject.as_str().into(), details })
}

pub(super) fn answer(it: wire::Answer) -> Result<AnswerApproval, OwnError> {
    let verdict = if it.grant { Verdict::Granted } else { Verdict::Denied };
    let shown = it.digest.map(Digest::try_from).transpose();
    let shown = shown.map_err(|err| OwnError::invalid(format!("digest: {err}")))?;
    Ok(AnswerApproval {
        approval: ApprovalId(it.approval),
        verdict,
        note: text(it.note),
        shown,
        signed: None,
    })
}

/// The tasks for which a task still waits: one that has ended without a beginning waits for none.
fn waits_for(task: &Task) -> Vec<String> {
    let waits = task.waits.iter().filter(|_| !task.state.is_finished());
    waits.map(ToString::to_string).collect()
}

/// Encodes a task; `there` says whether its changes are on the disk.
pub(super) fn task(task: &Task, there: bool) -> wire::Task {
    let order = &task.order;
    let metadata = task.notes.last().and_then(|note| note.report.metadata.as_ref()).map(Json::value);
    let exit_code = metadata.as_ref().and_then(|it| it.get("exit_code")).and_then(Value::as_i64);
    let told = wire::Task {
        id: order.task.to_string(),
        goal: order.goal.to_string(),
        worker: order.worker.to_string(),
        worker_kind: kind_word(task.kind).into(),
        capture: task.capture,
        asked_by: task.asked_by.to_string(),
        state: state_word(&task.state).into(),
        approval: match task.state {
            TaskState::Awaiting { approval } => Some(approval.0),
            _ => None,
        },
        waits_for: Vec::new(),
        waits_for_tasks: waits_for(task),
        priority: None,
        pool: None,
        on: None,
        host: None,
        left_by: Vec::new(),
        place: None,
        attempt: None,
        again_at: None,
        rule: task.rule.to_string(),
        working_dir: task.directory.as_ref().map(|it| it.relative.to_string()),
        created_at: task.created_at.rfc3339(),
        updated_at: task.updated_at.rfc3339(),
        started_at: run::started_at(task, metadata.as_ref()),
        ended_at: run::ended_at(task),
        timeout_s: order.timeout.as_seconds(),
        format: order.format.as_ref().map(ToString::to_string),
        model: order.model.as_ref().map(ToString::to_string),
        model_used: task.model_used.as_ref().map(ToString::to_string),
        usage: Usage::of_metadata(task.notes.last().and_then(|it| it.report.metadata.as_ref())).map(used),
        counted: None,
        beside: task.beside.iter().map(ToString::to_string).collect(),
        tainted: task.tainted(),
        handoff: task.handoff.as_ref().filter(|it| it.is_tainted()).map(scan_report),
        files_changed: task.watched.as_ref().map(run::files_changed),
        worktree: order.work_tree.as_ref().map(ToString::to_string),
        changes: task.changes.as_ref().map(|it| changes(task.id(), it, there)),
        session: task.talk.as_ref().and_then(|it| talk::session(it)),
        said: task.talk.iter().flat_map(|it| &it.sayings).map(talk::saying).collect(),
        failure: task.failure.as_ref().and_then(|it| serde_json::to_value(it).ok()),
        exit_code,
        notes: task.notes.iter().map(note).collect(),
    };
    queue::with_placement(task, told)
}

/// Encodes a worker that only other hosts have.
pub(super) fn worker_elsewhere(id: &AgentId, hosts: Vec<String>) -> wire::WorkerAt {
    let (id, kind) = (id.to_string(), "cli".into());
    wire::WorkerAt { id, kind, broken: None, stream: None, switched: None, hosts }
}

/// Encodes the usage of a run.
pub(super) fn used(it: Usage) -> wire::Used {
    wire::Used {
        tokens_input: it.input,
        tokens_output: it.output,
        tokens_reasoning: it.reasoning,
        tokens_cache_read: it.cache_read,
        tokens_cache_write: it.cache_write,
        cost_usd: it.cost_microusd.map(|it| it as f64 / 1e6),
        model: it.model.map(Into::into),
    }
}

fn scan_report(it: &ScanReport) -> wire::ScanReport {
    let finding = |it: &Finding| wire::Finding {
        path: it.path.to_string(),
        kind: it.kind.as_str().into(),
        change: it.change.as_str().into(),
    };
    wire::ScanReport {
        findings: it.findings.iter().map(finding).collect(),
        more: it.more,
        unknown: it.unknown.as_ref().map(ToString::to_string),
    }
}

fn changes(task: &TaskId, it: &TaskChanges, there: bool) -> wire::Changes {
    let next = ["task diff", "apply", "discard"].map(|it| task_command(it, task.as_str(), ""));
    let there = there && it.state() != ChangesState::Discarded;
    let is_gone = !there && !matches!(it.state(), ChangesState::Discarded | ChangesState::Merged);
    wire::Changes {
        state: if is_gone { "removed" } else { it.state().as_str() }.into(),
        files: it.files,
        added: it.added,
        removed: it.removed,
        taken: u32::try_from(it.taken.len()).unwrap_or(u32::MAX),
        merged_into: it.merged.as_deref().map(str::to_owned),
        next: if there { next.into() } else { Vec::new() },
    }
}

fn note(note: &TaskNote) -> wire::Note {
    wire::Note {
        at: note.at.rfc3339(),
        from: note.from.to_string(),
        status: note.said.to_string(),
        summary: note.report.summary.to_string(),
        details: note.report.details.as_ref().map(Json::value),
        evidence: note.report.evidence.as_ref().map(Json::value),
        metadata: note.report.metadata.as_ref().map(Json::value),
    }
}

pub(super) fn kind_word(kind: WorkerKind) -> &'static str {
    match kind {
        WorkerKind::Cli => "cli",
        WorkerKind::Polling => "polling",
    }
}

/// Encodes tasks as a list; the changes of those in `there` are on the disk.
pub(super) fn tasks(snapshot: &Snapshot, there: &BTreeSet<TaskId>, awaited: &[AwaitedNeed]) -> wire::Tasks {
    wire::Tasks {
        active: snapshot.active.iter().map(|it| with_needs(listed(it, false), awaited)).collect(),
        finished: snapshot.finished.tasks.iter().map(|it| listed(it, there.contains(it.id()))).collect(),
        truncated: snapshot.finished.truncated,
        unread: snapshot.finished.unread.as_deref().map(str::to_owned),
        completed: snapshot.completed,
        failed: snapshot.failed,
    }
}

/// Adds the needs for which a task waits.
pub(super) fn with_needs(task: wire::Task, awaited: &[AwaitedNeed]) -> wire::Task {
    let its = awaited.iter().filter(|it| it.task.as_str() == task.id);
    let waits_for = its.map(|it| wire::AwaitedNeed {
        resource: it.resource.to_string(),
        holder: it.by.as_ref().map(ToString::to_string),
        since: it.since.rfc3339(),
    });
    wire::Task { waits_for: waits_for.collect(), ..task }
}

/// Encodes a task as a row of a page.
pub(super) fn row(it: &Task, there: &BTreeSet<TaskId>, awaited: &[AwaitedNeed]) -> wire::Task {
    with_needs(listed(it, there.contains(it.id())), awaited)
}

/// Encodes a task for a list, with only the beginning of its goal: prompts of agents have up to mebibytes.
fn listed(it: &Task, there: bool) -> wire::Task {
    let mut row = task(it, there);
    row.said.clear();
    row.goal.truncate(row.goal.floor_char_boundary(SUMMARY_LEN_MAX.min(row.goal.len())));
    row
}

/// Describes the worker's access to the network in full, since the approval covers it.
fn network(parked: &Parked) -> String {
    match &parked.facts.network {
        Network::None => "none".into(),
        Network::Ports(ports) => {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            format!("ports {}", ports.join(" "))
        }
        Network::Hosts(_) => format!("hosts {}", parked.terms.hosts.join(" ")),
    }
}

pub(super) fn approval(parked: &Parked, enrolled: bool) -> wire::Approval {
    let order = match &parked.command {
        Command::Delegate(order) => Some(order),
        _ => None,
    };
    let apply = match &parked.command {
        Command::ApplyFiles(verb) => Some(verb),
        _ => None,
    };
    let worker = order.map(|it| &it.worker).or_else(|| apply?.worker.as_ref());
    let risk = serde_json::to_value(parked.risk).ok().and_then(|it| it.as_str().map(str::to_owned));
    wire::Approval {
        id: parked.id.0,
        asked_by: parked.who.agent().to_string(),
        door: parked.who.door().name().into(),
        verb: parked.command.name().into(),
        task: parked.task().or_else(|| apply?.of.as_ref()).map(ToString::to_string),
        inside: (parked.who.proof() == provost_domain::Proof::Jailed)
            .then(|| parked.who.session().to_string()),
        worker: worker.map(ToString::to_string),
        tool: parked.tool().into(),
        rule: parked.rule.to_string(),
        reason: parked.reason.to_string(),
        risk: risk.unwrap_or_default(),
        working_dir: parked.facts.directory.as_ref().map(|it| it.relative.to_string()),
        network: network(parked),
        secrets: parked.facts.secrets.iter().map(|it| format!("{} by {}", it.name, it.by.name())).collect(),
        goal: order.map(|it| it.goal.to_string()),
        request: match &parked.command {
            Command::Delegate(order) => Some(order.shown().value()),
            Command::ApplyFiles(verb) => Some(verb.shown().value()),
            Command::QueueMerges(verb) => Some(verb.shown().value()),
            Command::AskPermission(verb) => Some(verb.shown().value()),
            _ => None,
        },
        by: approvers_now(&parked.by, enrolled),
        host: parked.by.contains(&Approver::Host),
        asked_at: parked.asked_at.rfc3339(),
        expires_at: parked.expires_at.rfc3339(),
        asked_again: parked.again.map_or(0, |it| it.asked),
        asks_left: parked.asks_left(),
        digest: parked.shown.to_string(),
    }
}

pub(super) fn known_agent(known: &KnownAgent) -> wire::Agent {
    let agent = known.agent.as_deref();
    wire::Agent {
        id: known.id.to_string(),
        version: agent.and_then(|it| it.version.as_ref()).map(ToString::to_string),
        caps: agent.map(|it| it.caps.iter().map(ToString::to_string).collect()).unwrap_or_default(),
        alive: known.alive,
        last_seen: known.last_seen.map(|it| it.rfc3339()),
        registered_at: agent.map(|it| it.registered_at.rfc3339()),
        name: agent.and_then(|it| it.nick.as_ref()).map(|it| it.name.to_string()),
        doors: known.doors.iter().map(|it| it.name().to_owned()).collect(),
        host: known.host.map(|it| it.short()),
        mail: known.mail,
        asked: known.asked,
    }
}
