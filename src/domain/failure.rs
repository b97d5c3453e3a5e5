//! Reasons why tasks fail.

use serde::{Deserialize, Serialize};

use provost_base::{AgentId, ApprovalId, RuleId, TaskId};

/// The reason why a task failed: one that the daemon gives, or the error of a failed worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// A rule has denied the request.
    PolicyDenied {
        /// The rule that denied.
        rule: RuleId,
        /// The rule's reason, for callers.
        reason: Box<str>,
        /// The tool that policy was asked about.
        tool: Box<str>,
    },
    /// An approver has denied the request.
    ApprovalDenied {
        /// The approval that was answered.
        approval: ApprovalId,
        /// The approver that denied it.
        approver: AgentId,
        /// The approver's note for the asker; `None` if there was none.
        note: Option<Box<str>>,
        /// The tool that policy was asked about.
        tool: Box<str>,
    },
    /// No approver has answered in time.
    ApprovalTimeout {
        /// The approval that has expired.
        approval: ApprovalId,
        /// The tool that policy was asked about.
        tool: Box<str>,
    },
    /// The working directory does not lie in the workspace.
    Sandbox {
        /// The problem with the directory, in words for people.
        why: Box<str>,
    },
    /// A polling worker gave no sign of life for the length of its lease.
    LeaseTimeout {
        /// The lease, in seconds.
        timeout_s: u64,
        /// The worker that was silent.
        worker: AgentId,
    },
    /// A polling worker never came for its task.
    WorkerAway {
        /// The time for which the task was kept for it, in seconds.
        kept_s: u64,
        /// The worker that did not come.
        worker: AgentId,
    },
    /// The run took longer than its limit.
    RunTimeout {
        /// The limit, in seconds.
        timeout_s: u64,
    },
    /// The daemon ended while it ran, or was cut off from its database.
    Lost,
    /// The jail could not be set up.
    JailRefused {
        /// The layer that is missing, and the next step.
        why: Box<str>,
    },
    /// The task has waited for another one, and its run never began.
    NotBegun {
        /// The task that it has waited for.
        task: TaskId,
        /// The end of that task, or the other obstacle, in words for people.
        why: Box<str>,
    },
    /// No host was left that could do the task.
    NoHost {
        /// The answer of each host, in words for people.
        why: Box<str>,
    },
    /// The worker process ended badly.
    WorkerFailed {
        /// The way in which it ended (`exit code 3`, `terminated by signal 9`).
        why: Box<str>,
    },
}

impl Failure {
    /// Checks whether the worker was never started, since no rule or approver has allowed it, or since no task that
    /// it waited for has succeeded.
    pub(crate) fn is_without_a_run(&self) -> bool {
        matches!(
            self,
            Self::PolicyDenied { .. }
                | Self::ApprovalDenied { .. }
                | Self::ApprovalTimeout { .. }
                | Self::NotBegun { .. }
                | Self::NoHost { .. }
        )
    }
}

impl Failure {
    /// Checks whether a rule, an approver or the sandbox has stopped the task, so that no work was begun.
    pub fn is_denial(&self) -> bool {
        match self {
            Failure::PolicyDenied { .. }
            | Failure::ApprovalDenied { .. }
            | Failure::ApprovalTimeout { .. }
            | Failure::Sandbox { .. } => true,
            Failure::LeaseTimeout { .. }
            | Failure::WorkerAway { .. }
            | Failure::RunTimeout { .. }
            | Failure::Lost
            | Failure::JailRefused { .. }
            | Failure::NotBegun { .. }
            | Failure::NoHost { .. }
            | Failure::WorkerFailed { .. } => false,
        }
    }

    /// Returns the word for `metadata.failure.reason` and for filters.
    pub fn reason(&self) -> &'static str {
        match self {
            Failure::PolicyDenied { .. } => "policy_denied",
            Failure::ApprovalDenied { .. } => "approval_denied",
            Failure::ApprovalTimeout { .. } => "approval_timeout",
            Failure::Sandbox { .. } => "sandbox",
            Failure::LeaseTimeout { .. } => "lease_timeout",
            Failure::WorkerAway { .. } => "worker_away",
            Failure::RunTimeout { .. } => "timeout",
            Failure::Lost => "lost",
            Failure::JailRefused { .. } => "jail_refused",
            Failure::NotBegun { .. } => "not_begun",
            Failure::NoHost { .. } => "no_host",
            Failure::WorkerFailed { .. } => "worker_failed",
        }
    }
}
