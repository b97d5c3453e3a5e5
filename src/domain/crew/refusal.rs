//! Refusals of the crew's rules.

use crate::AssignmentState;
use provost_base::AgentId;

/// The reason why a verb of the crew was refused; nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CrewRefusal {
    /// The caller, or an agent that it names, is not a member of the crew.
    #[error("Agent not registered")]
    NotInCrew,
    /// Another agent works on this file.
    #[error("Resource claimed by {by}")]
    FileClaimed {
        /// The agent that has the file.
        by: AgentId,
    },
    /// The lead has locked this file.
    #[error("Resource locked by lead agent ({by})")]
    FileLocked {
        /// The lead that has locked it.
        by: AgentId,
    },
    /// The file is in conflict, and waits for a decision.
    #[error("Resource is in conflict state — resolve conflict first")]
    FileConflicted,
    /// The file is outside of the assignment, or the assignment is not known.
    #[error("this file is not one of those that task {assignment} is about")]
    OutsideAssignment {
        /// The assignment that the claim names.
        assignment: Box<str>,
    },
    /// Only the lead may do this.
    #[error("only the lead may lock a file{}", lead.as_ref().map(|it| format!(", which is {it}")).unwrap_or_default())]
    LeadOnly {
        /// The present lead, if any.
        lead: Option<AgentId>,
    },
    /// Only a person may do this.
    #[error("only a person names the lead, at a terminal: `provost crew appoint AGENT`")]
    PersonOnly,
    /// No assignment has this id.
    #[error("no such task")]
    AssignmentNotFound,
    /// Another assignment has to be done first.
    #[error("this task depends on {on}, which is not done")]
    AssignmentWaits {
        /// The assignment that has to be done first.
        on: Box<str>,
    },
    /// The assignment is not in the state that the caller expects.
    #[error("this task has moved on")]
    AssignmentElsewhere {
        /// The state that the assignment has.
        at: AssignmentState,
    },
    /// The value has more bytes than the daemon keeps of it.
    #[error("larger than the {most} bytes that are kept of it")]
    TooLarge {
        /// The highest size that is kept, in bytes.
        most: usize,
    },
}
