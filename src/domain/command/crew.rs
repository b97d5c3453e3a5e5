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
    /// The part that the caller asks for. Who leads is decided by the crew's rules.
    pub role: Role,
    /// What the caller can do, in its own words.
    pub capabilities: Vec<Box<str>>,
}

/// The caller is one of the crew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewJoined {
    /// The member as the crew knows it now; it may have another part than it asked for.
    pub member: Arc<Member>,
}

/// Leave the crew, and free the claims that the caller holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaveCrew {
    /// Whether the caller stays after all if it holds a file: nothing is released then.
    pub only_if_idle: bool,
    /// The contents of the caller's files at this moment, as far as they are known.
    pub contents: BTreeMap<RepoPath, Content>,
}

/// The caller is not one of the crew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewLeft {
    /// Whether it was, and has gone.
    pub was_there: bool,
}

/// Give a sign of life as a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeatCrew;

/// The sign of life is noted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewBeaten;

/// Say what the caller is busy with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveMember {
    /// What the caller is busy with from now on.
    pub to: Standing,
}

/// The crew knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberMoved;

/// Name the lead of the crew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppointLead {
    /// The member that is to lead.
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

/// Keep a file from being claimed, or end that. Only the lead may.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The file's content at this moment.
    pub content: Content,
    /// Whether the file is to be locked; `false` frees it.
    pub lock: bool,
}

/// The file is locked or free, as the lead wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLocked {
    /// Whether it was not so before.
    pub changed: bool,
}

/// Request work from the crew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MakeAssignment {
    /// The door chooses it, since the core knows no chance.
    pub id: AssignmentId,
    /// The title, for lists.
    pub title: Box<str>,
    /// The work, in words.
    pub description: Box<str>,
    /// The agent that is to do it, any name; `None` leaves it to any member.
    pub to: Option<Box<str>>,
    /// Files that it is about.
    pub files: Vec<Box<str>>,
    /// Ids of assignments that have to be done before.
    pub after: Vec<Box<str>>,
}

/// The assignment is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssignmentMade {
    /// The assignment as it was recorded.
    pub assignment: Arc<Assignment>,
}

/// Say how an assignment goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MoveAssignment {
    /// The assignment to move.
    pub id: AssignmentId,
    /// The state that it has from now on.
    pub to: AssignmentState,
    /// The state that the caller believes it to have; the verb is refused where it has
    /// another. `None` checks nothing.
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
    /// The door chooses it, since the core knows no chance.
    pub id: HandoffId,
    /// The member to take it, any name; `None` offers it to all.
    pub to: Option<Box<str>>,
    /// The assignment that the work is part of.
    pub assignment: Box<str>,
    /// What was done so far.
    pub summary: Box<str>,
    /// Files that the sender has changed.
    pub modified: Vec<Box<str>>,
    /// Files that the sender has made.
    pub created: Vec<Box<str>>,
    /// What the recipient should know.
    pub context: Box<str>,
    /// What keeps the work from going on.
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
    /// Why the caller declines; it may be empty.
    pub reason: Box<str>,
}

/// The handoff has its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferAnswered {
    /// Whether it waited for one until now.
    pub answered: bool,
}

/// Put something on the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeNote {
    /// The note, in the caller's words.
    pub note: Note,
    /// The changed file, if the note reports a change by the caller.
    pub changed: Option<ChangedFile>,
    /// The file whose conflict is over, if the note reports that.
    pub settles: Option<SettledFile>,
}

/// A file that an agent says it has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The file's content by now.
    pub content: Content,
    /// Earlier versions of the file that were kept, in case that another agent has claimed it.
    pub versions: Vec<Version>,
}

/// A file that is in conflict no more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SettledFile {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The agent whose change counts; it gets the file if it is in the crew. `None` frees the file.
    pub pick: Option<AgentId>,
    /// The file's content by now, if one of its versions was brought back.
    pub content: Option<Content>,
}

/// The note is on the timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoteTaken {
    /// The note's event.
    pub event: Event,
}

/// Put on the timeline what another daemon has kept.
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
    /// The content that the file had when it was last looked at; `None` if that is not known.
    pub before: Option<Content>,
    /// The file's content by now.
    pub after: Option<Content>,
    /// Versions of the file that were kept, in case that its owner is away.
    pub versions: Vec<Version>,
}

/// The changes are on the timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilesSeen;
