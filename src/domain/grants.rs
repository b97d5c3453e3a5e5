//! Outcomes of approvals, kept until their askers repeat the request. In memory only: after a restart, a repeated
//! request needs a new approval.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Change, Failure, Outbox, Parked, Refusal};
use provost_base::{AgentId, ApprovalId, Digest, RuleId, TaskId, Timestamp, Ttl};

/// The time for which an outcome is kept. Chosen with [`super::ALIVE_FOR`] in mind: an asker that is away longer has mail about it.
const KEPT_FOR: Ttl = Ttl::minutes(5);

/// The outcome of a question, kept for its asker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// The number under which the question waited.
    pub approval: ApprovalId,
    /// The rule that asked for approval.
    pub rule: RuleId,
    /// The approver's answer, or the lack of one.
    pub outcome: Outcome,
    until: Timestamp,
}

impl Grant {
    /// Returns the refusal for a request that differs from the granted one.
    pub(super) fn for_something_else(&self) -> Refusal {
        Refusal::Denied { rule: self.rule.clone(), reason: "the grant is for a different request".into() }
    }
}

/// An approver's answer, or the lack of one in time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The approver has granted the request, for one use.
    Granted,
    /// The approver has granted the request, and it was carried out as this task.
    Made(TaskId),
    /// The approver has denied the request, or has not answered in time: the text for the asker, and the failure.
    Denied(Box<str>, Failure),
}

/// A change of the kept outcomes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantChange {
    /// Keeps the outcome of this question for this asker.
    Keep(AgentId, Digest, Arc<Grant>, Timestamp),
    /// The asker has come back, and the grant is used up.
    Use(AgentId, Digest),
}

impl From<GrantChange> for Change {
    fn from(change: GrantChange) -> Self {
        Change::Grant(change)
    }
}

/// All outcomes that are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grants(BTreeMap<(AgentId, Digest), Arc<Grant>>);

impl Grants {
    pub(super) fn apply(&mut self, change: &GrantChange) {
        match change {
            GrantChange::Keep(asker, question, grant, now) => {
                self.0.retain(|_, it| *now < it.until);
                self.0.insert((asker.clone(), *question), grant.clone());
            }
            GrantChange::Use(asker, question) => drop(self.0.remove(&(asker.clone(), *question))),
        }
    }

    /// Returns the outcome of this asker's question, if it is kept.
    pub(super) fn get(&self, now: Timestamp, asker: &AgentId, question: Digest) -> Option<&Grant> {
        let grant = self.0.get(&(asker.clone(), question))?;
        (now < grant.until).then_some(grant)
    }
}

/// Keeps the outcome of a question for its asker.
pub(super) fn keep(
    now: Timestamp,
    asker: AgentId,
    question: Digest,
    parked: &Parked,
    outcome: Outcome,
    out: &mut Outbox,
) {
    let (approval, rule) = (parked.id, parked.rule.clone());
    let grant = Arc::new(Grant { approval, rule, outcome, until: now.after(KEPT_FOR) });
    out.put(GrantChange::Keep(asker, question, grant, now).into());
}
