//! The types for an agent's inbox: messages of other agents, and messages of the daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /who-am-i`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Me {
    /// The name under which the daemon knows the caller.
    pub agent: String,
    /// Whether the caller may operate: it is the user, and no agent has spoken among the caller's processes.
    #[serde(default)]
    pub operates: bool,
}

/// The code of the refusal of a name that belongs to an agent of another host. If the caller asks again, the daemon may call it by a longer name.
pub const NAME_ELSEWHERE: &str = "name_elsewhere";

/// `POST /send-message`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SendMessage {
    /// `message`, `question`, `answer`, `blocked`.
    pub kind: String,
    /// The recipient; absent for a question, which the supervisor gets.
    pub to: Option<String>,
    /// The text of the message; neither empty nor longer than a bound.
    pub text: String,
    /// For an answer: the number of the question.
    pub re: Option<String>,
}

/// Answer to [`SendMessage`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// The number of the message in the log.
    pub number: u64,
    /// The agent that gets the message.
    pub to: String,
    /// Whether no agent has used that inbox yet, so that the message waits there.
    pub waits: bool,
}

/// `POST /read-inbox`. Reading removes nothing: every message can be read again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadInbox {
    /// The number of the last message of other agents that the caller has seen.
    pub posts_after: u64,
    /// The number of the last message of the daemon that it has seen.
    pub mail_after: u64,
    /// The most entries to return.
    pub limit: Option<usize>,
    /// How long to wait if there is no new entry, in milliseconds; bounded.
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

/// An entry of an inbox.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InboxEntry {
    /// Its number, if another agent has written it.
    pub post: Option<u64>,
    /// Its number, if it is a message of the daemon.
    pub mail: Option<u64>,
    /// When it was written.
    pub at: String,
    /// Its writer; `provost` is the daemon itself.
    pub from: String,
    /// Of agents: `feedback`, `question`, `answer`, `blocked`, `artifact`, `verified`, `intent`, `advanced`, `learning`,
    /// `status`, `verify_now`; of the daemon: `task`, `work`, `approval`, `meeting`,
    /// `lock_wanted`.
    pub kind: String,
    /// The beginning of the text; the whole text unless `cut`.
    pub text: String,
    /// Whether the text is longer than shown.
    pub cut: bool,
    /// The task that it is about.
    pub task: Option<String>,
}

/// `POST /take-work`: the next task for the caller as a worker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TakeWork {
    /// How long to wait if there is no task, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// Answer to [`TakeWork`]; both members are absent if there is no task.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// A task to do.
    pub order: Option<WorkOrder>,
    /// A task of the caller's that has been called off.
    pub called_off: Option<CalledOff>,
}

/// A task to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkOrder {
    /// The id of the task.
    pub task: String,
    /// The task in the asker's words.
    pub goal: String,
    /// How long the worker may take, in seconds.
    pub timeout_s: u64,
    /// Patterns of the files that the daemon watches meanwhile.
    pub watch_patterns: Vec<String>,
    /// The working directory, relative to the workspace.
    pub working_dir: Option<String>,
    /// The same directory as an absolute path.
    pub absolute_working_dir: String,
    /// Data of the asker for the worker, of any form.
    pub context: Option<Value>,
    /// The task as its asker wrote it.
    pub raw: Value,
}

/// A task that has been called off.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CalledOff {
    /// The id of the task.
    pub task: String,
    /// `cancelled`, `timeout`.
    pub status: String,
    /// The reason why the task has ended.
    pub reason: String,
}

/// Query of `GET /picture`: a picture of the screen that the caller has asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PictureQuery {
    /// The id of the task that took the picture.
    pub task: String,
    /// The greatest width of the small picture, in pixels; bounded.
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
    /// The picture at a smaller size; absent if `why` has the reason.
    pub thumb: Option<Thumb>,
    /// The reason why there is no small picture.
    pub why: Option<String>,
}

/// A small picture in PNG.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Thumb {
    /// The whole file, in Base64.
    pub png: String,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}
