//! Errors in this protocol's form, and refusals in its words.

use hyper::StatusCode;
use serde_json::{Value, json};

use provost_domain::{CrewRefusal, Refusal, RefusalKind};
use provost_service::SettleError;
use provost_transport::http::Untaken;

/// An error answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AgentProtocolError {
    pub(super) status: StatusCode,
    pub(super) body: Value,
    /// The methods that the path supports, if the request's is not one of them.
    pub(super) allow: Option<String>,
}

impl AgentProtocolError {
    pub(super) fn new(status: StatusCode, says: impl Into<String>) -> Self {
        let says: String = says.into();
        Self { status, body: json!({ "error": says }), allow: None }
    }

    /// Makes the error for a request that makes no sense.
    pub(super) fn bad(says: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, says)
    }

    pub(super) fn not_found(says: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, says)
    }

    pub(super) fn forbidden(says: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, says)
    }

    /// Makes the error for a missing or ended token.
    pub(super) fn unproven() -> Self {
        let says =
            "Unauthorized: send `Authorization: Bearer TOKEN`; a person makes one with `provost token mint`";
        Self::new(StatusCode::UNAUTHORIZED, says)
    }

    /// Makes the error for a claim that was not granted.
    pub(super) fn not_granted(owner: Option<&str>, reason: &str) -> Self {
        let body = match owner {
            Some(owner) => json!({ "granted": false, "owner": owner, "reason": reason }),
            None => json!({ "granted": false, "reason": reason }),
        };
        Self { status: StatusCode::CONFLICT, body, allow: None }
    }

    pub(super) fn untaken(why: Untaken) -> Self {
        match why {
            Untaken::TooLarge => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "Payload too large"),
            Untaken::TooSlow => Self::new(StatusCode::REQUEST_TIMEOUT, "Request timeout"),
            Untaken::BrokeOff => Self::bad("Invalid request"),
        }
    }

    /// Turns the refusal of a claim into the form of a claim that was not granted.
    pub(super) fn of_claim(refusal: Refusal) -> Self {
        let owner = match &refusal {
            Refusal::Crew(CrewRefusal::FileClaimed { by } | CrewRefusal::FileLocked { by }) => {
                Some(by.as_str())
            }
            Refusal::HeldElsewhere(stake) => Some(stake.agent.as_str()),
            Refusal::Crew(
                CrewRefusal::NotInCrew | CrewRefusal::FileConflicted | CrewRefusal::OutsideAssignment { .. },
            ) => None,
            other => return other.clone().into(),
        };
        Self::not_granted(owner, &refusal.to_string())
    }
}

impl From<Refusal> for AgentProtocolError {
    fn from(refusal: Refusal) -> Self {
        let says = refusal.to_string();
        if let Refusal::Crew(refusal) = &refusal {
            return of_crew(refusal, says);
        }
        let status = match refusal.kind() {
            RefusalKind::Full | RefusalKind::Unready => StatusCode::SERVICE_UNAVAILABLE,
            RefusalKind::Rights | RefusalKind::Name | RefusalKind::Forbidden => StatusCode::FORBIDDEN,
            RefusalKind::Size => StatusCode::PAYLOAD_TOO_LARGE,
            // These concern a place or an id that is in use, or verbs that this door does not have.
            RefusalKind::HeldElsewhere
            | RefusalKind::Exists
            | RefusalKind::Delegation
            | RefusalKind::Coordination
            | RefusalKind::Crew
            | RefusalKind::Token => StatusCode::CONFLICT,
        };
        Self::new(status, says)
    }
}

impl From<SettleError> for AgentProtocolError {
    fn from(fault: SettleError) -> Self {
        let says = fault.to_string();
        match fault {
            SettleError::Refused(refusal) => refusal.into(),
            SettleError::Unknown(_) => Self::bad(says),
            SettleError::NotInConflict
            | SettleError::NotKept
            | SettleError::Gone
            | SettleError::InTheWay
            | SettleError::Io(_) => Self::new(StatusCode::CONFLICT, says),
        }
    }
}

fn of_crew(refusal: &CrewRefusal, says: String) -> AgentProtocolError {
    match refusal {
        CrewRefusal::NotInCrew => AgentProtocolError::not_found("Agent not found"),
        CrewRefusal::AssignmentNotFound => AgentProtocolError::not_found("Task not found"),
        CrewRefusal::LeadOnly { .. } | CrewRefusal::PersonOnly => AgentProtocolError::forbidden(says),
        CrewRefusal::TooLarge { .. } => AgentProtocolError::new(StatusCode::PAYLOAD_TOO_LARGE, says),
        CrewRefusal::AssignmentElsewhere { at } => {
            let body = json!({ "error": says, "status": super::map::task_status(*at) });
            AgentProtocolError { status: StatusCode::CONFLICT, body, allow: None }
        }
        CrewRefusal::FileClaimed { .. }
        | CrewRefusal::FileLocked { .. }
        | CrewRefusal::FileConflicted
        | CrewRefusal::OutsideAssignment { .. }
        | CrewRefusal::AssignmentWaits { .. } => AgentProtocolError::new(StatusCode::CONFLICT, says),
    }
}
