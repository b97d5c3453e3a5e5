//! The crew as it travels: its members, the files that they hold, and the work that waits for the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /join-crew`, answered with the [`Member`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinCrew {
    /// The program that the caller is.
    pub tool: String,
    /// `lead`, `specialist`, `worker`; the latter when absent.
    pub role: Option<String>,
    /// The caller's abilities, in its own words.
    pub capabilities: Vec<String>,
}

/// `POST /leave-crew`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaveCrew {
    /// Whether the caller stays after all if it holds a file: nothing is released then.
    pub only_if_idle: bool,
}

/// Answer to [`LeaveCrew`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeftCrew {
    /// Whether it was there, and has gone.
    pub left: bool,
}

/// `POST /claim`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimFile {
    /// The path of the file, from the root of the repository.
    pub path: String,
    /// The id of the task for which the caller claims it, if any.
    pub task: Option<String>,
}

/// Answer to [`ClaimFile`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Claimed {
    /// The file, in its one spelling.
    pub file: String,
    /// What others have there through other doors, a sentence for each.
    pub warnings: Vec<String>,
}

/// `POST /release-claim`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseClaim {
    /// The path of the file, from the root of the repository.
    pub path: String,
    /// Whether to free another agent's file, which only the user may do.
    pub force: bool,
    /// With `force`: only if it still is this grant.
    pub fence: Option<u64>,
}

/// Answer to [`ReleaseClaim`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// Whether it was the caller's.
    pub released: bool,
}

/// The first rows of a list, within a bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rows<T> {
    /// The first rows, in the list's order.
    pub rows: Vec<T>,
    /// How many there are beyond those.
    pub more: usize,
}

/// `GET /at-work`: what the caller needs to know of others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AtWork {
    /// The caller, if it is in the crew.
    pub me: Option<Member>,
    /// Members that are there, in the order in which they came.
    pub members: Rows<Member>,
    /// Workers that are at a delegated task, by name.
    pub workers: Rows<WorkerAtTask>,
    /// Files that are claimed, locked or in conflict, by path; the caller's own, too.
    pub claims: Rows<FileHeld>,
    /// What others have locked or announced through other doors, by path.
    pub stakes: Rows<Reservation>,
    /// Tasks for the caller that are not done, oldest first.
    pub tasks: Rows<TaskForMe>,
    /// Hand-offs that the caller may answer, oldest first.
    pub handoffs: Rows<HandoffForMe>,
    /// How long a member may give no sign of life, in milliseconds.
    pub patience_ms: u64,
}

/// One of the crew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The name of the agent.
    pub agent: String,
    /// The program that it says it is.
    pub tool: String,
    /// `lead`, `specialist`, `worker`.
    pub role: String,
    /// `idle`, `working`, `blocked`, `waiting_review`, `offline`.
    pub status: String,
}

/// A worker at a delegated task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerAtTask {
    /// The name of the worker.
    pub agent: String,
    /// The task's id.
    pub task: String,
}

/// A file of the crew's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileHeld {
    /// The path of the file, from the root of the repository.
    pub file: String,
    /// `claimed`, `locked`, `conflicted`.
    pub how: String,
    /// The agent that has the file; where it is in conflict, the one that had it.
    pub agent: String,
}

/// What an agent of another door has at a place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reservation {
    /// The file, or a folder and all below it.
    pub at: String,
    /// `lock`, `intent`.
    pub kind: String,
    /// The agent that has the lock or has announced the change.
    pub agent: String,
    /// For a lock, the place as its owner wrote it; for an intent, its purpose.
    pub asked: String,
}

/// A task for the caller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskForMe {
    /// The id of the task.
    pub id: String,
    /// The title that its requester has given it.
    pub title: String,
    /// The agent that has requested it.
    pub by: String,
    /// `queued`, `assigned`, `in_progress`, `review`, `blocked`.
    pub status: String,
    /// Files that it is about, as they were written.
    pub files: Vec<String>,
}

/// Work that an agent hands over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HandoffForMe {
    /// The id of the hand-off.
    pub id: String,
    /// The agent that hands the work over.
    pub from: String,
    /// The task that the work is part of, as the agent names it.
    pub task: String,
    /// The work that is done so far, in the words of the agent that hands over.
    pub summary: String,
}

/// Query of `GET /claims`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimsQuery {
    /// Only the caller's own.
    pub mine: bool,
    /// Only this file, by its path; every file when absent.
    pub file: Option<String>,
}

/// A file of the crew's, with what is known of it. `GET /claims`, by path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeldFile {
    /// The path of the file, from the root of the repository.
    pub file: String,
    /// `claimed`, `locked` by the lead, `conflicted`.
    pub how: String,
    /// The agent that has the file; where it is in conflict, the one that had it.
    pub holder: String,
    /// When its holder claimed it.
    pub since: Option<String>,
    /// The grant; rises with every one.
    pub fence: u64,
    /// The id of the task that the holder has named for it, if any.
    pub task: Option<String>,
}

/// Query of `GET /handoffs`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffsQuery {
    /// Those that were answered, too.
    pub answered: bool,
}

/// Work that is handed over. `GET /handoffs`: those that the caller has made or may answer, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandedOver {
    /// The id by which `POST /answer-handoff` names it.
    pub id: String,
    /// Its place in lists; rises.
    pub place: u64,
    /// The agent that hands the work over.
    pub from: String,
    /// The agent that is to go on with it; absent where any agent may.
    pub to: Option<String>,
    /// The task that the work is part of, as the agent names it.
    pub task: String,
    /// `pending`, `accepted`, `rejected`.
    pub state: String,
    /// The work that is done so far, in the words of the agent that hands over.
    pub summary: String,
    /// Files that were changed.
    pub files_modified: Vec<String>,
    /// Files that were made.
    pub files_created: Vec<String>,
    /// What the next agent should know; may be empty.
    pub context: String,
    /// Problems that stand in the way, in the words of the agent that hands over.
    pub blockers: Vec<String>,
    /// When it was handed over.
    pub at: String,
}

/// `POST /offer-handoff`, answered with the [`HandedOver`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferHandoff {
    /// The agent that is to go on with it; absent where any agent may.
    pub to: Option<String>,
    /// The task that the work is part of, as the agent names it; must not be empty.
    pub task: String,
    /// The work that is done so far; must not be empty.
    pub summary: String,
    /// Files that were changed.
    pub files_modified: Vec<String>,
    /// Files that were made.
    pub files_created: Vec<String>,
    /// What the next agent should know; may be empty.
    pub context: String,
    /// Problems that stand in the way; may be empty.
    pub blockers: Vec<String>,
}

/// `POST /answer-handoff`, answered with the [`HandedOver`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerHandoff {
    /// The id of the hand-off.
    pub id: String,
    /// Whether the caller goes on with it.
    pub accept: bool,
    /// The reason, mostly for a rejection; recorded in the journal with the answer.
    pub reason: Option<String>,
}

/// What two agents have in the same place: `GET /meetings`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Meeting {
    /// Where they meet: a file or a folder; for a caller, the symbol that it calls.
    pub file: String,
    /// `symbol` where both name the same symbol; `caller` where what the one has calls what the other has; else `file`.
    pub severity: String,
    /// The two sides, by name of the agent.
    pub sides: Vec<MeetingSide>,
}

/// Query of `GET /both-changes`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BothChangesQuery {
    /// The path of the file, from the root of the repository.
    pub file: String,
    /// One agent.
    pub one: String,
    /// The other one.
    pub other: String,
}

/// What one agent has changed of a file in its own work tree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedSide {
    /// The agent.
    pub agent: String,
    /// The branch of its work tree; absent where none is known.
    pub branch: Option<String>,
    /// The difference, in git's form, since its branch left the one of the workspace; absent where it is not known.
    pub diff: Option<String>,
    /// Lines that come.
    pub added: u64,
    /// Lines that go.
    pub removed: u64,
    /// Why the difference is not known.
    pub why_not: Option<String>,
}

/// What one of them has there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MeetingSide {
    /// The agent.
    pub agent: String,
    /// `claim`, `lock` or `intent`.
    pub kind: String,
    /// The place or the purpose, in the agent's own words.
    pub asked: String,
    /// The symbols that it is for; empty for whole files.
    pub symbols: Vec<String>,
    /// The lines that it is for, the last ones included; empty where the agent names none.
    pub lines: Vec<(u32, u32)>,
    /// Since when the agent has it.
    pub since: String,
    /// When it ends; absent where it has no end of its own.
    pub until: Option<String>,
}
