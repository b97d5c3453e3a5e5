//! The types for messages between agents. The messages themselves have the form of the broker's protocol.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `POST /publish-post`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PublishPost {
    /// The message, in the form in which the broker door accepts it.
    pub message: Value,
}

/// Answer to [`PublishPost`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PostPublished {
    /// The number of the message in the log; it rises with every message.
    pub seq: u64,
}

/// `GET /posts`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PostsQuery {
    /// The agent whose inbox is read; all messages when absent.
    pub inbox: Option<String>,
    /// The number after which to read; without it, and without an inbox, the newest messages are returned.
    pub since: Option<u64>,
    /// How long to wait if there is no message, in milliseconds.
    pub wait_ms: Option<u64>,
    /// Among all messages those before this number, newest first; with `limit` alone, the newest.
    pub before: Option<u64>,
    /// The most messages to return.
    pub limit: Option<usize>,
}

/// Answer to [`PostsQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Posts {
    /// The messages, oldest first, as many as fit into an answer.
    pub posts: Vec<Post>,
    /// The number after which the next request continues.
    pub last_seq: u64,
}

/// A message with its number in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Post {
    /// The number of the message in the log.
    pub seq: u64,
    /// When it was published.
    pub at: String,
    /// The message, as a sentence.
    pub text: String,
    /// The message, as the broker door shows it.
    pub message: Value,
    /// `status`, `artifact`, `blocked`, `verified`, `feedback`, `question`, `intent`, `answer`, `advanced_main`, `learning` or
    /// `verify_now`.
    #[serde(default)]
    pub kind: String,
    /// The sender that the message names.
    #[serde(default)]
    pub from: String,
    /// The receiver, in the broker's spelling; absent if it is for all or for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The whole content, without the sender.
    #[serde(default)]
    pub said: String,
    /// The proof by which its sender has proven that name: `own_key`, `token`, `jailed`, `terminal` and so on.
    /// Absent if the name is unproven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// An agent's row in the roster: `GET /roster`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RosterRow {
    /// The name of the agent, in the broker's spelling.
    pub agent: String,
    /// The status word that the agent published last.
    pub status: String,
    /// The present activity, in a word or two; absent if the agent has named none.
    pub phase: Option<String>,
    /// The program that the agent says it is; empty if it has said none.
    pub cli: String,
    /// When the agent last published something.
    pub last_seen: String,
}

impl RosterRow {
    /// Returns whether the agent's own prompt waits for a person. The phase is git-paw's word; hooks of hosts report it, too.
    pub fn is_at_its_prompt(&self) -> bool {
        self.phase.as_deref() == Some("stuck-on-prompt")
    }
}

/// A question without an answer: `GET /questions`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The number of the question in the log of messages.
    pub seq: u64,
    /// The agent that asks, in the broker's spelling.
    pub agent: String,
    /// The beginning of the question.
    pub text: String,
    /// When the agent asked.
    pub at: String,
}

/// Two agents that work in one place: `GET /overlaps`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Overlap {
    /// The place: a file, a folder or a pattern.
    pub file: String,
    /// The names of the two agents.
    pub agents: [String; 2],
}

/// Answer to `POST /purge-posts`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogBegun {
    /// The last number that has left the log.
    pub after: u64,
}
