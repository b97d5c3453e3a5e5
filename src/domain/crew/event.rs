//! Events of a crew, and their rows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Member, Role, Standing};
use crate::base::{AgentId, AssignmentId, Json, RepoPath, Timestamp, TransferId};
use crate::domain::event::{Change, EventKind};
use crate::domain::{Assignment, AssignmentState, Claim, Content, Transfer, Version};

/// What happened. The actor of the event is the member that did it, unless it says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrewEvent {
    /// A member announced itself.
    MemberJoined {
        /// The program that it is.
        tool: Box<str>,
        /// Its part.
        role: Role,
        /// What it can do.
        capabilities: Vec<Box<str>>,
    },
    /// A member has left.
    MemberLeft,
    /// A member is still there.
    MemberBeat,
    /// A member is at something else.
    MemberMoved {
        /// Who.
        member: AgentId,
        /// What it was at.
        from: Standing,
        /// What it is at.
        to: Standing,
        /// Why, when it has not said so itself.
        why: Option<Box<str>>,
    },
    /// Another agent leads.
    LeadElected {
        /// Who.
        lead: AgentId,
        /// Why.
        why: Elected,
    },
    /// An agent has claimed a file.
    ClaimGranted {
        /// Which.
        file: RepoPath,
        /// Whether nobody has asked for it before.
        first: bool,
        /// What for.
        assignment: Option<Box<str>>,
    },
    /// A file is nobody's again.
    ClaimFreed {
        /// Which.
        file: RepoPath,
        /// Whose it was.
        owner: AgentId,
        /// What it says now.
        content: Content,
        /// Why, when the owner has not released it.
        why: Option<Box<str>>,
    },
    /// The lead has locked a file, or given it free.
    ClaimLocked {
        /// Which.
        file: RepoPath,
        /// Which of the two.
        locked: bool,
    },
    /// A file has changed.
    FileChanged {
        /// Which.
        file: RepoPath,
        /// How it was seen.
        how: Seen,
        /// Whether it was claimed before.
        tracked: bool,
        /// Whose it is, if it is anybody's who is there.
        owner: Option<AgentId>,
        /// The agent that the daemon has changed it for, if the daemon did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        /// What it said before, where that is known.
        before: Option<Content>,
        /// What it says now.
        after: Option<Content>,
    },
    /// A file that was claimed has been changed by another agent.
    ConflictFound {
        /// Which.
        file: RepoPath,
        /// Whose it was.
        owner: AgentId,
        /// Who has changed it.
        intruder: AgentId,
        /// What it said before.
        before: Content,
        /// What it says now.
        after: Content,
        /// Both, and what is known of others in between, as far as they were kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        versions: Vec<Version>,
    },
    /// There is an assignment.
    AssignmentMade {
        /// Which.
        id: AssignmentId,
        /// What it is called.
        title: Box<str>,
        /// Whose it is to be.
        to: Option<Box<str>>,
    },
    /// An assignment goes on.
    AssignmentMoved {
        /// Which.
        id: AssignmentId,
        /// Where it was.
        from: AssignmentState,
        /// Where it is.
        to: AssignmentState,
    },
    /// Work is handed over.
    TransferOffered {
        /// Which.
        id: TransferId,
        /// To whom.
        to: Option<Box<str>>,
        /// What it is part of.
        assignment: Box<str>,
        /// How many files it names.
        files: u32,
    },
    /// Work that was handed over is taken, or is not.
    TransferAnswered {
        /// Which.
        id: TransferId,
        /// What it is part of.
        assignment: Box<str>,
        /// Which of the two.
        accepted: bool,
        /// Why not.
        reason: Box<str>,
    },
    /// Something that an agent says has happened.
    Noted(Note),
}

/// What an agent wants on the timeline, in its own words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Note {
    /// What happened; any word.
    pub action: Box<str>,
    /// To which file, as the agent wrote it.
    pub file: Option<Box<str>>,
    /// The same in its plainest spelling, if it is in the workspace: it is found under this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<RepoPath>,
    /// For which assignment.
    pub assignment: Option<Box<str>>,
    /// Digest of what was there before.
    pub before: Option<Box<str>>,
    /// Digest of what is there now.
    pub after: Option<Box<str>>,
    /// Anything else.
    pub metadata: Json,
    /// Where it comes from, when it did not happen here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// An event that another daemon has kept, as that one knew it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// Its name there.
    pub id: Box<str>,
    /// When it happened.
    pub at: Timestamp,
    /// Whose it was.
    pub agent: Box<str>,
}

/// How a change of a file was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// It was not there before.
    Created,
    /// It says something else.
    Changed,
    /// It is not there any more.
    Deleted,
}

/// Why an agent leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Elected {
    /// The lead has gone.
    Departed,
    /// There was none.
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

    /// The kind's name as stored and filtered by.
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

/// A row of what a crew works by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CrewChange {
    /// A member.
    PutMember(Arc<Member>),
    /// A member that is forgotten.
    DropMember(AgentId),
    /// A file that an agent has asked for.
    PutClaim(Arc<Claim>),
    /// A file that is forgotten.
    DropClaim(RepoPath),
    /// An assignment.
    PutAssignment(Arc<Assignment>),
    /// An assignment that is forgotten.
    DropAssignment(AssignmentId),
    /// Work that is handed over.
    PutTransfer(Arc<Transfer>),
    /// Work that was handed over, and is forgotten.
    DropTransfer(TransferId),
}

impl From<CrewChange> for Change {
    fn from(change: CrewChange) -> Self {
        Change::Crew(change)
    }
}
