//! Refusals of the crew's rules.

use crate::AssignmentState;
use provost_base::AgentId;

/// Why a verb of the crew was turned down; nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CrewRefusal {
    /// The caller, or whom it names, is not one of the crew.
    #[error("Agent not registered")]
    NotInCrew,
    /// Another agent works at this file.
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
    /// A file that an assignment is not about, or an assignment that is not known.
    #[error("this file is not one of those that task {assignment} is about")]
    OutsideAssignment {
        /// The assignment that the claim names.
        assignment: Box<str>,
    },
    /// The lead alone may do this.
    #[error("only the lead may lock a file{}", lead.as_ref().map(|it| format!(", which is {it}")).unwrap_or_default())]
    LeadOnly {
        /// The present lead, if there is one.
        lead: Option<AgentId>,
    },
    /// A person alone may do this.
    #[error("only a person names the lead, at a terminal: `provost crew appoint AGENT`")]
    PersonOnly,
    /// No assignment goes by this id.
    #[error("no such task")]
    AssignmentNotFound,
    /// Something else is to be done before.
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
        /// How much is kept, in bytes.
        most: usize,
    },
}
