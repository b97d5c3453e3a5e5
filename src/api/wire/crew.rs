//! The types for a crew: its members, the files that they hold, and the work that waits for the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /join-crew`; the answer is the [`Member`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinCrew {
    /// The program that the caller is.
    pub tool: String,
    /// `lead`, `specialist` or `worker`; `worker` when absent.
    pub role: Option<String>,
    /// The caller's abilities, in its own words.
    pub capabilities: Vec<String>,
}

/// `POST /leave-crew`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaveCrew {
    /// Whether the caller stays if it holds a file: then no file is released.
    pub only_if_idle: bool,
}

/// Answer to [`LeaveCrew`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeftCrew {
    /// Whether the caller was a member, and has left.
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
    /// The holds of other agents there through other doors, a sentence for each.
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
    /// With `force`: the grant that the claim must still have.
    pub fence: Option<u64>,
}

/// Answer to [`ReleaseClaim`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// Whether the caller held the claim.
    pub released: bool,
}

/// The first rows of a list, within a bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rows<T> {
    /// The first rows, in the list's order.
    pub rows: Vec<T>,
    /// The number of further rows.
    pub more: usize,
}

/// `GET /at-work`: the state of the crew and of other agents, for the caller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AtWork {
    /// The caller, if it is in the crew.
    pub me: Option<Member>,
    /// Members that are present, in the order in which they joined.
    pub members: Rows<Member>,
    /// Workers with a running delegated task, by name.
    pub workers: Rows<WorkerAtTask>,
    /// Files that are claimed, locked or in conflict, by path, including the caller's own.
    pub claims: Rows<FileHeld>,
    /// Locks and intents of other agents through other doors, by path.
    pub stakes: Rows<Reservation>,
    /// Tasks for the caller that are not done, oldest first.
    pub tasks: Rows<TaskForMe>,
    /// Hand-offs that the caller may answer, oldest first.
    pub handoffs: Rows<HandoffForMe>,
    /// How long a member may go without a sign of life, in milliseconds.
    pub patience_ms: u64,
}

/// A member of the crew.
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

/// A file that a member holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileHeld {
    /// The path of the file, from the root of the repository.
    pub file: String,
    /// `claimed`, `locked`, `conflicted`.
    pub how: String,
    /// The agent that holds the file; if it is in conflict, the former holder.
    pub agent: String,
}

/// The hold of an agent of another door on a place.
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
    /// Files of the task, as the requester wrote them.
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
    /// Only the caller's own claims.
    pub mine: bool,
    /// Only this file, by its path; every file when absent.
    pub file: Option<String>,
}

/// A file that a member holds, with its data. `GET /claims`, by path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeldFile {
    /// The path of the file, from the root of the repository.
    pub file: String,
    /// `claimed`, `locked` by the lead, `conflicted`.
    pub how: String,
    /// The agent that holds the file; if it is in conflict, the former holder.
    pub holder: String,
    /// When its holder claimed it.
    pub since: Option<String>,
    /// The number of the grant, which rises with every grant.
    pub fence: u64,
    /// The id of the task that the holder has named for it, if any.
    pub task: Option<String>,
}

/// Query of `GET /handoffs`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffsQuery {
    /// Whether to include answered hand-offs.
    pub answered: bool,
}

/// Work that is handed over. `GET /handoffs`: the hand-offs that the caller has made or may answer, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandedOver {
    /// The id that identifies it in `POST /answer-handoff`.
    pub id: String,
    /// Its place in lists, which rises with every hand-off.
    pub place: u64,
    /// The agent that hands the work over.
    pub from: String,
    /// The agent that will continue the work; absent if any agent may.
    pub to: Option<String>,
    /// The task that the work is part of, as the agent names it.
    pub task: String,
    /// `pending`, `accepted`, `rejected`.
    pub state: String,
    /// The work that is done so far, in the words of the agent that hands over.
    pub summary: String,
    /// Files that were changed.
    pub files_modified: Vec<String>,
    /// Files that were created.
    pub files_created: Vec<String>,
    /// Information for the next agent; may be empty.
    pub context: String,
    /// Problems in the way, in the words of the agent that hands over.
    pub blockers: Vec<String>,
    /// When it was handed over.
    pub at: String,
}

/// `POST /offer-handoff`; the answer is the [`HandedOver`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferHandoff {
    /// The agent that will continue the work; absent if any agent may.
    pub to: Option<String>,
    /// The task that the work is part of, as the agent names it; must not be empty.
    pub task: String,
    /// The work that is done so far; must not be empty.
    pub summary: String,
    /// Files that were changed.
    pub files_modified: Vec<String>,
    /// Files that were created.
    pub files_created: Vec<String>,
    /// Information for the next agent; may be empty.
    pub context: String,
    /// Problems in the way; may be empty.
    pub blockers: Vec<String>,
}

/// `POST /answer-handoff`; the answer is the [`HandedOver`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerHandoff {
    /// The id of the hand-off.
    pub id: String,
    /// Whether the caller continues the work.
    pub accept: bool,
    /// The reason, mostly for a rejection; recorded in the journal with the answer.
    pub reason: Option<String>,
}

/// Two agents whose reservations meet in one place: `GET /meetings`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Meeting {
    /// The place where they meet: a file or a folder; for a call, the called symbol.
    pub file: String,
    /// `symbol` if both name the same symbol; `caller` if a symbol of the first calls one of the second; else `file`.
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
    /// The first agent.
    pub one: String,
    /// The second agent.
    pub other: String,
}

/// The changes of an agent to a file in its own work tree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedSide {
    /// The agent.
    pub agent: String,
    /// The branch of its work tree; absent if none is known.
    pub branch: Option<String>,
    /// The difference, in git's form, since its branch left the one of the workspace; absent if it is not known.
    pub diff: Option<String>,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
    /// The reason why the difference is not known.
    pub why_not: Option<String>,
}

/// The reservation of one of the two agents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MeetingSide {
    /// The agent.
    pub agent: String,
    /// `claim`, `lock` or `intent`.
    pub kind: String,
    /// The place or the purpose, in the agent's own words.
    pub asked: String,
    /// The symbols that it covers; empty for whole files.
    pub symbols: Vec<String>,
    /// The lines that it covers, with the last one included; empty if the agent names none.
    pub lines: Vec<(u32, u32)>,
    /// When the reservation began.
    pub since: String,
    /// When it ends; absent if it has no end of its own.
    pub until: Option<String>,
}
