//! The types of the Autonoma daemon protocol: parameters, answers, and events.
//!
//! Optional members may be `null`, and are never sent as `null`. Unknown members are ignored.

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

/// The parameters of a method that needs none.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Nothing {}

/// `agents.invoke`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invoke {
    /// An agent's id or name, or a role.
    pub agent_type: Text,
    /// The task in the user's own words.
    pub task: Text,
    /// Further data that the editor adds.
    pub context: Option<Json>,
}

/// `background.launch`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// An agent's id or name, or a role.
    pub agent_type: Text,
    /// The task in the user's own words.
    pub task: Text,
}

/// `execution.status`, `workflows.status`, `workflows.cancel`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfExecution {
    /// The id of an execution or a workflow's run.
    pub execution_id: Id,
}

/// `background.cancel`, `background.output`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfTask {
    /// The id of a background task.
    pub task_id: Id,
}

/// `artifacts.preview`, `artifacts.apply`.
#[derive(Clone, Debug, Deserialize)]
pub struct OfArtifacts {
    /// The artifacts; empty if the member is missing.
    #[serde(default)]
    pub artifacts: Artifacts,
}

/// `workflows.list`.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkflowsWanted {
    /// Only workflows of this domain.
    pub domain: Option<Id>,
}

/// `workflows.run`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunWorkflow {
    /// `domain:name`.
    pub workflow_id: Id,
    /// The inputs, as Neovim and Sublime name them.
    pub inputs: Option<Json>,
    /// The inputs, as Emacs names them.
    pub input: Option<Json>,
    /// The urgency.
    pub priority: Option<Priority>,
}

/// The urgency of a workflow. The word is kept with its job and does not change any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Less urgent than usual.
    Low,
    /// The usual urgency, also when the client names none.
    #[default]
    Normal,
    /// More urgent than usual.
    High,
}

impl Priority {
    /// Returns the protocol's word.
    pub fn as_str(self) -> &'static str {
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
    /// Only agents with this capability, in any case.
    pub capability: Option<Id>,
}

/// `fleet.status`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetOf {
    /// The agent; all agents together if the member is missing.
    pub agent_id: Option<Id>,
}

/// `fleet.command`, in the three forms that editors use.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetCommand {
    /// The agent, as Neovim and Sublime name it.
    pub agent_id: Option<Id>,
    /// The place of the agent, or the agent itself, as Emacs names it.
    pub target: Option<Id>,
    /// The wanted capability, in Emacs.
    pub capability: Option<Id>,
    /// The wanted agent, in Emacs.
    pub agent_type: Option<Text>,
    /// A word such as `stop`, or a task.
    pub command: Text,
    /// Parameters that Sublime adds to every command; mostly an empty object.
    pub params: Option<Json>,
}

/// `scan.techDebt`, `scan.modernize`.
#[derive(Clone, Debug, Deserialize)]
pub struct Scan {
    /// The repository to scan, by its path or URL; only this daemon's own is accepted.
    #[serde(alias = "repositoryUrl")]
    pub repository_url: Text,
}

/// `scan.status`.
#[derive(Clone, Debug, Deserialize)]
pub struct OfScan {
    /// The id of the scan's job.
    #[serde(alias = "jobId")]
    pub job_id: Id,
}

/// `background.say`, which is Provost's own.
#[derive(Clone, Debug, Deserialize)]
pub struct Words {
    /// The job at which the agent works: of any kind.
    #[serde(alias = "taskId", alias = "executionId")]
    pub task_id: Id,
    /// The words for it.
    pub text: Text,
    /// Whether the agent's turn is ended first.
    #[serde(default)]
    pub now: bool,
}

/// `feedback.submit`.
#[derive(Clone, Debug, Deserialize)]
pub struct Feedback {
    /// The id in the member of the same name that some answers have.
    #[serde(alias = "conversationLogId")]
    pub conversation_log_id: Id,
    /// The person's judgement.
    pub signal: Signal,
    /// The person's reason, if given.
    pub reason: Option<Text>,
}

/// A person's judgement about an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// The answer was good.
    Accept,
    /// The answer was not good.
    Reject,
}

/// A row of `agents.list`.
#[derive(Clone, Debug, Serialize)]
pub struct Agent {
    /// The agent's id, by which other methods name it.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// A text for people about what the agent is good for.
    pub description: String,
    /// `available`, `busy`, `offline`.
    pub status: &'static str,
}

/// A row of `fleet.list`, with the members that each of the editors looks for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetAgent {
    /// Its id, name, description and status.
    #[serde(flatten)]
    pub agent: Agent,
    /// Its id again.
    pub agent_id: String,
    /// The capability by which editors choose it, such as `BUILD`.
    pub capability: String,
    /// The capability again, under the name that another editor looks for.
    pub group: String,
    /// The place where the agent runs, as the configuration says.
    pub region: String,
    /// The number of its running tasks.
    pub active_tasks: usize,
}

/// `fleet.status` of a single agent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetOne {
    /// The agent's id.
    pub agent_id: String,
    /// Its name for people.
    pub name: String,
    /// `available`, `busy`, `offline`.
    pub status: &'static str,
    /// How long the daemon has been running.
    pub uptime: String,
    /// The digest that identifies the version of its program, if there is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of its running tasks.
    pub active_tasks: usize,
    /// The most tasks that may run at the same time.
    pub max_parallel: u32,
    /// The usage that its jobs report for that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
}

/// `fleet.status` of all agents together.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetTotals {
    /// The number of agents.
    pub total: usize,
    /// The number of agents that could begin at once.
    pub available: usize,
    /// The number of agents that are at work.
    pub busy: usize,
    /// The number of agents that cannot work.
    pub offline: usize,
    /// The totals by capability.
    pub by_capability: BTreeMap<String, CapabilityTotals>,
}

/// A part of [`FleetTotals`].
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CapabilityTotals {
    /// The number of agents with the capability.
    pub total: usize,
    /// The number of those that could begin at once.
    pub available: usize,
}

/// `agents.invoke`, `workflows.run`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The id of the execution that has begun.
    pub execution_id: String,
}

/// `background.launch`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Launched {
    /// The id of the task that has begun.
    pub task_id: String,
}

/// `execution.status`, `workflows.status`, and the content of `execution.complete`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// The id of the execution.
    pub execution_id: String,
    /// The workflow, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// `running`, `success`, `failure`.
    pub status: &'static str,
    /// All five phases, in order.
    pub phases: Vec<Phase>,
    /// The files that it has changed, each with its whole new content.
    pub artifacts: Vec<Artifact>,
    /// The present or last phase, with the approval for which it waits, if any. Public clients show this and
    /// `progress` unchanged.
    pub phase: Cow<'static, str>,
    /// The progress of the whole, in percent.
    pub progress: u8,
    /// The reason of its failure, or the files that were left out of `artifacts`; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it was cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The steps of a workflow; absent for other executions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The usage that its workers report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
}

/// Tokens, money and a model, as workers report them; unreported members are absent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    /// Input tokens of the models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens of the models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens that the models have spent on reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Tokens read from the cache of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to that cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The price in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The model that the worker names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The phases of an execution, in order.
pub const PHASES: [&str; 5] = ["research", "inspect", "generate", "optimize", "review"];

/// A phase of [`PHASES`].
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// `research`, `inspect`, `generate`, `optimize`, `review`.
    pub name: &'static str,
    /// `pending`, `running`, `completed`, `failed`.
    pub status: &'static str,
    /// How far the phase is, in percent.
    pub progress: u8,
    /// Its duration in milliseconds, once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

/// A step of a workflow.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The step's name in its workflow.
    pub name: String,
    /// The agent that takes the step.
    pub agent: String,
    /// `pending`, `running`, `completed`, `failed`.
    pub status: &'static str,
    /// How far the step is, in percent.
    pub progress: u8,
}

/// A row of `background.list`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundTask {
    /// The id of the task.
    pub id: String,
    /// The task in the user's own words.
    pub task: String,
    /// The agent, as the editor named it.
    pub agent_type: String,
    /// `queued`, `running`, `completed`, `failed`, `cancelled`.
    pub status: &'static str,
    /// How far the task is, in percent.
    pub progress: u8,
    /// When it was launched.
    pub started_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// The reason of its failure; absent if the daemon knows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_msg: Option<String>,
}

/// `phase.update`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseUpdate<'a> {
    /// The id of the execution.
    pub execution_id: &'a str,
    /// The name of the phase.
    pub phase: &'a str,
    /// The status of the phase, with the words of `Phase::status`.
    pub status: &'a str,
    /// How far the phase is, in percent.
    pub progress: u8,
}

/// `task.update`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskUpdate<'a> {
    /// The id of the task.
    pub task_id: &'a str,
    /// The status of the task, with the words of `BackgroundTask::status`.
    pub status: &'a str,
    /// How far the task is, in percent.
    pub progress: u8,
}

/// An event, which has no id.
#[derive(Clone, Debug, Serialize)]
pub struct Event<'a, T> {
    /// The event's name, such as `phase.update`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The members of the event, whose type depends on `kind`.
    pub data: T,
}

/// An answer, which has a result and no `error` at all.
#[derive(Clone, Debug, Serialize)]
pub struct Success<'a> {
    /// The id of the request.
    pub id: &'a RawValue,
    /// The result, whose type depends on the method.
    pub result: &'a RawValue,
    /// The id by which feedback refers to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_log_id: Option<&'a str>,
}

/// An answer without a result.
#[derive(Clone, Debug, Serialize)]
pub struct Failure<'a> {
    /// The id of the request.
    pub id: &'a RawValue,
    /// The error as a sentence, never empty.
    pub error: &'a str,
    /// The id by which feedback refers to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_log_id: Option<&'a str>,
}

/// The parts of a request, unparsed.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Request<'a> {
    /// The id that the answer echoes.
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    /// The name of the method; a string, if the request is well-formed.
    #[serde(borrow)]
    pub method: Option<&'a RawValue>,
    /// The parameters of the method; absent counts as empty.
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
}
