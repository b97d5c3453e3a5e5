//! Verbs of a crew: members, claims on files, assignments, transfers, notes. Agent Protocol, 3.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::{AgentId, AssignmentId, RepoPath, TransferId};
use crate::domain::{
    Assignment, AssignmentState, Claim, Content, Event, Meeting, Member, Note, Role, Seen, Standing,
    Transfer, Version,
};

/// Announce oneself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JoinCrew {
    /// The program that it is.
    pub tool: Box<str>,
    /// The part that it wants.
    pub role: Role,
    /// What it can do.
    pub capabilities: Vec<Box<str>>,
}

/// The caller is one of the crew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewJoined {
    /// As what.
    pub member: Arc<Member>,
}

/// Leave.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaveCrew {
    /// Whether the caller stays after all if it holds a file: nothing is released then.
    pub only_if_idle: bool,
    /// What the caller's files say now, as far as that is known.
    pub contents: BTreeMap<RepoPath, Content>,
}

/// The caller is not one of the crew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewLeft {
    /// Whether it was, and has gone.
    pub was_there: bool,
}

/// Say that one is still there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeatCrew;

/// It was heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewBeaten;

/// Say what one is at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveMember {
    /// What.
    pub to: Standing,
}

/// It was heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberMoved;

/// Name the lead.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppointLead {
    /// Who.
    pub agent: AgentId,
}

/// It leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeadAppointed;

/// Ask for a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClaimFile {
    /// Which, in its one spelling.
    pub file: RepoPath,
    /// What it says.
    pub content: Content,
    /// What for.
    pub assignment: Option<Box<str>>,
}

/// It is the caller's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileClaimed {
    /// The claim.
    pub claim: Arc<Claim>,
    /// Whether the caller did not have it before.
    pub fresh: bool,
    /// What others have there through other doors.
    pub met: Vec<Meeting>,
}

/// Give a file back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReleaseFile {
    /// Which, in its one spelling.
    pub file: RepoPath,
    /// What it says.
    pub content: Content,
}

/// It is not the caller's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReleased {
    /// Whether it was.
    pub released: bool,
}

/// Keep a file from being claimed, or let it be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockFile {
    /// Which, in its one spelling.
    pub file: RepoPath,
    /// What it says.
    pub content: Content,
    /// Which of the two.
    pub lock: bool,
}

/// It is so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLocked {
    /// Whether it was not.
    pub changed: bool,
}

/// Want something done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MakeAssignment {
    /// Chosen by the door, since the core knows no chance.
    pub id: AssignmentId,
    /// What it is called.
    pub title: Box<str>,
    /// What is to be done.
    pub description: Box<str>,
    /// Who is to do it.
    pub to: Option<Box<str>>,
    /// Files that it is about.
    pub files: Vec<Box<str>>,
    /// What is to be done before.
    pub after: Vec<Box<str>>,
}

/// There is an assignment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssignmentMade {
    /// This one.
    pub assignment: Arc<Assignment>,
}

/// Say how an assignment goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveAssignment {
    /// Which.
    pub id: AssignmentId,
    /// Where it is now.
    pub to: AssignmentState,
    /// Only if it was here.
    pub expected: Option<AssignmentState>,
}

/// It does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssignmentMoved {
    /// The assignment.
    pub assignment: Arc<Assignment>,
}

/// Hand work over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OfferTransfer {
    /// Chosen by the door, since the core knows no chance.
    pub id: TransferId,
    /// To whom.
    pub to: Option<Box<str>>,
    /// What it is part of.
    pub assignment: Box<str>,
    /// What was done.
    pub summary: Box<str>,
    /// Files that were changed.
    pub modified: Vec<Box<str>>,
    /// Files that were made.
    pub created: Vec<Box<str>>,
    /// What to know.
    pub context: Box<str>,
    /// What is in the way.
    pub blockers: Vec<Box<str>>,
}

/// It waits for an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferOffered {
    /// The transfer.
    pub transfer: Arc<Transfer>,
}

/// Go on with work that was handed over, or do not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AnswerTransfer {
    /// Which.
    pub id: TransferId,
    /// Which of the two.
    pub accept: bool,
    /// Why not.
    pub reason: Box<str>,
}

/// It does not wait for an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferAnswered {
    /// Whether it did.
    pub answered: bool,
}

/// Put something on the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeNote {
    /// What.
    pub note: Note,
    /// If it says that the caller has changed a file.
    pub changed: Option<ChangedFile>,
    /// If it says that a conflict is over.
    pub settles: Option<SettledFile>,
}

/// A file that an agent says it has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Which.
    pub file: RepoPath,
    /// What it says now.
    pub content: Content,
    /// What was kept of it, in case that it is another's.
    pub versions: Vec<Version>,
}

/// A file that is in conflict no more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettledFile {
    /// Which.
    pub file: RepoPath,
    /// Whose change counts.
    pub pick: Option<AgentId>,
    /// What it says now, if one of its versions was brought back.
    pub content: Option<Content>,
}

/// It is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoteTaken {
    /// As this.
    pub event: Event,
}

/// Put on the timeline what another daemon has kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeNotes {
    /// What, each with where it comes from.
    pub notes: Vec<Note>,
}

/// It is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotesTaken;

/// Files that have changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeeFiles {
    /// Which.
    pub files: Vec<SeenFile>,
}

/// A file that has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeenFile {
    /// Which.
    pub file: RepoPath,
    /// How it was seen.
    pub how: Seen,
    /// What it said when it was last looked at.
    pub before: Option<Content>,
    /// What it says now.
    pub after: Option<Content>,
    /// What was kept of it, in case that its owner is not there.
    pub versions: Vec<Version>,
}

/// They are on the timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilesSeen;
