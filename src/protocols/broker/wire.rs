//! Messages as they travel. The names of types and fields are part of what clients see in complaints.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Any message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BrokerMessage {
    /// Where an agent stands.
    #[serde(rename = "agent.status")]
    Status {
        /// Its sender.
        agent_id: String,
        /// What it says.
        payload: StatusPayload,
    },
    /// Work that is done.
    #[serde(rename = "agent.artifact")]
    Artifact {
        /// Its sender.
        agent_id: String,
        /// What it says.
        payload: ArtifactPayload,
    },
    /// An agent cannot go on.
    #[serde(rename = "agent.blocked")]
    Blocked {
        /// Its sender.
        agent_id: String,
        /// What it says.
        payload: BlockedPayload,
    },
    /// Work was checked.
    #[serde(rename = "agent.verified")]
    Verified {
        /// Whose work.
        agent_id: String,
        /// What it says.
        payload: VerifiedPayload,
    },
    /// Faults were found.
    #[serde(rename = "agent.feedback")]
    Feedback {
        /// Its reader.
        agent_id: String,
        /// What it says.
        payload: FeedbackPayload,
    },
    /// An answer.
    #[serde(rename = "agent.answer")]
    Answer {
        /// Its reader.
        agent_id: String,
        /// What it says.
        payload: AnswerPayload,
    },
    /// A question.
    #[serde(rename = "agent.question")]
    Question {
        /// Its sender.
        agent_id: String,
        /// What it says.
        payload: QuestionPayload,
    },
    /// Files that will be changed.
    #[serde(rename = "agent.intent")]
    Intent {
        /// Its sender.
        agent_id: String,
        /// What it says.
        payload: IntentPayload,
    },
    /// A branch was merged.
    #[serde(rename = "agent.advanced-main")]
    AdvancedMain(AdvancedMain),
    /// Something to remember.
    #[serde(rename = "agent.learning")]
    Learning {
        /// As git-paw's own hook sends it; then much of the payload is missing.
        #[serde(default, skip_serializing)]
        agent_id: Option<String>,
        /// What it says.
        payload: LearningPayload,
    },
    /// Work is to be checked.
    #[serde(rename = "supervisor.verify-now")]
    VerifyNow {
        /// Whose.
        branch_id: String,
    },
}

/// A member that may be missing, and is not `null`.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Of `agent.status`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatusPayload {
    /// One word.
    pub status: String,
    /// Changed files.
    #[serde(default)]
    pub modified_files: Vec<String>,
    /// A sentence.
    #[serde(default)]
    pub message: Option<String>,
    /// The program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli: Option<String>,
    /// What the sender is busy with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// More.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// Of `agent.artifact`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArtifactPayload {
    /// One word.
    pub status: String,
    /// What others can use.
    #[serde(default)]
    pub exports: Vec<String>,
    /// Its files.
    #[serde(default)]
    pub modified_files: Vec<String>,
}

/// Of `agent.blocked`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlockedPayload {
    /// What is missing.
    pub needs: String,
    /// From whom.
    pub from: String,
}

/// Of `agent.verified`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VerifiedPayload {
    /// Who has checked.
    pub verified_by: String,
    /// A sentence.
    #[serde(default)]
    pub message: Option<String>,
}

/// Of `agent.feedback`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FeedbackPayload {
    /// Its sender.
    pub from: String,
    /// The faults.
    pub errors: Vec<String>,
}

/// Of `agent.answer`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AnswerPayload {
    /// Its sender.
    pub from: String,
    /// The answer.
    pub answer: String,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re: Option<String>,
}

/// Of `agent.question`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuestionPayload {
    /// The question.
    pub question: String,
}

/// Of `agent.intent`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IntentPayload {
    /// Where.
    pub files: Vec<FileIntent>,
    /// What for.
    pub summary: String,
    /// For how long; git-paw's own script leaves it out.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub valid_for_seconds: Option<u64>,
}

/// A file of an intent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FileIntent {
    /// Its path alone.
    Path(String),
    /// Its path, and where in it.
    Parts {
        /// Its path.
        path: String,
        /// Where in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        regions: Vec<Region>,
    },
}

/// A part of a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Region {
    /// A function.
    Function {
        /// Its name.
        name: String,
    },
    /// A class.
    Class {
        /// Its name.
        name: String,
    },
    /// Something else.
    Block {
        /// What it can be found by.
        anchor: String,
    },
    /// Lines.
    Range {
        /// The first.
        start_line: u32,
        /// The last.
        end_line: u32,
    },
}

/// Of `agent.advanced-main`, which has no payload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AdvancedMain {
    /// Its sender.
    pub from: String,
    /// What was merged.
    pub merged_branch: String,
    /// What the base is at now.
    pub new_main_sha: String,
    /// The base.
    pub base: String,
    /// When.
    pub merged_at: DateTime<Utc>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Of `agent.learning`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LearningPayload {
    /// Its number.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its sender.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Where it was learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_id: Option<String>,
    /// Its kind.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// A few words.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// More; `null` counts.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// When.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// The body of `POST /watch`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct WatchRequest {
    /// Who works there.
    pub agent_id: String,
    /// Where.
    pub worktree_path: String,
    /// The program.
    #[serde(default)]
    pub cli: String,
}

/// A message with its place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub seq: u64,
    /// When it was published.
    pub timestamp_unix_secs: u64,
    /// The message.
    pub message: BrokerMessage,
}

/// The answer to `GET /status`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    /// By name.
    pub agents: Vec<AgentRow>,
    /// By this a broker is known.
    pub git_paw: bool,
    /// Which daemon this is, and whose; ours.
    pub provost: Identity,
    /// Since the daemon started.
    pub uptime_seconds: u64,
    /// The version of git-paw whose wire this is.
    pub version: &'static str,
}

/// Which daemon answers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Identity {
    /// Its repository's folder.
    pub repository: String,
    /// The number of the repository, by which its daemon is told from others.
    pub repository_id: String,
    /// The daemon's own version.
    pub version: &'static str,
}

/// A row of the roster.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AgentRow {
    /// Who.
    pub agent_id: String,
    /// The program.
    pub cli: String,
    /// Since its last word.
    pub last_seen_seconds: u64,
    /// What it is busy with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Where it stands.
    pub status: String,
}
