//! The types of the messages. Clients see the names of types and fields in errors.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A message of any of the eleven kinds that clients publish.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BrokerMessage {
    /// The state of an agent.
    #[serde(rename = "agent.status")]
    Status {
        /// The agent whose status it is.
        agent_id: String,
        /// The payload of `agent.status`.
        payload: StatusPayload,
    },
    /// Finished work.
    #[serde(rename = "agent.artifact")]
    Artifact {
        /// The agent that has done the work.
        agent_id: String,
        /// The payload of `agent.artifact`.
        payload: ArtifactPayload,
    },
    /// An agent cannot continue.
    #[serde(rename = "agent.blocked")]
    Blocked {
        /// The agent that cannot go on.
        agent_id: String,
        /// The payload of `agent.blocked`.
        payload: BlockedPayload,
    },
    /// Work was checked, and is good.
    #[serde(rename = "agent.verified")]
    Verified {
        /// The agent whose work was checked.
        agent_id: String,
        /// The payload of `agent.verified`.
        payload: VerifiedPayload,
    },
    /// Work was checked, and has faults.
    #[serde(rename = "agent.feedback")]
    Feedback {
        /// The agent that gets the message, whose work has the faults.
        agent_id: String,
        /// The payload of `agent.feedback`.
        payload: FeedbackPayload,
    },
    /// An answer to a question.
    #[serde(rename = "agent.answer")]
    Answer {
        /// The agent that gets the answer.
        agent_id: String,
        /// The payload of `agent.answer`.
        payload: AnswerPayload,
    },
    /// A question to the supervisor.
    #[serde(rename = "agent.question")]
    Question {
        /// The agent that asks.
        agent_id: String,
        /// The payload of `agent.question`.
        payload: QuestionPayload,
    },
    /// Files that will be changed.
    #[serde(rename = "agent.intent")]
    Intent {
        /// The agent that will change them.
        agent_id: String,
        /// The payload of `agent.intent`.
        payload: IntentPayload,
    },
    /// A branch was merged.
    #[serde(rename = "agent.advanced-main")]
    AdvancedMain(AdvancedMain),
    /// Knowledge that an agent shares with others.
    #[serde(rename = "agent.learning")]
    Learning {
        /// The sender, in the form of git-paw's own hook; then much of the payload is missing.
        #[serde(default, skip_serializing)]
        agent_id: Option<String>,
        /// The payload of `agent.learning`.
        payload: LearningPayload,
    },
    /// A request to check work.
    #[serde(rename = "supervisor.verify-now")]
    VerifyNow {
        /// The agent whose work is to be checked, by its branch.
        branch_id: String,
    },
}

impl BrokerMessage {
    /// Parses a message.
    ///
    /// # Errors
    /// The parser's error, in the form that clients know.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        match Envelope::message(text) {
            Some(message) => Ok(message),
            None => serde_json::from_str(text),
        }
    }
}

/// The usual form of the commonest kinds. It is parsed directly, while the general parser first copies all members
/// to find the type. A message with any fault goes to the general parser, which reports it.
#[derive(Deserialize)]
struct Envelope<'a> {
    r#type: &'a str,
    agent_id: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl<'a> Envelope<'a> {
    fn message(text: &'a str) -> Option<BrokerMessage> {
        // An array is a valid message, too, with members by position.
        if !text.starts_with('{') {
            return None;
        }
        let Self { r#type, agent_id, payload } = serde_json::from_str(text).ok()?;
        let payload = payload.get();
        Some(match r#type {
            "agent.status" => {
                let payload: StatusPayload = serde_json::from_str(payload).ok()?;
                // The limit on the depth counts from the whole message.
                if payload.detail.is_some() {
                    return None;
                }
                BrokerMessage::Status { agent_id, payload }
            }
            "agent.artifact" => {
                BrokerMessage::Artifact { agent_id, payload: serde_json::from_str(payload).ok()? }
            }
            "agent.blocked" => {
                BrokerMessage::Blocked { agent_id, payload: serde_json::from_str(payload).ok()? }
            }
            "agent.feedback" => {
                BrokerMessage::Feedback { agent_id, payload: serde_json::from_str(payload).ok()? }
            }
            _ => return None,
        })
    }
}

/// Reads an optional member that must not be `null`.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The payload of `agent.status`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatusPayload {
    /// One word, such as `working`, `done` or `blocked`.
    pub status: String,
    /// Paths of the files that the agent has changed; empty when absent.
    #[serde(default)]
    pub modified_files: Vec<String>,
    /// A sentence for people, if there is one.
    #[serde(default)]
    pub message: Option<String>,
    /// The program that the agent says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli: Option<String>,
    /// The sender's present activity, in a word or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Further data in any form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// The payload of `agent.artifact`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArtifactPayload {
    /// One word, such as `done` or `committed`.
    pub status: String,
    /// Names that other agents can use from now on.
    #[serde(default)]
    pub exports: Vec<String>,
    /// Paths of the files that belong to the work.
    #[serde(default)]
    pub modified_files: Vec<String>,
}

/// The payload of `agent.blocked`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlockedPayload {
    /// The thing that the agent needs before it can continue.
    pub needs: String,
    /// The agent that can provide it.
    pub from: String,
}

/// The payload of `agent.verified`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VerifiedPayload {
    /// The agent that has checked the work.
    pub verified_by: String,
    /// A sentence for people, if there is one.
    #[serde(default)]
    pub message: Option<String>,
}

/// The payload of `agent.feedback`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FeedbackPayload {
    /// The agent that has found the faults.
    pub from: String,
    /// The faults, a text for each.
    pub errors: Vec<String>,
    /// The answered question, if this repeats an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re: Option<String>,
}

/// The payload of `agent.answer`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AnswerPayload {
    /// The agent that answers.
    pub from: String,
    /// The text of the answer.
    pub answer: String,
    /// The answered question, in the words of the agent that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re: Option<String>,
}

/// The payload of `agent.question`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuestionPayload {
    /// The text of the question.
    pub question: String,
}

/// The payload of `agent.intent`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IntentPayload {
    /// The files that will be changed; must not be empty.
    pub files: Vec<FileIntent>,
    /// The purpose of the change; must not be blank.
    pub summary: String,
    /// The time of the intent, in seconds; git-paw's own script omits it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub valid_for_seconds: Option<u64>,
}

/// A file of an intent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FileIntent {
    /// A whole file, by its path.
    Path(String),
    /// The file's path, and parts of the file.
    Parts {
        /// The path of the file, a folder or a pattern.
        path: String,
        /// The parts of the file that will be changed; empty for the whole file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        regions: Vec<Region>,
    },
}

/// A part of a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Region {
    /// A function, wherever it stands in the file.
    Function {
        /// The name of the function.
        name: String,
    },
    /// A class, wherever it stands in the file.
    Class {
        /// The name of the class.
        name: String,
    },
    /// A part that has no name of its own.
    Block {
        /// A text by which the part can be found in the file.
        anchor: String,
    },
    /// A range of lines.
    Range {
        /// The first line of the range, from one.
        start_line: u32,
        /// The last line of the range.
        end_line: u32,
    },
}

/// The payload of `agent.advanced-main`, whose members are in the message itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AdvancedMain {
    /// The agent that has merged the branch.
    pub from: String,
    /// The name of the branch that was merged.
    pub merged_branch: String,
    /// The new commit of the base.
    pub new_main_sha: String,
    /// The name of the branch into which it was merged.
    pub base: String,
    /// When it was merged.
    pub merged_at: DateTime<Utc>,
    /// The content of the merge, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The payload of `agent.learning`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LearningPayload {
    /// The number that the sender has given it; absent from git-paw's hook.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The agent that has learnt it; absent from git-paw's hook, which names itself in the envelope.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The branch on which it was learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_id: Option<String>,
    /// The sender's word for the kind of learning.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The learning in a few words; absent from git-paw's hook.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The details; `null` counts as a value.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// When it was learnt, as the sender wrote it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// The body of `POST /watch`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct WatchRequest {
    /// The agent that works in the work tree.
    pub agent_id: String,
    /// The path of the work tree.
    pub worktree_path: String,
    /// The program that the agent is; empty when absent.
    #[serde(default)]
    pub cli: String,
}

/// A message with its number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the message in the log.
    pub seq: u64,
    /// When it was published.
    pub timestamp_unix_secs: u64,
    /// The message as published, with its names in the sender's spelling.
    pub message: BrokerMessage,
}

/// The answer to `GET /status`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    /// The rows of the roster, by name.
    pub agents: Vec<AgentRow>,
    /// The marker by which clients recognise a broker.
    pub git_paw: bool,
    /// The daemon and its repository; Provost's own member.
    pub provost: Identity,
    /// The time since the daemon's start, in seconds.
    pub uptime_seconds: u64,
    /// The version of git-paw whose protocol this is.
    pub version: &'static str,
}

/// Identifies the daemon that answers, so that a client can tell two repositories apart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Identity {
    /// The folder of its repository.
    pub repository: String,
    /// The id of the repository, which differs from every other repository's.
    pub repository_id: String,
    /// The daemon's own version.
    pub version: &'static str,
}

/// A row of the roster.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AgentRow {
    /// The agent's name with dashes.
    pub agent_id: String,
    /// The program that the agent says it is.
    pub cli: String,
    /// The time since the agent's last message, in seconds.
    pub last_seen_seconds: u64,
    /// The agent's present activity, in a word or two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The agent's last status word.
    pub status: String,
}
