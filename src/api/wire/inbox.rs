//! One inbox for each agent as it travels: what other agents have written to it, and what the daemon has to tell it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /who-am-i`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Me {
    /// Under which name the caller is known.
    pub agent: String,
    /// Whether it may operate: the user, at a process below which no agent has spoken.
    #[serde(default)]
    pub operates: bool,
}

/// `POST /send-message`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SendMessage {
    /// `message`, `question`, `answer`, `blocked`.
    pub kind: String,
    /// The recipient; absent of a question, which the supervisor gets.
    pub to: Option<String>,
    /// The text of the message; neither empty nor longer than a bound.
    pub text: String,
    /// Of an answer: to which question.
    pub re: Option<String>,
}

/// Answer to [`SendMessage`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The number of the message in the log.
    pub number: u64,
    /// The agent that gets the message.
    pub to: String,
    /// Whether no agent has used that inbox yet; the message waits there.
    pub waits: bool,
}

/// `POST /read-inbox`. Nothing is taken out of it: what was read once can be read again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadInbox {
    /// The number of the last message of other agents that the caller has seen.
    pub posts_after: u64,
    /// The number of the last word of the daemon that it has seen.
    pub mail_after: u64,
    /// So many entries at most.
    pub limit: Option<usize>,
    /// How long to wait where there is nothing new, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// Answer to [`ReadInbox`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Inbox {
    /// New entries, oldest first.
    pub entries: Vec<InboxEntry>,
    /// Whether there are more.
    pub more: bool,
}

/// Something in an inbox.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InboxEntry {
    /// Its number, if another agent has written it.
    pub post: Option<u64>,
    /// Its number, if it is a word of the daemon.
    pub mail: Option<u64>,
    /// When it was written.
    pub at: String,
    /// Who has written it; `provost` is the daemon itself.
    pub from: String,
    /// Of agents: `feedback`, `question`, `answer`, `blocked`, `artifact`, `verified`, `intent`, `advanced`, `learning`,
    /// `status`, `verify_now`; of the daemon: `task`, `work`, `approval`, `meeting`,
    /// `lock_wanted`.
    pub kind: String,
    /// The beginning of the text; the whole text unless `cut`.
    pub text: String,
    /// Whether it says more than is shown.
    pub cut: bool,
    /// The task that it is about.
    pub task: Option<String>,
}

/// `POST /take-work`: the next task for the caller as a worker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TakeWork {
    /// How long to wait where there is none, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// Answer to [`TakeWork`]; neither where there is nothing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// A task to be done.
    pub order: Option<WorkOrder>,
    /// A task of the caller's that is not wanted any more.
    pub called_off: Option<CalledOff>,
}

/// A task to be done.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkOrder {
    /// The id of the task.
    pub task: String,
    /// The task in the asker's words.
    pub goal: String,
    /// How long the worker may take, in seconds.
    pub timeout_s: u64,
    /// Files that are watched meanwhile.
    pub watch_patterns: Vec<String>,
    /// Where, relative to the workspace.
    pub working_dir: Option<String>,
    /// The same as an absolute path.
    pub absolute_working_dir: String,
    /// Data of the asker's for the worker, of any form.
    pub context: Option<Value>,
    /// The task as its asker wrote it.
    pub raw: Value,
}

/// A task that is not wanted any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CalledOff {
    /// The id of the task.
    pub task: String,
    /// `cancelled`, `timeout`.
    pub status: String,
    /// Why the task has ended, in words.
    pub reason: String,
}

/// Query of `GET /picture`: a picture of the screen that the caller has had taken.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PictureQuery {
    /// The id of the task that took the picture.
    pub task: String,
    /// How wide the small one is at most, in pixels; bounded.
    pub width: u32,
}

/// Answer to [`PictureQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Picture {
    /// The absolute path of the picture's file.
    pub path: String,
    /// Its format, as a file extension.
    pub format: String,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The picture at a smaller size; absent where `why` says the reason.
    pub thumb: Option<Thumb>,
    /// Why there is none.
    pub why: Option<String>,
}

/// A small picture in PNG.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Thumb {
    /// All of it, in Base64.
    pub png: String,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}
