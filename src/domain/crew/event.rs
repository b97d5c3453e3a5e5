//! Events of a crew, and the rows that they change.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Member, Role, Standing};
use crate::event::EventKind;
use crate::row::Change;
use crate::{Assignment, AssignmentState, Claim, Content, Handoff, Version};
use provost_base::{AgentId, AssignmentId, HandoffId, Json, RepoPath, Timestamp};

/// An event of a crew. Its actor is the member that did it, unless the variant says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrewEvent {
    /// A member announced itself.
    MemberJoined {
        /// The program that the member runs as, in its own words.
        tool: Box<str>,
        /// The role that the member has from now on.
        role: Role,
        /// The member's capabilities, in its own words.
        capabilities: Vec<Box<str>>,
    },
    /// A member has left.
    MemberLeft,
    /// A member is still there.
    MemberBeat,
    /// A member's activity has changed.
    MemberMoved {
        /// The member whose standing has changed.
        member: AgentId,
        /// Its standing until now.
        from: Standing,
        /// Its standing from now on.
        to: Standing,
        /// The reason why the daemon has changed it; `None` if the member has said so itself.
        why: Option<Box<str>>,
    },
    /// Another member is the lead from now on.
    LeadElected {
        /// The member that leads from now on.
        lead: AgentId,
        /// The reason why this member leads.
        why: Elected,
    },
    /// An agent has claimed a file.
    ClaimGranted {
        /// The file that the agent has from now on.
        file: RepoPath,
        /// Whether no agent has asked for the file before.
        first: bool,
        /// The assignment for which the file was claimed.
        assignment: Option<Box<str>>,
    },
    /// A file has no owner any more.
    ClaimFreed {
        /// The file that is free.
        file: RepoPath,
        /// The agent that had it.
        owner: AgentId,
        /// The file's content now, as far as that is known.
        content: Content,
        /// The reason, if the owner has not released it.
        why: Option<Box<str>>,
    },
    /// The lead has locked a file, or freed it.
    ClaimLocked {
        /// The file that was locked or freed.
        file: RepoPath,
        /// Whether it is locked now.
        locked: bool,
    },
    /// A file has changed.
    FileChanged {
        /// The file that has changed.
        file: RepoPath,
        /// The kind of change.
        how: Seen,
        /// Whether the file was claimed before.
        tracked: bool,
        /// The agent that has claimed the file and is present; `None` if there is none.
        owner: Option<AgentId>,
        /// The agent for which the daemon has changed the file, if the daemon did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        /// The content before, if it is known.
        before: Option<Content>,
        /// The content now; `None` if it was not read.
        after: Option<Content>,
    },
    /// An agent has changed a file that another one had claimed.
    ConflictFound {
        /// The file in conflict.
        file: RepoPath,
        /// The agent that had claimed the file.
        owner: AgentId,
        /// The agent that has changed the file.
        intruder: AgentId,
        /// The content before the change.
        before: Content,
        /// The content after the change.
        after: Content,
        /// Both contents, and versions of others in between, as far as they were kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        versions: Vec<Version>,
    },
    /// An assignment was made.
    AssignmentMade {
        /// The id of the new assignment.
        id: AssignmentId,
        /// Its title, for people.
        title: Box<str>,
        /// The agent that should do it, under any name.
        to: Option<Box<str>>,
    },
    /// The state of an assignment has changed.
    AssignmentMoved {
        /// The assignment whose state has changed.
        id: AssignmentId,
        /// The state that it had.
        from: AssignmentState,
        /// The state that it has.
        to: AssignmentState,
    },
    /// Work is handed over.
    TransferOffered {
        /// The id of the new handoff.
        id: HandoffId,
        /// The agent that should take it, under any name; `None` offers it to all.
        to: Option<Box<str>>,
        /// The assignment that the work is part of.
        assignment: Box<str>,
        /// The number of files in the handoff.
        files: u32,
    },
    /// Offered work was accepted, or declined.
    TransferAnswered {
        /// The id of the handoff.
        id: HandoffId,
        /// The assignment that the work is part of.
        assignment: Box<str>,
        /// Whether the work was taken.
        accepted: bool,
        /// The reason why it was declined; it may be empty.
        reason: Box<str>,
    },
    /// An occurrence that an agent reports.
    Noted(Note),
}

/// An entry that an agent puts on the timeline, in its own words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Note {
    /// The action, in one word of the agent's choice.
    pub action: Box<str>,
    /// The file that it happened to, as the agent wrote it.
    pub file: Option<Box<str>>,
    /// The same file in its plainest spelling, if it is in the workspace; it is found under this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<RepoPath>,
    /// The assignment for which it happened.
    pub assignment: Option<Box<str>>,
    /// The digest of the content before.
    pub before: Option<Box<str>>,
    /// The digest of the content now.
    pub after: Option<Box<str>>,
    /// Any further members, as the agent sent them.
    pub metadata: Json,
    /// The event's origin, if it did not happen here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// An event that another daemon has kept, as that daemon knew it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The event's id at the other daemon.
    pub id: Box<str>,
    /// When the event happened, by the other daemon's clock.
    pub at: Timestamp,
    /// The agent of the event, as the other daemon names it.
    pub agent: Box<str>,
}

/// The kind of change that was seen on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The file did not exist before.
    Created,
    /// The file has another content.
    Changed,
    /// The file does not exist any more.
    Deleted,
}

/// The reason why an agent leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Elected {
    /// The lead before it has left.
    Departed,
    /// No agent was the lead.
    Nobody,
    /// The configuration names it.
    Configured,
    /// A person named it.
    Appointed,
}

impl CrewEvent {
    pub(super) fn joined(member: &Member) -> Self {
        let (tool, role) = (member.tool.clone(), member.role());
        CrewEvent::MemberJoined { tool, role, capabilities: member.capabilities.clone() }
    }

    pub(super) fn moved(member: &Member, to: Standing, why: Option<&str>) -> Self {
        let (member, from) = (member.id.clone(), member.standing);
        CrewEvent::MemberMoved { member, from, to, why: why.map(Into::into) }
    }

    /// Returns the kind's name, as it is stored and as filters name it.
    pub fn name(&self) -> &'static str {
        match self {
            CrewEvent::MemberJoined { .. } => "member_joined",
            CrewEvent::MemberLeft => "member_left",
            CrewEvent::MemberBeat => "member_beat",
            CrewEvent::MemberMoved { .. } => "member_moved",
            CrewEvent::LeadElected { .. } => "lead_elected",
            CrewEvent::ClaimGranted { .. } => "claim_granted",
            CrewEvent::ClaimFreed { .. } => "claim_freed",
            CrewEvent::ClaimLocked { .. } => "claim_locked",
            CrewEvent::FileChanged { .. } => "file_changed",
            CrewEvent::ConflictFound { .. } => "conflict_found",
            CrewEvent::AssignmentMade { .. } => "assignment_made",
            CrewEvent::AssignmentMoved { .. } => "assignment_moved",
            CrewEvent::TransferOffered { .. } => "transfer_offered",
            CrewEvent::TransferAnswered { .. } => "transfer_answered",
            CrewEvent::Noted(_) => "noted",
        }
    }
}

impl From<CrewEvent> for EventKind {
    fn from(event: CrewEvent) -> Self {
        EventKind::Crew(event)
    }
}

/// A changed row of the crew's state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrewChange {
    /// A new member, or a change to a known one.
    PutMember(Arc<Member>),
    /// A member that the crew forgets.
    DropMember(AgentId),
    /// A file that an agent has asked for.
    PutClaim(Arc<Claim>),
    /// A file that the crew forgets.
    DropClaim(RepoPath),
    /// A new assignment, or a change to a known one.
    PutAssignment(Arc<Assignment>),
    /// An assignment that the crew forgets.
    DropAssignment(AssignmentId),
    /// A new handoff, or its answer.
    PutHandoff(Arc<Handoff>),
    /// A handoff that the crew forgets.
    DropHandoff(HandoffId),
}

impl From<CrewChange> for Change {
    fn from(change: CrewChange) -> Self {
        Change::Crew(change)
    }
}
