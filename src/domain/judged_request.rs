//! The rules' input for a request, as it goes on record, so that other rules can be asked about the same request later.

use serde::{Deserialize, Serialize};

use super::{
    Action, Command, Credentials, Delegate, Door, EventKind, Facts, Git, Network, Principal, Proof, Tier,
    WorkerKind,
};
use provost_base::{AgentId, Digest, Timestamp};

/// A request as the rules saw it. Names and numbers only: a goal appears by its length, and a command by its digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JudgedRequest {
    /// The kind of request.
    pub action: Action,
    /// The agent that asked.
    pub asked_by: AgentId,
    /// The door at which the asker came in.
    pub door: Door,
    /// The proof of the asker's identity.
    pub proof: Proof,
    /// The time of the system's clock, for rules that name hours of the day.
    pub now: Timestamp,
    /// The work, if the request is a delegation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<JudgedWork>,
}

/// The work of a delegation, as the rules saw it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JudgedWork {
    /// The worker that was asked for.
    pub worker: AgentId,
    /// The way in which that worker gets its tasks.
    pub kind: Option<WorkerKind>,
    /// The tool that the delegation named.
    pub tool: Box<str>,
    /// The path that the tool named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<str>>,
    /// The digest of the line that the tool would have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Digest>,
    /// The highest number of bytes that the tool would have read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// The highest number of seconds that the tool would have taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// The length of the goal, in bytes.
    pub goal_bytes: u64,
    /// The working directory, from the root of the repository; `None` if the worker had none, or one that no rules allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<Box<str>>,
    /// The network that the worker asked for.
    pub network: Network,
    /// The worker's access to the repository.
    pub git: Git,
    /// The furthest reach among the worker's secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// The confinement that the worker would have got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The number of delegations above this one.
    pub depth: u32,
    /// The number of the asker's unfinished tasks.
    pub running: u32,
}

impl JudgedRequest {
    /// Returns the part of a command that rules see; `None` if no rules apply to it.
    pub fn of(who: &Principal, command: &Command, facts: &Facts) -> Option<Box<Self>> {
        Some(Box::new(Self {
            action: command.action()?,
            asked_by: who.agent().clone(),
            door: who.door(),
            proof: who.proof(),
            now: facts.now,
            work: command.work().map(|it| JudgedWork::of(it, facts)),
        }))
    }
}

impl JudgedWork {
    fn of(order: &Delegate, facts: &Facts) -> Self {
        Self {
            worker: order.worker.clone(),
            kind: facts.worker_kind,
            tool: order.tool.name.clone(),
            path: order.tool.path.clone(),
            command: order.tool.command.as_ref().map(|it| Digest::of(it.as_bytes())),
            max_bytes: order.tool.max_bytes,
            timeout_s: order.tool.timeout_s,
            goal_bytes: order.goal.len() as u64,
            dir: facts.directory.as_ref().map(|it| it.relative.as_str().into()),
            network: facts.network.clone(),
            git: facts.git,
            credentials: facts.secrets.iter().map(|it| it.by).max(),
            tier: facts.tier,
            depth: facts.depth,
            running: facts.running,
        }
    }
}

impl EventKind {
    /// Returns the rules' input and their decision, in the words of a rule, if the event is such a decision. A
    /// command that an approver granted was decided when it was parked.
    pub fn judged(&self) -> Option<(&JudgedRequest, &'static str)> {
        match self {
            EventKind::TaskDelegated { judged, approval: None, .. } => Some((judged.as_deref()?, "allow")),
            EventKind::ApprovalAsked { judged, .. } => Some((judged.as_deref()?, "approve")),
            EventKind::Denied { judged, .. } => Some((judged.as_deref()?, "deny")),
            _ => None,
        }
    }

    /// Adds the rules' input to the event of a decision that allows a command.
    pub(super) fn put_judged(&mut self, request: &JudgedRequest) {
        if let EventKind::TaskDelegated { judged, approval: None, .. } = self {
            *judged = Some(Box::new(request.clone()));
        }
    }
}
