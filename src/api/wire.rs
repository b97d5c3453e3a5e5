//! Provost's own API as it travels: HTTP with JSON on a Unix socket, verb names as paths.
//!
//! Used by this door and by `client`. Members that are absent are `null` or left out; unknown ones are ignored,
//! so that an older client can talk to a newer daemon of the same version header.

mod applies;
mod coordinate;
mod crew;
mod graph;
mod held_back;
mod hosts;
mod inbox;
mod jobs;
mod kept;
mod permissions;
mod posts;
mod token;
mod used;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use applies::*;
pub use coordinate::*;
pub use crew::*;
pub use graph::*;
pub use held_back::*;
pub use hosts::*;
pub use inbox::*;
pub use jobs::*;
pub use kept::*;
pub use permissions::*;
pub use posts::*;
pub use token::*;
pub use used::*;

/// Sent in the header `x-provost-api` both ways; another number is refused with a sentence.
pub const API_VERSION: &str = "1";

/// Header for [`API_VERSION`].
pub const VERSION_HEADER: &str = "x-provost-api";

/// Header with the agent a caller speaks as, when not as the user.
pub const AGENT_HEADER: &str = "x-provost-agent";

/// Header with the process for which a caller takes what it takes: locks, claims and intents end with it.
pub const PROCESS_HEADER: &str = "x-provost-process";

/// The session of a host over HTTP with which ends what it takes; believed from a door of the daemon's own alone.
pub const SESSION_HEADER: &str = "x-provost-session";

/// An error, with what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fault {
    /// One word, for programs.
    pub error: String,
    /// One sentence, for people.
    pub message: String,
    /// The next step, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What a program may want to know besides: of a lock, its holder and how long it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// `POST /delegate`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Delegate {
    /// Chosen by the caller; made here when absent.
    pub task: Option<String>,
    /// What is to be done.
    pub goal: String,
    /// Who is to do it.
    pub worker: String,
    /// Relative to the workspace.
    pub working_dir: Option<String>,
    /// In seconds.
    pub timeout_s: Option<u64>,
    /// Model asked for.
    pub model: Option<String>,
    /// `default` or `compact`.
    pub format: Option<String>,
    /// The tool policy is asked about; `devit_delegate` when absent.
    pub tool: Option<String>,
    /// Who hears of it besides the caller.
    pub return_to: Option<String>,
    /// Free data for the worker.
    pub context: Option<Value>,
    /// Files that are to be watched while it goes on.
    pub watch_patterns: Vec<String>,
}

/// Answer to [`Delegate`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delegated {
    /// The task.
    pub task: String,
    /// `queued`, `awaiting`, `denied`, or where a repeated request's task stands.
    pub state: String,
    /// The approval it waits for.
    pub approval: Option<u64>,
    /// The rule that denied it.
    pub rule: Option<String>,
    /// Its reason.
    pub reason: Option<String>,
}

/// `POST /screenshot`; answered as a delegation is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Screenshot {
    /// Chosen by the caller; made here when absent.
    pub task: Option<String>,
}

/// `POST /cancel-task`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cancel {
    /// Which.
    pub task: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `POST /report-task`; `status = "ack"` acknowledges.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Which.
    pub task: String,
    /// `pending`, `in_progress`, `completed`, `failed`, `cancelled`, `ack`.
    pub status: String,
    /// For people.
    pub summary: Option<String>,
    /// Structured results.
    pub details: Option<Value>,
    /// Logs and the like.
    pub evidence: Option<Value>,
}

/// Where a task stands after a verb.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskState {
    /// Which.
    pub task: String,
    /// Where it stands.
    pub state: String,
}

/// `POST /answer-approval`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Which.
    pub approval: u64,
    /// Yes or no.
    pub grant: bool,
    /// Why.
    #[serde(default)]
    pub note: Option<String>,
    /// Digest of what was shown.
    #[serde(default)]
    pub digest: Option<String>,
}

/// Answer to [`Answer`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// The task it was about.
    pub task: Option<String>,
    /// Why the granted command was not carried out after all.
    pub failed: Option<String>,
}

/// One approval that waits. `GET /approvals`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Approval {
    /// Its number.
    pub id: u64,
    /// Who asked.
    pub asked_by: String,
    /// Through which door.
    pub door: String,
    /// The verb.
    pub verb: String,
    /// The task it would make.
    pub task: Option<String>,
    /// The worker.
    pub worker: Option<String>,
    /// What policy was asked about.
    pub tool: String,
    /// The rule that asks.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// `low`, `medium`, `high`.
    pub risk: String,
    /// Where it would work.
    pub working_dir: Option<String>,
    /// What it may reach over the network.
    pub network: String,
    /// The secrets that it would be given, and how.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// The agent's own words, last and fenced when shown.
    pub goal: Option<String>,
    /// The whole request as the worker would get it; the answer is bound to all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// Who may answer.
    pub by: String,
    /// Whether a dialog at the asker's own host counts.
    #[serde(default)]
    pub host: bool,
    /// When it was asked.
    pub asked_at: String,
    /// Until when it waits.
    pub expires_at: String,
    /// Digest the answer is bound to.
    pub digest: String,
}

/// One entry of a task's history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at: String,
    /// Who.
    pub from: String,
    /// The status word.
    pub status: String,
    /// For people.
    pub summary: String,
    /// Structured results.
    pub details: Option<Value>,
    /// Logs and the like.
    pub evidence: Option<Value>,
    /// Scheduling, model and exit data.
    pub metadata: Option<Value>,
}

/// A task. `GET /tasks`, `GET /task`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub goal: String,
    /// Who is to do it.
    pub worker: String,
    /// `cli` or `polling`.
    pub worker_kind: String,
    /// Whether it is a picture of the screen, which the daemon itself takes.
    #[serde(default)]
    pub capture: bool,
    /// Who asked.
    pub asked_by: String,
    /// Where it stands: `awaiting`, `queued`, `assigned`, `running`, `completed`, `failed`, `cancelled`.
    pub state: String,
    /// The approval it waits for.
    pub approval: Option<u64>,
    /// The rule that allowed or denied it.
    pub rule: String,
    /// Relative to the workspace; `.` is the workspace itself.
    pub working_dir: Option<String>,
    /// When it was accepted.
    pub created_at: String,
    /// When anything last happened.
    pub updated_at: String,
    /// In seconds.
    pub timeout_s: u64,
    /// `default`, `compact`.
    #[serde(default)]
    pub format: Option<String>,
    /// The model asked for.
    pub model: Option<String>,
    /// The model that did the work.
    pub model_used: Option<String>,
    /// What its worker says that it has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
    /// Tasks that ran in its directory while it did.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Whether its run has left something that runs later; absent when nothing was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted: Option<bool>,
    /// What that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// What became of the files that its asker wanted watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<FilesChanged>,
    /// Why it failed, when the daemon says so.
    pub failure: Option<Value>,
    /// Exit code of its worker process.
    pub exit_code: Option<i64>,
    /// What was said about it.
    pub notes: Vec<Note>,
}

/// What a run has left that runs later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Handoff {
    /// The gravest first; bounded.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub more: u32,
    /// Why the comparison is incomplete.
    pub unknown: Option<String>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Relative to the workspace.
    pub path: String,
    /// `git`, `setting`, `protected`, `setuid`, `socket`, `link`, `instructions`, `ci`, `build`, `lock`, `executable`.
    pub kind: String,
    /// `new`, `changed`, `removed`.
    pub change: String,
}

/// What became of watched files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FilesChanged {
    /// Bounded.
    pub files: Vec<ChangedFile>,
    /// Changed files that are not listed.
    pub more: u32,
    /// Why some changes may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Relative to the task's working directory.
    pub path: String,
    /// `new`, `changed`, `renamed`, `removed`.
    pub change: String,
    /// Its earlier name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// `GET /tasks`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tasks {
    /// Unfinished, oldest first.
    pub active: Vec<Task>,
    /// Finished, newest first.
    pub finished: Vec<Task>,
    /// Whether there are more finished ones.
    pub truncated: bool,
    /// Completed and cancelled since the beginning.
    pub completed: u64,
    /// Failed since the beginning.
    pub failed: u64,
}

/// Query of `GET /tasks`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TasksQuery {
    /// `all`, `active`, `completed`, `failed`.
    pub filter: Option<String>,
    /// Most finished tasks.
    pub limit: Option<usize>,
    /// Only finished ones, from behind this one on.
    pub before: Option<String>,
}

/// Query of `GET /task`: answered when the task changes after `updated_at`, or after `wait_ms`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskQuery {
    /// Which.
    pub id: String,
    /// The `updated_at` the caller has seen.
    pub seen: Option<String>,
    /// How long to wait for a change, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// Query of `GET /output`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputQuery {
    /// Which task.
    pub id: String,
    /// Where the caller stands.
    pub from: u64,
    /// How long to wait for more, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
    /// So many bytes at most.
    pub limit: Option<usize>,
}

/// `GET /output`: what a running worker has said since a position.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// Pieces in order.
    pub chunks: Vec<Chunk>,
    /// Where to go on.
    pub next: u64,
    /// Whether nothing more will come.
    pub done: bool,
}

/// A piece of output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Chunk {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Text; what is not UTF-8 is replaced.
    pub text: String,
}

/// Query of `GET /events`: answered when there are events after `after`, or after `wait_ms`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsQuery {
    /// The last sequence number the caller has seen; absent means the newest.
    pub after: Option<u64>,
    /// Most events.
    pub limit: Option<u16>,
    /// How long to wait, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// Path of the stream of events, the one answer that goes on: server-sent events with `id`, `event` and `data`.
pub const EVENT_STREAM: &str = "/event-stream";

/// Header with the number of the last event that a reader of the stream has.
pub const LAST_EVENT_HEADER: &str = "last-event-id";

/// Query of `GET /event-stream`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventStreamQuery {
    /// The last number that the caller has; absent means the newest. The header `last-event-id` goes before it.
    pub after: Option<u64>,
    /// Only events of these kinds, with commas between them.
    pub kinds: Option<String>,
}

/// `GET /events`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Events {
    /// In order, as stored.
    pub events: Vec<Value>,
    /// Where to go on.
    pub next: u64,
}

/// An agent. `GET /agents`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Agent {
    /// Its name.
    pub id: String,
    /// Version announced.
    pub version: Option<String>,
    /// Capabilities announced.
    pub caps: Vec<String>,
    /// Whether it gave a sign of life within half a minute.
    pub alive: bool,
    /// Its last sign of life since the daemon started.
    pub last_seen: Option<String>,
    /// When it registered, if it has.
    pub registered_at: Option<String>,
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
    /// The doors that it uses: `devit`, `wit`, `agent_protocol`, `broker`, `own`, `worker`.
    #[serde(default)]
    pub doors: Vec<String>,
    /// Messages that wait for it.
    pub mail: usize,
    /// Unfinished tasks it asked for.
    pub asked: u32,
}

/// `GET /about`: the daemon itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// `provost/0.1.0`.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Since when it runs.
    pub started_at: String,
    /// The workspace.
    pub root: String,
    /// Where its state is.
    pub state_dir: String,
    /// Its doors and their addresses.
    pub doors: Vec<DoorAt>,
    /// Digest of the rules in force.
    pub policy: String,
    /// Where the rules come from.
    pub policy_source: String,
    /// Workers of the configuration.
    pub workers: Vec<WorkerAt>,
    /// Unfinished tasks.
    pub active: usize,
    /// Waiting approvals.
    pub approvals: usize,
    /// Completed and cancelled since the beginning.
    pub completed: u64,
    /// Failed since the beginning.
    pub failed: u64,
    /// End of the journal.
    pub journal_seq: u64,
    /// Anchor of the journal's end.
    pub journal_anchor: String,
    /// What was wrong or ignored in the configuration.
    pub notes: Vec<String>,
    /// Ports that were taken, and those that took their place: for the person who has started the daemon.
    pub moved: Vec<String>,
    /// Why nothing can be asked for at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// A door and where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoorAt {
    /// Its name.
    pub door: String,
    /// Its address.
    pub address: String,
}

/// A worker of the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerAt {
    /// Its name.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Why it cannot be used.
    pub broken: Option<String>,
    /// `off` or `paused`, and by whom, where a command holds it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched: Option<String>,
}

/// `POST /listen`: open the DevIt door at another address, for this run.
// No `Debug`: it may hold a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// The socket's path.
    pub address: String,
    /// The secret of that address; the key ring's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// `POST /record`: put something on record, for instance a key that was added.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// What kind of thing.
    pub what: String,
    /// About what.
    pub subject: String,
    /// Details without secrets.
    #[serde(default)]
    pub details: Value,
}

/// What a command that asks the daemon to do something hears.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// One sentence.
    pub message: String,
}
