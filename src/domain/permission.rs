//! Tools of hosts: the core judges a request that the host would show its person, and answers it once.
//!
//! ```text
//!   asked --allowed--> given
//!     \\--approval--> waits --granted--> asked again: given, and the word is used up
//!                       \--denied, or no answer in time--> asked again: not given, and why
//!                       \--its asker has gone--> nothing
//! ```
//! The same request has the same id, and an answer is valid for that request alone: a host that asks about the same
//! command tomorrow makes a new request. Answers are in memory only: after a restart a repeated request is a new one.

use serde::{Deserialize, Serialize};

use super::command::{AskPermission, Command, PermissionWithdrawn, Permitted, WithdrawPermission};
use super::event::EventKind;
use super::judged::{Judged, Permit, QuestionKind, Redeemed};
use super::{
    Action, Answer, Call, Denial, Failure, Grant, GrantChange, Judge, Outbox, Outcome, Parked, Principal,
    Refusal, Reply, State,
};
use provost_base::{ApprovalId, Digest, Json, RuleId, Ttl};

/// A step of a request for a tool of a host, as it stands in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionEvent {
    /// The actor may use a tool of its host, once.
    PermissionGiven {
        /// The host's name, as the agent gives it.
        host: Box<str>,
        /// The name of the host's own tool.
        tool: Box<str>,
        /// The digest of the whole request.
        request: Digest,
        /// The rule that has allowed it, or demanded an approval.
        rule: RuleId,
        /// The approval of the request, if it needed one.
        approval: Option<ApprovalId>,
    },
    /// The host does not wait for an answer about a tool any more.
    PermissionWithdrawn {
        /// The host's name, as the agent gives it.
        host: Box<str>,
        /// The name of the host's own tool.
        tool: Box<str>,
        /// The approval that is no longer needed.
        approval: ApprovalId,
    },
}

impl PermissionEvent {
    /// Returns the kind's name, as it is stored and as filters name it.
    pub fn name(&self) -> &'static str {
        match self {
            PermissionEvent::PermissionGiven { .. } => "permission_given",
            PermissionEvent::PermissionWithdrawn { .. } => "permission_withdrawn",
        }
    }
}

impl Judged for AskPermission {
    fn action(&self) -> Action {
        Action::Permission
    }

    fn permitted(
        &self,
        _state: &State,
        _judge: &dyn Judge,
        _call: &Call<'_>,
        permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        Ok(Reply::Permitted(give(self, permit.rule, None, out)))
    }

    fn tool(&self) -> Box<str> {
        format!("{}:{}", self.host, self.tool).into()
    }

    fn denied_tool(&self) -> Box<str> {
        "AskPermission".into()
    }

    fn shown(&self) -> Json {
        AskPermission::shown(self)
    }

    fn kind(&self) -> QuestionKind {
        QuestionKind::Permission
    }

    fn patience(&self) -> Option<Ttl> {
        Some(self.wait)
    }
}

impl Redeemed for AskPermission {
    fn question(&self) -> Digest {
        self.digest()
    }

    /// Gives the outcome to the asker once, granted or denied.
    fn redeem(
        &self,
        _state: &State,
        call: &Call<'_>,
        grant: &Grant,
        out: &mut Outbox,
    ) -> Result<Answer<Reply>, Refusal> {
        out.put(GrantChange::Use(call.who.agent().clone(), self.digest()).into());
        let rule = grant.rule.clone();
        match &grant.outcome {
            Outcome::Granted => {
                Ok(Answer::Done(Reply::Permitted(give(self, rule, Some(grant.approval), out))))
            }
            Outcome::Denied(reason, failure) => {
                let (reason, failure) = (reason.clone(), failure.clone());
                Ok(Answer::Denied(Denial { task: None, rule, reason, failure }))
            }
            Outcome::Made(_) => Err(grant.for_something_else()),
        }
    }

    fn outcome_of(&self, _parked: &Parked, why: &str, failure: Failure) -> Outcome {
        Outcome::Denied(why.into(), failure)
    }
}

/// Records that a tool may be used.
fn give(verb: &AskPermission, rule: RuleId, approval: Option<ApprovalId>, out: &mut Outbox) -> Permitted {
    let (host, tool) = (verb.host.clone(), verb.tool.clone());
    let given = PermissionEvent::PermissionGiven { host, tool, request: verb.digest(), rule, approval };
    out.append_event(EventKind::Permission(given));
    Permitted
}

impl State {
    /// Withdraws a question of the caller.
    pub(super) fn withdraw_permission(
        &self,
        who: &Principal,
        verb: &WithdrawPermission,
        out: &mut Outbox,
    ) -> PermissionWithdrawn {
        let asked = self.approvals.iter().find_map(|parked| match &parked.command {
            Command::AskPermission(it) if it.id == verb.id && parked.who.agent() == who.agent() => {
                Some((parked.id, it))
            }
            _ => None,
        });
        if let Some((approval, it)) = asked {
            let (host, tool) = (it.host.clone(), it.tool.clone());
            out.append_event(EventKind::Permission(PermissionEvent::PermissionWithdrawn {
                host,
                tool,
                approval,
            }));
            self.drop_approval(approval, out);
        }
        PermissionWithdrawn
    }
}
