//! The dictionary between wit's words and Provost's. wit, 5 to 7.4.

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::wire::{self, Faults};
use provost_base::{AgentId, Fence, Timestamp};
use provost_domain::command::Rival;
use provost_domain::{ContractStatus, IntentStatus, Refusal, RefusalKind, Reservation};
use provost_service::ProposeError;

/// A refusal in wit's words.
pub(super) struct WitError(pub(super) wire::Error);

impl WitError {
    fn of(code: i32, message: &'static str, data: Option<Box<RawValue>>) -> Self {
        Self(wire::Error { code, message, data })
    }

    /// Makes a method's own error: the word that programs compare, and its data.
    pub(super) fn method(token: &'static str, data: &impl Serialize) -> Self {
        Self::of(-32000, token, Some(wire::json(data)))
    }

    /// Makes a method's error without data.
    fn bare(token: &'static str) -> Self {
        Self::of(-32000, token, None)
    }

    /// Makes the error for wrong parameters, with all faults.
    pub(super) fn params(faults: Faults) -> Self {
        Self::invalid(&faults)
    }

    pub(super) fn invalid(data: &impl Serialize) -> Self {
        Self::of(-32600, "INVALID_REQUEST", Some(wire::json(data)))
    }

    pub(super) fn not_json() -> Self {
        Self::of(-32700, "PARSE_ERROR", None)
    }

    pub(super) fn not_a_request() -> Self {
        Self::of(-32600, "INVALID_REQUEST", None)
    }

    pub(super) fn unknown_method() -> Self {
        Self::of(-32601, "METHOD_NOT_FOUND", None)
    }

    /// Makes the error for another version; `received` is the text of `witVersion`.
    pub(super) fn other_version(received: Option<&str>) -> Self {
        #[derive(Serialize)]
        struct Versions {
            expected: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            received: Option<Box<RawValue>>,
        }
        let received = received.and_then(|it| RawValue::from_string(it.into()).ok());
        let data = wire::json(&Versions { expected: wire::VERSION, received });
        Self::of(-32001, "VERSION_MISMATCH", Some(data))
    }

    /// Makes the error for a session whose name is reserved.
    pub(super) fn reserved() -> Self {
        let message = "this name is reserved: it has a key of its own, or belongs to the daemon, a person or an agent of another host; choose another sessionId";
        Self::method("SESSION_RESERVED", &json!({ "message": message }))
    }
}

impl From<Refusal> for WitError {
    fn from(refusal: Refusal) -> Self {
        refused(&refusal)
    }
}

/// Returns the error for a refusal, for each of them.
pub(super) fn refused(refusal: &Refusal) -> WitError {
    let message = refusal.to_string();
    match refusal {
        Refusal::LockConflict(rival) | Refusal::WouldDeadlock { rival, .. } => {
            WitError::method("LOCK_CONFLICT", &Conflict::of(refusal, rival))
        }
        Refusal::HeldElsewhere(stake) => {
            WitError::method("LOCK_CONFLICT", &Conflict::elsewhere(stake, message))
        }
        Refusal::LockNotFound => WitError::bare("LOCK_NOT_FOUND"),
        Refusal::LockNotHeld { by, fence, .. } => {
            WitError::method("LOCK_NOT_HELD", &json!({ "heldBy": by, "fence": fence }))
        }
        Refusal::IntentNotFound => WitError::bare("INTENT_NOT_FOUND"),
        Refusal::IntentNotOwned { by } => WitError::method("INTENT_NOT_OWNED", &json!({ "sessionId": by })),
        Refusal::IntentCannot { from, to } => WitError::method(
            "INVALID_TRANSITION",
            &json!({ "current": from.as_str(), "requested": to.as_str() }),
        ),
        Refusal::ContractNotFound => WitError::bare("CONTRACT_NOT_FOUND"),
        Refusal::ContractSettled { status } => {
            WitError::method("CONTRACT_ALREADY_RESOLVED", &json!({ "status": status.as_str() }))
        }
        Refusal::ContractOwn => WitError::bare("SELF_ACCEPT_NOT_ALLOWED"),
        Refusal::ContractNotYours { by } => {
            WitError::method("CONTRACT_NOT_OWNED", &json!({ "proposerSessionId": by, "message": message }))
        }
        Refusal::AlreadyNamed { nick } => WitError::method(
            "SESSION_ALREADY_REGISTERED",
            &json!({ "agentId": nick.number, "name": nick.name }),
        ),
        Refusal::NameTaken { .. } | Refusal::NameElsewhere { .. } => WitError::reserved(),
        other => WitError::method(word(other.kind()), &json!({ "message": message })),
    }
}

/// Returns the word for refusals that have none of their own.
fn word(kind: RefusalKind) -> &'static str {
    match kind {
        RefusalKind::Full => "BUSY",
        RefusalKind::Unready => "UNAVAILABLE",
        RefusalKind::Rights | RefusalKind::Name | RefusalKind::Forbidden => "NOT_ALLOWED",
        // These concern the content of a request, or verbs that this door does not have.
        RefusalKind::Size
        | RefusalKind::Exists
        | RefusalKind::HeldElsewhere
        | RefusalKind::Delegation
        | RefusalKind::Coordination
        | RefusalKind::Crew
        | RefusalKind::Token => "REFUSED",
    }
}

/// The data of `LOCK_CONFLICT`.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Conflict {
    held_by: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_name: Option<Box<str>>,
    acquired_at: String,
    symbol_path: Box<str>,
    /// Absent if the rival only waits, ahead of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<Fence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<usize>,
    /// The agents that wait for each other, from the caller on.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle: Option<Vec<AgentId>>,
    message: String,
}

impl Conflict {
    fn of(refusal: &Refusal, rival: &Rival) -> Self {
        let mut cycle = None;
        if let Refusal::WouldDeadlock { circle, .. } = refusal {
            cycle = Some(circle.clone());
        }
        Self {
            held_by: rival.by.to_string(),
            expires_at: rival.until.rfc3339(),
            acquired_at: rival.since.rfc3339(),
            symbol_path: rival.asked.clone(),
            fence: rival.fence,
            reason: rival.reason.clone(),
            cycle,
            message: refusal.to_string(),
            ..Self::default()
        }
    }
}

impl Conflict {
    /// Makes a conflict with a reservation of another door. A claim has no end of its own; wit's clients print one.
    fn elsewhere(stake: &Reservation, message: String) -> Self {
        const NEVER: &str = "9999-12-31T23:59:59.999Z";
        Self {
            held_by: stake.agent.to_string(),
            expires_at: stake.until.map_or_else(|| NEVER.to_owned(), |it| it.rfc3339()),
            acquired_at: stake.since.rfc3339(),
            symbol_path: format!("{}:", stake.at).into(),
            reason: Some(format!("{}: {}", stake.kind.as_str(), stake.asked).into()),
            message,
            ..Self::default()
        }
    }
}

/// Makes a conflict with its details: the rival's name for people, and the number of waiting agents.
pub(super) fn conflict(
    refusal: &Refusal,
    rival: &Rival,
    name: Option<Box<str>>,
    now: Timestamp,
    waiting: usize,
) -> WitError {
    let data = Conflict {
        agent_name: name,
        retry_after_ms: Some(rival.until.since_ms(now)),
        waiting: Some(waiting),
        ..Conflict::of(refusal, rival)
    };
    WitError::method("LOCK_CONFLICT", &data)
}

/// Returns the error for a contract that cannot be offered.
pub(super) fn not_proposed(fault: ProposeError, asked: &str) -> WitError {
    match fault {
        ProposeError::Refused(refusal) => refusal.into(),
        ProposeError::NoSymbol { why, candidates } => WitError::method(
            "SYMBOL_NOT_FOUND",
            &json!({ "symbolPath": asked, "message": why, "candidates": candidates }),
        ),
    }
}

/// Returns the status of an intent for wit's word.
pub(super) fn intent_status(word: &str) -> Option<IntentStatus> {
    use IntentStatus::{Abandoned, Active, Declared, Resolved};
    [Active, Declared, Resolved, Abandoned].into_iter().find(|it| it.as_str() == word)
}

/// Returns the status of a contract for wit's word, or for one of Provost's.
pub(super) fn contract_status(word: &str) -> Option<ContractStatus> {
    use ContractStatus::{Accepted, Proposed, Rejected, Superseded, Withdrawn};
    [Proposed, Accepted, Rejected, Superseded, Withdrawn].into_iter().find(|it| it.as_str() == word)
}
