//! The Autonoma daemon protocol as it travels: what methods take, what they answer, and events.
//!
//! Members that may be missing may be `null`, and are never sent as `null`. What is unknown is passed over.

mod artifacts;
mod code;
mod control;
mod flows;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use artifacts::{Applied, Artifact, Artifacts, Previewed, Previews};
pub use code::{Issue, OfCode, Review, ReviewType};
pub use control::{Commanded, CommandedAgent};
pub use flows::{ScanJob, WorkflowRow};
pub use text::{Code, Id, Json, Path, Text, Word};

/// What a method takes that needs nothing.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Nothing {}

/// `agents.invoke`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invoke {
    /// An agent's id or name, or a role.
    pub agent_type: Text,
    /// What is to be done.
    pub task: Text,
    /// Whatever the editor adds.
    pub context: Option<Json>,
}

/// `background.launch`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// An agent's id or name, or a role.
    pub agent_type: Text,
    /// What is to be done.
    pub task: Text,
}

/// `execution.status`, `workflows.status`, `workflows.cancel`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfExecution {
    /// Which.
    pub execution_id: Id,
}

/// `background.cancel`, `background.output`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfTask {
    /// Which.
    pub task_id: Id,
}

/// `artifacts.preview`, `artifacts.apply`.
#[derive(Clone, Debug, Deserialize)]
pub struct OfArtifacts {
    /// None where the member is missing, too.
    #[serde(default)]
    pub artifacts: Artifacts,
}

/// `workflows.list`.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkflowsWanted {
    /// Of this domain alone.
    pub domain: Option<Id>,
}

/// `workflows.run`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunWorkflow {
    /// `domain:name`.
    pub workflow_id: Id,
    /// As Neovim and Sublime say it.
    pub inputs: Option<Json>,
    /// As Emacs says it.
    pub input: Option<Json>,
    /// How urgent it is.
    pub priority: Option<Priority>,
}

/// How urgent something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// After others.
    Low,
    /// In its turn.
    #[default]
    Normal,
    /// Before others.
    High,
}

impl Priority {
    /// The protocol's word.
    pub fn word(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        }
    }
}

/// `fleet.list`.
#[derive(Clone, Debug, Deserialize)]
pub struct FleetWanted {
    /// With this capability alone, in any case.
    pub capability: Option<Id>,
}

/// `fleet.status`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetOf {
    /// Of this agent; of all together where it is missing.
    pub agent_id: Option<Id>,
}

/// `fleet.command`, in the three forms that editors know.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetCommand {
    /// As Neovim and Sublime name the agent.
    pub agent_id: Option<Id>,
    /// As Emacs names the place where it is, or the agent.
    pub target: Option<Id>,
    /// Which capability is wanted, in Emacs.
    pub capability: Option<Id>,
    /// Which agent, in Emacs.
    pub agent_type: Option<Text>,
    /// A word such as `stop`, or a task.
    pub command: Text,
    /// What Sublime adds.
    pub params: Option<Json>,
}

/// `scan.techDebt`, `scan.modernize`.
#[derive(Clone, Debug, Deserialize)]
pub struct Scan {
    /// What is to be looked at.
    #[serde(alias = "repositoryUrl")]
    pub repository_url: Text,
}

/// `scan.status`.
#[derive(Clone, Debug, Deserialize)]
pub struct OfScan {
    /// Which.
    #[serde(alias = "jobId")]
    pub job_id: Id,
}

/// `feedback.submit`.
#[derive(Clone, Debug, Deserialize)]
pub struct Feedback {
    /// What it is about: a member that some answers have.
    #[serde(alias = "conversationLogId")]
    pub conversation_log_id: Id,
    /// Whether it was any good.
    pub signal: Signal,
    /// Why.
    pub reason: Option<Text>,
}

/// Whether an answer was any good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// It was.
    Accept,
    /// It was not.
    Reject,
}

/// One of `agents.list`.
#[derive(Clone, Debug, Serialize)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// `available`, `busy`, `offline`.
    pub status: &'static str,
}

/// One of `fleet.list`, with what each of the editors looks for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetAgent {
    /// Its id, name, description and status.
    #[serde(flatten)]
    pub agent: Agent,
    /// Its id once more.
    pub agent_id: String,
    /// What it can do.
    pub capability: String,
    /// The same.
    pub group: String,
    /// Where it runs.
    pub region: String,
    /// Its tasks that run.
    pub active_tasks: usize,
}

/// `fleet.status` of one agent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetOne {
    /// Which.
    pub agent_id: String,
    /// Its name for people.
    pub name: String,
    /// `available`, `busy`, `offline`.
    pub status: &'static str,
    /// How long the daemon has been running.
    pub uptime: String,
    /// What tells its program from another version of it, where there is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its tasks that run.
    pub active_tasks: usize,
    /// Those that may run at the same time.
    pub max_parallel: u32,
    /// What it says that its jobs have used in that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
}

/// `fleet.status` of all together.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetTotals {
    /// Agents.
    pub total: usize,
    /// Those that could begin at once.
    pub available: usize,
    /// Those that are at work.
    pub busy: usize,
    /// Those that cannot work.
    pub offline: usize,
    /// By what they can do.
    pub by_capability: BTreeMap<String, CapabilityTotals>,
}

/// A part of [`FleetTotals`].
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CapabilityTotals {
    /// Agents.
    pub total: usize,
    /// Those that could begin at once.
    pub available: usize,
}

/// `agents.invoke`, `workflows.run`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// What has begun.
    pub execution_id: String,
}

/// `background.launch`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Launched {
    /// What has begun.
    pub task_id: String,
}

/// `execution.status`, `workflows.status`, and what `execution.complete` brings.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// Which.
    pub execution_id: String,
    /// Which workflow, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// `running`, `success`, `failure`.
    pub status: &'static str,
    /// All five, in order.
    pub phases: Vec<Phase>,
    /// What has changed.
    pub artifacts: Vec<Artifact>,
    /// The phase that is under way, or was last; and whose word it waits for, where it does. Public clients show this and
    /// `progress`, as they are.
    pub phase: Cow<'static, str>,
    /// Of the whole, up to 100.
    pub progress: u8,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it was taken back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Of a workflow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What its workers say that they have used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
}

/// Tokens, money and a model, as workers tell; what they do not tell is not there.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    /// Read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Out of the service's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// In US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// By which model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The phases of an execution, in order.
pub const PHASES: [&str; 5] = ["research", "inspect", "generate", "optimize", "review"];

/// One of [`PHASES`].
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// `research`, `inspect`, `generate`, `optimize`, `review`.
    pub name: &'static str,
    /// `pending`, `running`, `completed`, `failed`.
    pub status: &'static str,
    /// Up to 100.
    pub progress: u8,
    /// In milliseconds, once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

/// One step of a workflow.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Who does it.
    pub agent: String,
    /// As of a phase.
    pub status: &'static str,
    /// Up to 100.
    pub progress: u8,
}

/// One of `background.list`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundTask {
    /// Which.
    pub id: String,
    /// What is to be done.
    pub task: String,
    /// By whom, as it was asked for.
    pub agent_type: String,
    /// `queued`, `running`, `completed`, `failed`, `cancelled`.
    pub status: &'static str,
    /// Up to 100.
    pub progress: u8,
    /// When it was asked for.
    pub started_at: String,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_msg: Option<String>,
}

/// `phase.update`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseUpdate<'a> {
    /// Of which execution.
    pub execution_id: &'a str,
    /// Which phase.
    pub phase: &'a str,
    /// How it stands.
    pub status: &'a str,
    /// Up to 100.
    pub progress: u8,
}

/// `task.update`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskUpdate<'a> {
    /// Which.
    pub task_id: &'a str,
    /// How it stands.
    pub status: &'a str,
    /// Up to 100.
    pub progress: u8,
}

/// An event, which has no id.
#[derive(Clone, Debug, Serialize)]
pub struct Event<'a, T> {
    /// What kind.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// What it says.
    pub data: T,
}

/// An answer, which has a result and no `error` at all.
#[derive(Clone, Debug, Serialize)]
pub struct Success<'a> {
    /// As it was asked.
    pub id: &'a RawValue,
    /// What the method answers.
    pub result: &'a RawValue,
    /// By what feedback refers to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_log_id: Option<&'a str>,
}

/// An answer without a result.
#[derive(Clone, Debug, Serialize)]
pub struct Failure<'a> {
    /// As it was asked.
    pub id: &'a RawValue,
    /// A sentence, never empty.
    pub error: &'a str,
    /// By what feedback refers to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_log_id: Option<&'a str>,
}

/// What a request consists of, each part as it came.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Request<'a> {
    /// By what its answer is known.
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    /// What is asked for.
    #[serde(borrow)]
    pub method: Option<&'a RawValue>,
    /// With what.
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
}
