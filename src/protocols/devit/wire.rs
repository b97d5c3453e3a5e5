//! The types of DevIt's messages. `map` gives them their meaning.
//!
//! DevIt 1.5 (signed verbs) and the protocol document (its `method`/`params` dialect).

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use provost_base::Json;

/// The daemon's name at this door.
pub(super) const ORCHESTRATOR: &str = "orchestrator";

/// An error answer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct DevitError {
    pub(super) code: Code,
    pub(super) message: String,
    /// Members that are added to the error's payload; they do not replace its own members.
    pub(super) more: Value,
}

/// The error codes: with the words of the present daemon, and the numbers of the protocol document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Code {
    Auth,
    Forbidden,
    VersionMismatch,
    TaskNotFound,
    ApprovalNotFound,
    Invalid,
    TaskExists,
    TaskFinished,
    Sandbox,
    PolicyDenied,
    ScreenshotDenied,
    ScreenshotFailed,
    Busy,
    Internal,
}

impl Code {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Code::Auth => "E_AUTH",
            Code::Forbidden => "E_FORBIDDEN",
            Code::VersionMismatch => "E_VERSION_MISMATCH",
            Code::TaskNotFound => "E_TASK_NOT_FOUND",
            Code::ApprovalNotFound => "E_APPROVAL_NOT_FOUND",
            Code::Invalid => "E_INVALID",
            Code::TaskExists => "E_TASK_EXISTS",
            Code::TaskFinished => "E_TASK_FINISHED",
            Code::Sandbox => "E_SANDBOX",
            Code::PolicyDenied => "E_POLICY_DENIED",
            Code::ScreenshotDenied => "E_SCREENSHOT_DENIED",
            Code::ScreenshotFailed => "E_SCREENSHOT_FAILED",
            Code::Busy => "E_BUSY",
            Code::Internal => "E_INTERNAL",
        }
    }

    /// Returns the number in the document, "Error Codes": 1001 authentication, 1002 task not found, 1003 invalid
    /// request, 1004 timeout waiting for a worker, 1005 internal.
    pub(super) fn number(self) -> u16 {
        match self {
            Code::Auth | Code::Forbidden => 1001,
            Code::TaskNotFound | Code::ApprovalNotFound => 1002,
            Code::Busy | Code::Internal => 1005,
            _ => 1003,
        }
    }
}

impl DevitError {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), more: Value::Null }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message)
    }

    pub(super) fn with(mut self, more: Value) -> Self {
        self.more = more;
        self
    }

    /// Returns the payload of a signed ERR.
    pub(super) fn payload(&self) -> Json {
        let mut payload = match &self.more {
            Value::Object(more) => Value::Object(more.clone()),
            _ => json!({}),
        };
        payload["code"] = json!(self.code.as_str());
        payload["message"] = json!(self.message);
        payload["data"] = json!({ "code": self.code.number() });
        Json::from_value(&payload)
    }

    /// Returns the error object of the document's dialect: the number in `data.code`, the other members beside it.
    pub(super) fn rpc_error(&self) -> Value {
        let mut data = match &self.more {
            Value::Object(more) => Value::Object(more.clone()),
            _ => json!({}),
        };
        data["code"] = json!(self.code.number());
        data["reason"] = json!(self.code.as_str());
        json!({ "code": -32000, "message": self.message, "data": data })
    }
}

/// The payload of REGISTER.
#[derive(Deserialize, Debug, Default)]
pub(super) struct Register {
    #[serde(default)]
    pub(super) caps: Vec<String>,
    #[serde(default)]
    pub(super) pid: Option<u64>,
    #[serde(default)]
    pub(super) version: Option<String>,
    /// Whether the caller wants a token for the doors over HTTP. Provost's own member.
    #[serde(default)]
    pub(super) token: Option<bool>,
}

/// The payload of DELEGATE.
#[derive(Deserialize, Debug, Default)]
pub(super) struct Delegate {
    #[serde(default, deserialize_with = "object")]
    pub(super) task: Option<TaskOrder>,
    #[serde(default)]
    pub(super) return_to: Option<String>,
}

/// `payload.task` of a DELEGATE. Other members are passed on unchanged.
#[derive(Deserialize, Debug, Default)]
pub(super) struct TaskOrder {
    #[serde(default)]
    pub(super) action: Option<String>,
    #[serde(default)]
    pub(super) goal: Option<String>,
    #[serde(default)]
    pub(super) timeout: Option<u64>,
    #[serde(default)]
    pub(super) timeout_s: Option<u64>,
    #[serde(default)]
    pub(super) timeout_secs: Option<u64>,
    #[serde(default)]
    pub(super) context: Option<Value>,
    #[serde(default)]
    pub(super) watch_patterns: Option<Vec<String>>,
    #[serde(default)]
    pub(super) working_dir: Option<String>,
    #[serde(default)]
    pub(super) format: Option<String>,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) path: Option<String>,
    #[serde(default)]
    pub(super) command: Option<Value>,
    #[serde(default)]
    pub(super) max_bytes: Option<u64>,
}

/// The payload of NOTIFY.
#[derive(Deserialize, Debug, Default)]
pub(super) struct Notify {
    #[serde(default)]
    pub(super) task_id: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) artifacts: Option<Value>,
    /// The document has this and the next members beside the status instead of in `artifacts`.
    #[serde(default)]
    pub(super) summary: Option<String>,
    #[serde(default)]
    pub(super) details: Option<Value>,
    #[serde(default)]
    pub(super) evidence: Option<Value>,
}

/// STATUS_REQUEST; all members are extensions, present clients send `{}`.
#[derive(Deserialize, Debug, Default)]
pub(super) struct StatusRequest {
    #[serde(default)]
    pub(super) filter: Option<String>,
    #[serde(default)]
    pub(super) task_id: Option<String>,
    #[serde(default)]
    pub(super) limit: Option<usize>,
}

/// TASK_REQUEST and the document's `task`.
#[derive(Deserialize, Debug, Default)]
pub(super) struct TaskRequest {
    #[serde(default)]
    pub(super) task_id: Option<String>,
}

/// APPROVAL_DECISION; the approval is that of the message's own id, or a named one.
#[derive(Deserialize, Debug, Default)]
pub(super) struct ApprovalDecision {
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) note: Option<String>,
    #[serde(default)]
    pub(super) approval_id: Option<String>,
    #[serde(default)]
    pub(super) digest: Option<String>,
}

/// The payload of STATUS_RESPONSE.
#[derive(Serialize, Debug)]
pub(super) struct Status {
    pub(super) active_tasks: Vec<Task>,
    pub(super) completed_tasks: Vec<Task>,
    pub(super) summary: Summary,
    /// Whether older finished tasks are left out or unfinished ones shortened. Present clients ignore it.
    pub(super) truncated: bool,
}

/// `summary` of a STATUS_RESPONSE.
#[derive(Serialize, Debug)]
pub(super) struct Summary {
    pub(super) total_active: usize,
    pub(super) total_completed: u64,
    pub(super) total_failed: u64,
    pub(super) oldest_active_task: Option<String>,
}

/// A task as DevIt's clients read it.
#[derive(Serialize, Debug)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) goal: String,
    pub(super) delegated_to: String,
    pub(super) created_at: String,
    pub(super) timeout_secs: u64,
    pub(super) status: &'static str,
    pub(super) context: Option<Value>,
    pub(super) watch_patterns: Vec<String>,
    pub(super) last_activity: String,
    pub(super) notifications: Vec<Note>,
    pub(super) working_dir: Option<String>,
    pub(super) response_format: Option<String>,
    pub(super) model: Option<String>,
    pub(super) model_resolved: Option<String>,
    /// Tasks that ran in its directory at the same time; a member that present clients do not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) shared_directory_with: Vec<String>,
    /// Whether its run has left a file that runs later; a member that present clients do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tainted: Option<bool>,
    /// The approval that it waits for; a member that present clients do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval_id: Option<String>,
}

/// An entry of a task's `notifications`.
#[derive(Serialize, Debug)]
pub(super) struct Note {
    pub(super) received_at: String,
    pub(super) status: String,
    pub(super) summary: String,
    pub(super) details: Option<Value>,
    pub(super) evidence: Option<Value>,
    pub(super) auto_generated: bool,
    pub(super) metadata: Option<Value>,
}

/// Reads an object, or an absent value. Otherwise an array would count as an object with members by position.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    struct Only<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
    from.deserialize_any(Only(PhantomData))
}

/// Parses a payload; the error names the wrong member.
pub(super) fn payload<'a, T: Deserialize<'a> + Default>(text: &'a str) -> Result<T, DevitError> {
    // A payload that is not an object counts as an empty one.
    if !text.trim_start().starts_with('{') {
        return Ok(T::default());
    }
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
        .map_err(|err| DevitError::invalid(format!("payload.{}: {}", err.path(), err.inner())))
}
