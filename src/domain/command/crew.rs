//! Verbs of a crew: members, claims on files, assignments, handoffs, notes. Agent Protocol, 3.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Assignment, AssignmentState, Claim, Content, Event, Handoff, Meeting, Member, Note, Role, Seen, Standing,
    Version,
};
use provost_base::{AgentId, AssignmentId, HandoffId, RepoPath};

/// Announce oneself to the crew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JoinCrew {
    /// The program that the caller runs as, in its own words.
    pub tool: Box<str>,
    /// The role that the caller asks for. The crew's rules decide who leads.
    pub role: Role,
    /// The caller's capabilities, in its own words.
    pub capabilities: Vec<Box<str>>,
}

/// The caller is a member of the crew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewJoined {
    /// The member as the crew knows it now; its role may differ from the requested one.
    pub member: Arc<Member>,
}

/// Leave the crew, and free the claims that the caller holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaveCrew {
    /// Whether the caller stays if it holds a file: nothing is released then.
    pub only_if_idle: bool,
    /// The contents of the caller's files at this moment, as far as they are known.
    pub contents: BTreeMap<RepoPath, Content>,
}

/// The caller is not a member of the crew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewLeft {
    /// Whether the caller was a member, and has left now.
    pub was_there: bool,
}

/// Give a sign of life as a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeatCrew;

/// The sign of life is noted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewBeaten;

/// Say what the caller is doing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveMember {
    /// The standing of the caller from now on.
    pub to: Standing,
}

/// The crew knows the caller's standing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberMoved;

/// Name the lead of the crew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppointLead {
    /// The member that should lead.
    pub agent: AgentId,
}

/// The named member leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeadAppointed;

/// Ask for a whole file, to work on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClaimFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The file's content at this moment.
    pub content: Content,
    /// The assignment for which the caller wants the file; `None` outside of assignments.
    pub assignment: Option<Box<str>>,
}

/// The caller has the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileClaimed {
    /// The claim as it is now.
    pub claim: Arc<Claim>,
    /// Whether the caller did not have the file before.
    pub fresh: bool,
    /// Other agents' holds on the file through other doors.
    pub met: Vec<Meeting>,
}

/// Give a claimed file back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReleaseFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The file's content at this moment.
    pub content: Content,
}

/// The caller does not have the file any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReleased {
    /// Whether the caller had it until now.
    pub released: bool,
}

/// Keep a file from being claimed, or end that. Only the lead may do this.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The file's content at this moment.
    pub content: Content,
    /// Whether the file gets locked; `false` frees it.
    pub lock: bool,
}

/// The file is locked or free, as the lead wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLocked {
    /// Whether this has changed the file's state.
    pub changed: bool,
}

/// Request work from the crew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MakeAssignment {
    /// The id; the door chooses it, since the core has no random source.
    pub id: AssignmentId,
    /// The title, for lists.
    pub title: Box<str>,
    /// The work, in words.
    pub description: Box<str>,
    /// The agent that should do it, under any name; `None` leaves it to any member.
    pub to: Option<Box<str>>,
    /// Files that the work is about.
    pub files: Vec<Box<str>>,
    /// Ids of assignments that have to be done before this one.
    pub after: Vec<Box<str>>,
}

/// The assignment is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssignmentMade {
    /// The assignment as it was recorded.
    pub assignment: Arc<Assignment>,
}

/// Change the state of an assignment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveAssignment {
    /// The assignment to move.
    pub id: AssignmentId,
    /// The state that it has from now on.
    pub to: AssignmentState,
    /// The state that the caller believes the assignment to have; the verb is refused if it has another. `None`
    /// checks nothing.
    pub expected: Option<AssignmentState>,
}

/// The assignment has its new state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssignmentMoved {
    /// The assignment as it is now.
    pub assignment: Arc<Assignment>,
}

/// Offer work to another member, with notes about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OfferTransfer {
    /// The id; the door chooses it, since the core has no random source.
    pub id: HandoffId,
    /// The member that should take it, under any name; `None` offers it to all.
    pub to: Option<Box<str>>,
    /// The assignment that the work is part of.
    pub assignment: Box<str>,
    /// The work that was done so far.
    pub summary: Box<str>,
    /// Files that the sender has changed.
    pub modified: Vec<Box<str>>,
    /// Files that the sender has made.
    pub created: Vec<Box<str>>,
    /// Information for the recipient.
    pub context: Box<str>,
    /// Obstacles that keep the work from going on.
    pub blockers: Vec<Box<str>>,
}

/// The handoff waits for an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferOffered {
    /// The handoff as it was recorded.
    pub transfer: Arc<Handoff>,
}

/// Take over work that was offered, or decline it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AnswerTransfer {
    /// The handoff to answer.
    pub id: HandoffId,
    /// Whether the caller takes the work over; `false` declines it.
    pub accept: bool,
    /// The reason why the caller declines; it may be empty.
    pub reason: Box<str>,
}

/// The handoff has its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferAnswered {
    /// Whether the handoff waited for an answer until now.
    pub answered: bool,
}

/// Put a note on the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeNote {
    /// The note, in the caller's words.
    pub note: Note,
    /// The changed file, if the note reports a change by the caller.
    pub changed: Option<ChangedFile>,
    /// The file whose conflict is over, if the note reports that.
    pub settles: Option<SettledFile>,
}

/// A file that an agent reports as changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The file's present content.
    pub content: Content,
    /// Earlier versions of the file that were kept, in case another agent has claimed it.
    pub versions: Vec<Version>,
}

/// A file whose conflict is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettledFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The agent whose change counts; it gets the file if it is in the crew. `None` frees the file.
    pub pick: Option<AgentId>,
    /// The file's present content, if one of its versions was brought back.
    pub content: Option<Content>,
}

/// The note is on the timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoteTaken {
    /// The note's event.
    pub event: Event,
}

/// Put another daemon's notes on the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeNotes {
    /// The notes, each with the daemon and event that it comes from.
    pub notes: Vec<Note>,
}

/// The notes are on the timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotesTaken;

/// Report files that have changed on disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeeFiles {
    /// The files that have changed.
    pub files: Vec<SeenFile>,
}

/// A file that has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeenFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The kind of change.
    pub how: Seen,
    /// The content that the file had when the daemon last looked; `None` if it is not known.
    pub before: Option<Content>,
    /// The file's present content; `None` if it was not read.
    pub after: Option<Content>,
    /// Versions of the file that were kept, in case its owner is away.
    pub versions: Vec<Version>,
}

/// The changes are on the timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilesSeen;
