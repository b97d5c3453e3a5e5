//! Tools of hosts: what a host would ask its person about is asked here, judged, and answered once.
//!
//! ```text
//!   asked --allowed--> given
//!     \\--approval--> waits --granted--> asked again: given, and the word is used up
//!                       \--denied, or nobody answers in time--> asked again: not given, and why
//!                       \--its asker has gone--> nothing
//! ```
//! The same question has the same id, and a word is for that question alone: a host that asks about the same command
//! tomorrow asks anew. Words are in memory only: after a restart whoever comes back is asked about anew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::command::{AskPermission, Command, PermissionWithdrawn, Permitted, WithdrawPermission};
use super::event::{Change, EventKind};
use super::{Answer, Call, Denial, Failure, Outbox, Parked, Principal, Reply, State};
use crate::base::{AgentId, ApprovalId, Digest, RuleId, Timestamp, Ttl};

/// How long a word is kept for its asker, who is waiting for it.
const KEPT_FOR: Ttl = Ttl::minutes(5);

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionEvent {
    /// The actor may use a tool of its host, once.
    PermissionGiven {
        /// The host.
        host: Box<str>,
        /// Its tool.
        tool: Box<str>,
        /// Of everything asked for.
        request: Digest,
        /// The rule that has allowed it, or asked.
        rule: RuleId,
        /// The approval it went through, if it did.
        approval: Option<ApprovalId>,
    },
    /// Nobody waits for an answer about a tool any more.
    PermissionWithdrawn {
        /// The host.
        host: Box<str>,
        /// Its tool.
        tool: Box<str>,
        /// The approval that is needed no more.
        approval: ApprovalId,
    },
}

impl PermissionEvent {
    /// The kind's name as stored and filtered by.
    pub fn name(&self) -> &'static str {
        match self {
            PermissionEvent::PermissionGiven { .. } => "permission_given",
            PermissionEvent::PermissionWithdrawn { .. } => "permission_withdrawn",
        }
    }
}

/// What came of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Yes.
    Granted,
    /// No, or nobody has answered.
    Denied(Box<str>, Failure),
}

/// What memory alone knows of questions that were answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PermissionChange {
    /// A word for an asker, about this question.
    Say(AgentId, Digest, Saying),
    /// It was used.
    Use(AgentId, Digest),
}

/// A word that waits for its asker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Saying {
    approval: ApprovalId,
    rule: RuleId,
    outcome: Outcome,
    at: Timestamp,
}

/// Words that wait for their askers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Permissions(BTreeMap<(AgentId, Digest), Saying>);

impl Permissions {
    pub(super) fn apply(&mut self, change: &PermissionChange) {
        match change {
            PermissionChange::Say(who, digest, saying) => {
                self.0.retain(|_, it| saying.at < it.at.after(KEPT_FOR));
                self.0.insert((who.clone(), *digest), saying.clone());
            }
            PermissionChange::Use(who, digest) => drop(self.0.remove(&(who.clone(), *digest))),
        }
    }

    fn get(&self, now: Timestamp, who: &AgentId, digest: Digest) -> Option<&Saying> {
        self.0.get(&(who.clone(), digest)).filter(|it| now < it.at.after(KEPT_FOR))
    }
}

impl State {
    /// What came of the same question, or that it waits.
    pub(super) fn asked_permission_before(
        &self,
        call: &Call<'_>,
        verb: &AskPermission,
        out: &mut Outbox,
    ) -> Option<Answer<Reply>> {
        let (who, digest) = (call.who.agent(), verb.digest());
        let Some(said) = self.permissions.get(call.now, who, digest) else {
            let same = |it: &Command| matches!(it, Command::AskPermission(it) if it == verb);
            let waiting = self.approvals.iter().find(|it| it.who.agent() == who && same(&it.command))?;
            return Some(Answer::Parked(waiting.id));
        };
        out.put(Change::Permission(PermissionChange::Use(who.clone(), digest)));
        Some(match &said.outcome {
            Outcome::Granted => Answer::Done(Reply::Permitted(self.permit_tool(
                verb,
                said.rule.clone(),
                Some(said.approval),
                out,
            ))),
            Outcome::Denied(reason, failure) => Answer::Denied(Denial {
                task: None,
                rule: said.rule.clone(),
                reason: reason.clone(),
                failure: failure.clone(),
            }),
        })
    }

    /// Takes a question of the caller's out of the queue.
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
            out.say(EventKind::Permission(PermissionEvent::PermissionWithdrawn { host, tool, approval }));
            self.drop_approval(approval, out);
        }
        PermissionWithdrawn
    }

    /// Puts it on record that a tool may be used.
    pub(super) fn permit_tool(
        &self,
        verb: &AskPermission,
        rule: RuleId,
        approval: Option<ApprovalId>,
        out: &mut Outbox,
    ) -> Permitted {
        let (host, tool) = (verb.host.clone(), verb.tool.clone());
        let given = PermissionEvent::PermissionGiven { host, tool, request: verb.digest(), rule, approval };
        out.say(EventKind::Permission(given));
        Permitted
    }

    /// Keeps what came of a question until its asker comes back.
    pub(super) fn keep_outcome(
        &self,
        now: Timestamp,
        parked: &Parked,
        verb: &AskPermission,
        outcome: Outcome,
        out: &mut Outbox,
    ) {
        let saying = Saying { approval: parked.id, rule: parked.rule.clone(), outcome, at: now };
        let said = PermissionChange::Say(parked.who.agent().clone(), verb.digest(), saying);
        out.put(Change::Permission(said));
    }
}
