//! The dictionary between Agent Protocol's words and Provost's. Agent Protocol, 2 and 3.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{ids, wire};
use provost_base::{PostSeq, SymbolPath};
use provost_domain::post::Post;
use provost_domain::{
    Assignment, AssignmentState, Claim, Content, CrewEvent, Elected, Event, EventKind, Handoff, HandoffState,
    Hold, Member, Role, Seen, Standing, Version,
};

/// The daemon's name at this door, and its name elsewhere.
pub(super) const SYSTEM: &str = "system";
const DAEMON: &str = "provost";

/// Names under which this door reports events itself; the door refuses a client that uses one.
pub(super) const OURS: [&str; 4] = [SYSTEM, DAEMON, "watcher", "unknown"];

pub(super) const ROLES: [(&str, Role); 3] =
    [("lead", Role::Lead), ("specialist", Role::Specialist), ("worker", Role::Worker)];

pub(super) const STATUSES: [(&str, Standing); 5] = [
    ("idle", Standing::Idle),
    ("working", Standing::Working),
    ("blocked", Standing::Blocked),
    ("waiting_review", Standing::WaitingReview),
    ("offline", Standing::Offline),
];

pub(super) const TASK_STATUSES: [(&str, AssignmentState); 6] = [
    ("queued", AssignmentState::Queued),
    ("assigned", AssignmentState::Assigned),
    ("in_progress", AssignmentState::InProgress),
    ("review", AssignmentState::Review),
    ("done", AssignmentState::Done),
    ("blocked", AssignmentState::Blocked),
];

/// Returns Provost's value for a word of the protocol.
pub(super) fn read<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(it, _)| *it == word).map(|(_, value)| *value)
}

/// Returns the protocol's word for a value of Provost's.
fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, it)| *it == value).map_or("unknown", |(word, _)| word)
}

pub(super) fn role(role: Role) -> &'static str {
    word(&ROLES, role)
}

pub(super) fn status(standing: Standing) -> &'static str {
    word(&STATUSES, standing)
}

pub(super) fn task_status(state: AssignmentState) -> &'static str {
    word(&TASK_STATUSES, state)
}

fn handoff_status(state: HandoffState) -> &'static str {
    match state {
        HandoffState::Pending => "pending",
        HandoffState::Accepted => "accepted",
        HandoffState::Rejected => "rejected",
    }
}

fn resource_state(held: &Hold) -> &'static str {
    match held {
        Hold::Free => "free",
        Hold::Claimed { .. } => "claimed",
        Hold::Locked { .. } => "locked",
        Hold::Conflicted { .. } => "conflicted",
    }
}

pub(super) fn hash(content: Content) -> String {
    match content {
        Content::Missing => "file_not_found".into(),
        Content::Unreadable => "hash_error".into(),
        sha_or_too_large => sha_or_too_large.to_string(),
    }
}

pub(super) fn agent(it: &Member) -> wire::Agent<'_> {
    wire::Agent {
        id: it.id.as_str(),
        tool: &it.tool,
        role: role(it.role()),
        status: status(it.standing),
        current_task: None,
        capabilities: &it.capabilities,
        joined_at: it.joined_at.0,
        last_heartbeat: it.seen_at.0,
        requested_role: (it.asked == Role::Lead && !it.leads).then_some("lead"),
    }
}

pub(super) fn resource(it: &Claim) -> wire::Resource<'_> {
    wire::Resource {
        path: it.file.as_str(),
        state: resource_state(&it.held),
        owner: it.held.owner().map(|it| it.as_str()),
        claimed_at: it.held.since().map(|it| it.0),
        last_modified_by: it.last.as_ref().map(|it| it.as_str()),
        content_hash: hash(it.content),
    }
}

pub(super) fn task(it: &Assignment) -> wire::Task<'_> {
    wire::Task {
        id: it.id.as_str(),
        title: &it.title,
        description: &it.description,
        assigned_to: it.to.as_deref(),
        assigned_by: it.by.as_str(),
        status: task_status(it.state),
        resources: &it.files,
        depends_on: &it.after,
        created_at: it.created_at.0,
        started_at: it.started_at.map(|it| it.0),
        completed_at: it.completed_at.map(|it| it.0),
    }
}

pub(super) fn handoff(it: &Handoff) -> wire::Handoff<'_> {
    wire::Handoff {
        id: it.id.as_str(),
        from_agent: it.from.as_str(),
        to_agent: it.to.as_deref(),
        task_id: &it.assignment,
        status: handoff_status(it.state),
        summary: &it.summary,
        files_modified: &it.modified,
        files_created: &it.created,
        context: &it.context,
        blockers: &it.blockers,
        created_at: it.created_at.0,
    }
}

/// Returns an agent's name on the timeline, in this door's spelling.
fn agent_name(name: &str) -> &str {
    if name == DAEMON { SYSTEM } else { name }
}

/// Returns the name in events for a name at this door, for a filter by agent.
pub(super) fn agent_filter(name: &str) -> &str {
    if name == SYSTEM { DAEMON } else { name }
}

/// Encodes an event of the timeline; `None` for events that are not on it.
pub(super) fn event(it: &Event) -> Option<wire::Event<'_>> {
    let topic = it.topic()?;
    let Details { before, after, metadata } = details(it);
    let note = match &it.kind {
        EventKind::Crew(CrewEvent::Noted(note)) => Some(note),
        _ => None,
    };
    let id = note.and_then(|it| it.origin.as_ref()).map(|it| it.id.to_string());
    // The resource is shown as its agent wrote it.
    let resource = note.map_or(topic.file, |it| it.file.as_deref());
    Some(wire::Event {
        id: id.unwrap_or_else(|| ids::event(it.seq)),
        timestamp: topic.at.0,
        agent_id: agent_name(topic.agent),
        action: topic.word,
        resource,
        task_id: topic.task,
        before_hash: before,
        after_hash: after,
        metadata,
    })
}

/// The data of an event beside its topic.
struct Details {
    before: Option<String>,
    after: Option<String>,
    metadata: Box<RawValue>,
}

impl Details {
    fn of(metadata: &Value) -> Self {
        Self { before: None, after: None, metadata: wire::raw(metadata) }
    }

    fn hashes(self, before: Option<Content>, after: Option<Content>) -> Self {
        Self { before: before.map(hash), after: after.map(hash), ..self }
    }
}

/// Returns the door whose word for a lock is shown: wit has only symbols.
fn lock_door(at: &SymbolPath) -> &'static str {
    if at.is_resource() { "own" } else { "wit" }
}

fn details(it: &Event) -> Details {
    let kind = match &it.kind {
        EventKind::Crew(event) => return of_crew(event),
        EventKind::Recorded { details, .. } => {
            json!({ "type": "daemon_started", "port": details.value()["port"] })
        }
        EventKind::LockAcquired { symbol, until, .. } => {
            json!({ "door": lock_door(symbol), "symbol": symbol.to_string(), "expires_at": until.0 })
        }
        EventKind::LockFreed { symbol, why, .. } => {
            json!({ "door": lock_door(symbol), "symbol": symbol.to_string(), "reason": why })
        }
        EventKind::IntentDeclared { intent, files, .. } => {
            json!({ "door": "wit", "intent_id": intent, "files": files })
        }
        EventKind::IntentMoved { intent, to, .. } => {
            json!({ "door": "wit", "intent_id": intent, "status": to.as_str() })
        }
        EventKind::ContractProposed { contract, symbol, .. } => {
            json!({ "door": "wit", "contract_id": contract, "symbol": symbol.to_string() })
        }
        EventKind::ContractMoved { contract, symbol, to } => {
            json!({ "door": "wit", "contract_id": contract, "symbol": symbol.to_string(), "status": to.as_str() })
        }
        EventKind::StakesMet { by, with, .. } => json!({
            "type": "overlap", "agents_involved": [by, it.actor], "previous_owner": by, "intruder": it.actor,
            "held_as": with.as_str(),
        }),
        EventKind::ApprovalAsked { approval, verb, rule, .. } => {
            json!({ "type": "approval", "approval_id": approval, "verb": verb, "rule": rule })
        }
        EventKind::ApprovalAskedAgain { approval, asked, left, .. } => {
            json!({ "type": "approval", "approval_id": approval, "asked_again": asked, "asks_left": left })
        }
        EventKind::ApprovalAnswered { approval, verdict, .. } => {
            json!({ "type": "approval", "approval_id": approval, "verdict": verdict })
        }
        EventKind::ApprovalExpired { approval } => {
            json!({ "type": "approval", "approval_id": approval, "verdict": "expired" })
        }
        EventKind::TaskDelegated { worker, tool, .. } => {
            json!({ "door": "devit", "assigned_to": worker, "tool": tool })
        }
        EventKind::Published { n, post, .. } => of_post(*n, post),
        EventKind::TaskFinished { status, .. } => json!({ "door": "devit", "status": status.as_str() }),
        EventKind::TaskAssigned { .. } | EventKind::TaskStarted { .. } => json!({ "door": "devit" }),
        _ => json!({}),
    };
    Details::of(&kind)
}

/// Encodes a message between agents at the broker door.
fn of_post(n: PostSeq, post: &Post) -> Value {
    let mut told = json!({ "door": "broker", "type": post.kind(), "seq": n });
    let says = match post {
        Post::Artifact { status, files, .. } => json!({ "status": status, "files": files }),
        Post::Blocked { needs, from, .. } => json!({ "needs": needs, "from": from }),
        Post::Verified { agent, message, .. } => json!({ "agent": agent, "message": message }),
        Post::Feedback { agent, errors, .. } => json!({ "agent": agent, "errors": errors }),
        Post::Question { question, .. } => json!({ "question": question }),
        Post::Answer { agent, answer, re, .. } => json!({ "agent": agent, "answer": answer, "re": re }),
        Post::Intent { files, summary, valid_s, .. } => {
            let files: Vec<&str> = files.iter().map(|it| &*it.path).collect();
            json!({ "files": files, "summary": summary, "valid_for_seconds": valid_s })
        }
        Post::Advanced { branch, base, sha, .. } => json!({ "branch": branch, "base": base, "sha": sha }),
        Post::Status { .. } | Post::Learning { .. } | Post::VerifyNow { .. } => json!({}),
    };
    if let (Some(told), Value::Object(says)) = (told.as_object_mut(), says) {
        told.extend(says);
    }
    told
}

/// Encodes a version of a file in conflict, with its place.
fn version(it: &Version) -> Value {
    let path = it.kept.as_ref().map(|it| it.path.as_str());
    json!({ "agent_id": it.agent, "hash": hash(it.content), "path": path })
}

fn of_crew(event: &CrewEvent) -> Details {
    match event {
        CrewEvent::MemberJoined { tool, role: part, capabilities } => {
            Details::of(&json!({ "tool": tool, "role": role(*part), "capabilities": capabilities }))
        }
        CrewEvent::MemberLeft | CrewEvent::MemberBeat => Details::of(&json!({})),
        CrewEvent::MemberMoved { member, from, to, why } => match why {
            None => Details::of(&json!({ "from": status(*from), "to": status(*to) })),
            Some(why) => Details::of(
                &json!({ "agent": member, "from": status(*from), "to": status(*to), "reason": why }),
            ),
        },
        CrewEvent::LeadElected { lead, why } => {
            let reason = match why {
                Elected::Departed => "previous_lead_departed",
                Elected::Nobody => "no_lead",
                Elected::Configured => "configured",
                Elected::Appointed => "appointed",
            };
            Details::of(&json!({ "type": "lead_promotion", "new_lead": lead, "reason": reason }))
        }
        CrewEvent::ClaimGranted { first: true, .. } => Details::of(&json!({ "initial_claim": true })),
        CrewEvent::ClaimGranted { .. } => Details::of(&json!({})),
        CrewEvent::ClaimFreed { content, why, .. } => {
            let metadata = why.as_ref().map_or(json!({}), |why| json!({ "reason": why }));
            Details::of(&metadata).hashes(None, Some(*content))
        }
        CrewEvent::ClaimLocked { locked, .. } => {
            let kind = if *locked { "resource_locked" } else { "resource_unlocked" };
            Details::of(&json!({ "type": kind }))
        }
        CrewEvent::FileChanged { how, tracked, owner, by, before, after, .. } => {
            let metadata = match (how, tracked, by.as_ref().or(owner.as_ref())) {
                (Seen::Created, ..) => json!({ "type": "file_created" }),
                (Seen::Deleted, ..) => json!({ "type": "file_deleted" }),
                (Seen::Changed, false, _) => json!({ "tracked": false }),
                (Seen::Changed, true, Some(_)) => json!({}),
                (Seen::Changed, true, None) => json!({ "warning": "unclaimed_modification" }),
            };
            let before = before.filter(|_| *how == Seen::Changed);
            Details::of(&metadata).hashes(before, *after)
        }
        CrewEvent::ConflictFound { owner, intruder, before, after, versions, .. } => Details::of(&json!({
            "agents_involved": [owner, intruder], "previous_owner": owner, "intruder": intruder,
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        }))
        .hashes(Some(*before), Some(*after)),
        CrewEvent::AssignmentMade { title, to, .. } => {
            Details::of(&json!({ "title": title, "assigned_to": to }))
        }
        CrewEvent::AssignmentMoved { from, to, .. } => {
            Details::of(&json!({ "from": task_status(*from), "to": task_status(*to) }))
        }
        CrewEvent::TransferOffered { id, to, files, .. } => {
            Details::of(&json!({ "handoff_id": id, "to_agent": to, "files_count": files }))
        }
        CrewEvent::TransferAnswered { id, accepted: true, .. } => Details::of(&json!({ "handoff_id": id })),
        CrewEvent::TransferAnswered { id, reason, .. } => {
            Details::of(&json!({ "handoff_id": id, "reason": reason }))
        }
        CrewEvent::Noted(note) => Details {
            before: note.before.as_deref().map(Into::into),
            after: note.after.as_deref().map(Into::into),
            metadata: RawValue::from_string(note.metadata.as_str().into()).unwrap_or_default(),
        },
    }
}
