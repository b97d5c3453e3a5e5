//! The types of Provost's own API: HTTP with JSON on a Unix socket, verb names as paths.
//!
//! The door `own` and the modules `client` and `mcp` use these types. A member without a value is `null` or left out. A reader ignores
//! unknown members, so that an older client can talk to a newer daemon of the same API version. Times are text of RFC 3339, in UTC.

mod applies;
mod coordinate;
mod cost;
mod counted;
mod crew;
mod delegating;
mod events;
mod graph;
mod health;
mod held_back;
mod hosts;
mod inbox;
mod jobs;
mod journal_check;
mod kept;
mod merges;
mod metrics;
mod notices;
mod passkeys;
mod permissions;
mod posts;
mod push;
mod queue;
mod replays;
mod rules;
mod scans;
mod search;
mod signed;
mod talk;
mod task_pages;
mod token;
mod used;
mod users;
mod waits;
mod web_sessions;
mod work_trees;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use applies::*;
pub use coordinate::*;
pub use cost::*;
pub use counted::*;
pub use crew::*;
pub use delegating::*;
pub use events::*;
pub use graph::*;
pub use health::*;
pub use held_back::*;
pub use hosts::*;
pub use inbox::*;
pub use jobs::*;
pub use journal_check::*;
pub use kept::*;
pub use merges::*;
pub use metrics::*;
pub use notices::*;
pub use passkeys::*;
pub use permissions::*;
pub use posts::*;
pub use push::*;
pub use replays::*;
pub use rules::*;
pub use scans::*;
pub use search::*;
pub use signed::*;
pub use talk::*;
pub use task_pages::*;
pub use token::*;
pub use used::*;
pub use users::*;
pub use waits::*;
pub use web_sessions::*;
pub use work_trees::*;

/// Sent in the header `x-provost-api` both ways; another number is refused with a sentence.
pub const API_VERSION: &str = "1";

/// Header for [`API_VERSION`].
pub const VERSION_HEADER: &str = "x-provost-api";

/// Header with the agent as which a caller speaks, if it does not speak as the user.
pub const AGENT_HEADER: &str = "x-provost-agent";

/// Header with the process for which a caller acts: the locks, claims and intents that it takes end with that process.
pub const PROCESS_HEADER: &str = "x-provost-process";

/// The MCP session whose end releases what the request takes; only the daemon's own doors may send it.
pub const SESSION_HEADER: &str = "x-provost-session";

/// An error, with the next step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// One word, for programs.
    pub error: String,
    /// One sentence, for people.
    pub message: String,
    /// The next step, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// More data for programs; for a refused lock, its holder and the time until which it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// `POST /screenshot`; the answer is that of a delegation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Screenshot {
    /// The task's id, chosen by the caller; the daemon makes one when absent.
    pub task: Option<String>,
}

/// `POST /cancel-task`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cancel {
    /// The id of the task to end.
    pub task: String,
    /// The reason, recorded with the task; "no reason given" when absent or empty.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `POST /report-task`; `status = "ack"` acknowledges.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The id of the task that the report is about.
    pub task: String,
    /// `pending`, `in_progress`, `completed`, `failed`, `cancelled`, `ack`.
    pub status: String,
    /// A text for people; empty when absent.
    pub summary: Option<String>,
    /// The result as data for programs, of any form.
    pub details: Option<Value>,
    /// Logs and similar evidence.
    pub evidence: Option<Value>,
}

/// The state of a task after a verb.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskState {
    /// The id of the task.
    pub task: String,
    /// Its state after the verb, in the words of `Task::state`; `acknowledged` after an acknowledgement.
    pub state: String,
}

/// `POST /answer-approval`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the approval.
    pub approval: u64,
    /// Whether the approver allows the command.
    pub grant: bool,
    /// The approver's reason or remark, recorded with the answer.
    #[serde(default)]
    pub note: Option<String>,
    /// Digest of the shown content; the daemon refuses the answer when it differs from the waiting command's.
    #[serde(default)]
    pub digest: Option<String>,
}

/// Answer to [`Answer`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// The task of the approval.
    pub task: Option<String>,
    /// The reason why the granted command was not carried out after all.
    pub failed: Option<String>,
}

/// An approval that waits for an answer. `GET /approvals`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Approval {
    /// The number that identifies it in an answer.
    pub id: u64,
    /// The agent whose command waits.
    pub asked_by: String,
    /// The door through which the command came.
    pub door: String,
    /// The name of the command's verb.
    pub verb: String,
    /// The task that it would make, or whose changes it would write.
    pub task: Option<String>,
    /// The task whose agent asks from its jail; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// The worker of the delegation, or of the changes that it would write; absent for other verbs.
    pub worker: Option<String>,
    /// The name of the tool about which policy was asked.
    pub tool: String,
    /// The rule that demands the approval.
    pub rule: String,
    /// The reason that the rule gives for asking.
    pub reason: String,
    /// `low`, `medium`, `high`.
    pub risk: String,
    /// The directory where the worker would work, relative to the workspace.
    pub working_dir: Option<String>,
    /// The network that the worker may reach.
    pub network: String,
    /// The secrets that the worker would get, and how.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// The agent's own words, last and fenced when shown.
    pub goal: Option<String>,
    /// The whole request as the worker would get it; the answer is bound to all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The kinds of approvers that the rule accepts, as one text for people.
    pub by: String,
    /// Whether a dialog at the asker's own host counts.
    #[serde(default)]
    pub host: bool,
    /// When the approval was requested.
    pub asked_at: String,
    /// When its time ends; without an answer, it is then requested again or fails.
    pub expires_at: String,
    /// How often it was requested again so far because no answer had come in time.
    #[serde(default)]
    pub asked_again: u32,
    /// How often it will be requested again before it fails.
    #[serde(default)]
    pub asks_left: u32,
    /// The digest to which the answer is bound.
    pub digest: String,
}

/// One entry of a task's history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Note {
    /// When the entry was made.
    pub at: String,
    /// The agent that the entry comes from: the worker, the asker, or the daemon.
    pub from: String,
    /// The status that the sender reported, in the words of its door.
    pub status: String,
    /// One line or more for people; may be empty.
    pub summary: String,
    /// Results as data for programs, as the worker reported them.
    pub details: Option<Value>,
    /// Logs and similar evidence.
    pub evidence: Option<Value>,
    /// Scheduling, model and exit data.
    pub metadata: Option<Value>,
}

/// A task. `GET /tasks`, `GET /task`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The id that the asker chose; otherwise the daemon chose one.
    pub id: String,
    /// The task in the asker's words; lists have only its beginning.
    pub goal: String,
    /// The worker that carries it out.
    pub worker: String,
    /// `cli` or `polling`.
    pub worker_kind: String,
    /// Whether it is a picture of the screen, which the daemon itself takes.
    #[serde(default)]
    pub capture: bool,
    /// The agent that delegated it, and that gets mail about its end.
    pub asked_by: String,
    /// Its state: `awaiting`, `waiting`, `retrying`, `queued`, `assigned`, `running`, `completed`, `failed`, `cancelled`.
    pub state: String,
    /// The approval that it waits for.
    pub approval: Option<u64>,
    /// The needs of its worker for which it waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<AwaitedNeed>,
    /// The tasks that must succeed before it begins, and have not ended yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for_tasks: Vec<String>,
    /// `low` or `high`; absent for the usual priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The pool to which it was delegated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The label that its host must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The host that runs or will run it, by the first digits of its id; absent in a repository of one host, or until a host takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The hosts that have left it to others, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_by: Vec<String>,
    /// Its present place among the tasks that wait for its worker, or for the worker's pool; the first place is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// The number of the running or last attempt; absent for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// When the next attempt begins, while the task waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_at: Option<String>,
    /// The rule that allowed or denied it.
    pub rule: String,
    /// The working directory, relative to the workspace; `.` is the workspace itself.
    pub working_dir: Option<String>,
    /// When it was accepted.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// When its worker began; absent if none has begun, or the time is no longer known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How long its worker may run, in seconds.
    pub timeout_s: u64,
    /// `default`, `compact`.
    #[serde(default)]
    pub format: Option<String>,
    /// The model that the asker wants.
    pub model: Option<String>,
    /// The model that did the work.
    pub model_used: Option<String>,
    /// The usage that its worker reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
    /// The usage that the daemon has counted; only in the answer about a single task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Tasks that ran in its directory at the same time.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Whether its run has left a file that runs later; absent if the files were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted: Option<bool>,
    /// The files that the run has left and that run later; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<ScanReport>,
    /// The changes of the files that its asker wanted watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<FilesChanged>,
    /// The branch in whose git work tree it works; absent for work elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// The changes that its run has made in its private copy; absent if none were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// The session of its agent; absent for workers without sessions, and until it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<AgentSession>,
    /// The texts that were sent to its agent, oldest first; the newest 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Saying>,
    /// The reason of its failure, if the daemon knows it.
    pub failure: Option<Value>,
    /// Exit code of its worker process.
    pub exit_code: Option<i64>,
    /// The task's history, oldest first.
    pub notes: Vec<Note>,
}

/// Query of `GET /task`: answered when the task changes after `updated_at`, or after `wait_ms`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskQuery {
    /// The id of the task.
    pub id: String,
    /// The `updated_at` that the caller has seen.
    pub seen: Option<String>,
    /// How long to wait for a change, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// Query of `GET /output`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputQuery {
    /// The id of the task whose worker wrote the output.
    pub id: String,
    /// The position from which to read: 0 at first, then `next` of the previous answer.
    pub from: u64,
    /// How long to wait for more, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
    /// The most bytes to return.
    pub limit: Option<usize>,
    /// Whether messages of an agent are turned into text for people: its answer, the calls of its tools with the
    /// changes that they make, its plans. Plain text of a worker stays as it is.
    pub in_words: bool,
}

/// `GET /output`: the output of a running worker since a position.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// The pieces in the order in which the worker wrote them.
    pub chunks: Vec<Chunk>,
    /// The position at which the next request continues.
    pub next: u64,
    /// Whether the output is complete.
    pub done: bool,
    /// Why no output comes though the worker runs: it runs on another host, which does not send its output now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A piece of output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Chunk {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The number of bytes before it that were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_zero(it: &u64) -> bool {
    *it == 0
}

/// An agent. `GET /agents`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Agent {
    /// The agent's name, the same at every door.
    pub id: String,
    /// The version that it announced when it registered, if any.
    pub version: Option<String>,
    /// The capabilities that it announced when it registered; empty if it has not.
    pub caps: Vec<String>,
    /// Whether it gave a sign of life within half a minute, or is a session of a host whose process runs.
    pub alive: bool,
    /// Its last sign of life since the daemon started.
    pub last_seen: Option<String>,
    /// When it registered, if it has.
    pub registered_at: Option<String>,
    /// The agent's name for people; absent if it has none.
    pub name: Option<String>,
    /// The doors that it uses: `devit`, `wit`, `agent_protocol`, `broker`, `own`, `worker`.
    #[serde(default)]
    pub doors: Vec<String>,
    /// The machine on which it was last seen, by the first digits of its host's id; absent where the repository has one host.
    pub host: Option<String>,
    /// The number of messages that wait for it.
    pub mail: usize,
    /// The number of unfinished tasks that it has asked for.
    pub asked: u32,
}

/// `GET /about`: the daemon itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The name and version of the daemon, such as `provost/0.1.0`.
    pub version: String,
    /// The process id of the daemon.
    pub pid: u32,
    /// When the daemon started.
    pub started_at: String,
    /// The absolute path of the workspace.
    pub root: String,
    /// The absolute path of the folder with its state.
    pub state_dir: String,
    /// Its doors and their addresses.
    pub doors: Vec<DoorAt>,
    /// The addresses of the page for browsers on other machines, while its socket for proxies is open.
    #[serde(default)]
    pub public: Vec<String>,
    /// Digest of the rules in force.
    pub policy: String,
    /// The file of the rules, or `builtin:NAME`.
    pub policy_source: String,
    /// Workers of the configuration.
    pub workers: Vec<WorkerAt>,
    /// How many tasks are not finished.
    pub active: usize,
    /// How many approvals wait for an answer.
    pub approvals: usize,
    /// The number of completed and cancelled tasks since the store was created.
    pub completed: u64,
    /// The number of failed tasks since the store was created.
    pub failed: u64,
    /// The number of the newest event in the journal.
    pub journal_seq: u64,
    /// The anchor at the journal's end.
    pub journal_anchor: String,
    /// Addresses that get notices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<NoticeTarget>,
    /// The errors and ignored settings of the configuration.
    pub notes: Vec<String>,
    /// The ports that were in use, each with its replacement: for the person who has started the daemon.
    pub moved: Vec<String>,
    /// The reason why the daemon accepts no requests at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// The error for a page over all repositories, if the repository's own page requires a sign-in with a passkey.
pub const OWN_PAGE_ONLY: &str = "own_page_only";

/// A door and its address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoorAt {
    /// The name of the door's protocol, such as `own` or `devit`.
    pub door: String,
    /// The socket's path, the pipe's name, or the URL.
    pub address: String,
}

/// A worker of the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerAt {
    /// The name by which agents delegate to it.
    pub id: String,
    /// `cli`, `mcp`, `acp` or `polling`, as its entry says.
    pub kind: String,
    /// The reason why it cannot be used.
    pub broken: Option<String>,
    /// The form of the messages that it writes to standard output, as `stream` of its entry names it; absent for text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// `off` or `paused`, with the agent that did so, if a command holds the worker back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched: Option<String>,
    /// The other hosts that take tasks for it, by the first digits of their ids. A worker of other hosts only has kind `cli`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// `POST /listen`: open the DevIt door at another address, for this run.
// No `Debug`: it may hold a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// The socket's path.
    pub address: String,
    /// The secret of that address; the one of the key ring when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Answer to `POST /open-page`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PageAt {
    /// The address of the page, for browsers of this machine.
    pub address: String,
    /// The page's addresses for browsers on other machines, over a proxy.
    #[serde(default)]
    pub public: Vec<String>,
}

/// `POST /record`: records an event, such as the addition of a key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The kind of record, such as `key.added`; only a few are accepted.
    pub what: String,
    /// The subject of the record, such as the name of a key; bounded.
    pub subject: String,
    /// More data, in any form; never a secret, since it is written to the journal.
    #[serde(default)]
    pub details: Value,
}

/// The answer to a command that asks the daemon for an action.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// One sentence about what the daemon has done.
    pub message: String,
}
