//! Workflows for the doors, and the prompts of their steps. A6s 6.9.
//!
//! An editor's input is the user's own words, like a task. The output of agents and commands is data, and stands
//! between fences. This module does no input or output.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::prompts::as_data;
use provost_base::AgentId;
use provost_base::limits::WORKFLOW_TOLD_BYTES_MAX;
use provost_domain::PhaseName;

/// The order in which steps are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One after another, in one copy.
    Sequential,
    /// All at once, each in a copy of its own.
    Parallel,
    /// The first decides which step is next.
    Supervisor,
    /// The first makes, the others check.
    MakerChecker,
}

impl Pattern {
    /// Returns the name that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Pattern::Sequential => "sequential",
            Pattern::Parallel => "parallel",
            Pattern::Supervisor => "supervisor",
            Pattern::MakerChecker => "maker_checker",
        }
    }
}

/// A workflow of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workflow {
    /// The id: `domain:name`.
    pub id: Box<str>,
    /// The workflow's name for people.
    pub name: Box<str>,
    /// A text for people about the workflow's purpose.
    pub description: Box<str>,
    /// The order in which the steps are taken.
    pub pattern: Pattern,
    /// The most decisions of a supervisor, or tries of a maker.
    pub max_rounds: u32,
    /// The steps, in the order of the file.
    pub steps: Vec<Step<Option<Box<str>>>>,
    /// The place of the workflow's definition: `FILE:LINE`.
    pub place: Box<str>,
}

impl Workflow {
    /// Returns the part of the workflow's id before the colon.
    pub fn domain(&self) -> &str {
        self.id.split(':').next().unwrap_or_default()
    }
}

/// A step with its agent: the one that the configuration names, or the resolved one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step<Who> {
    /// The name of the step, by which prompts refer to its answer.
    pub name: Box<str>,
    /// The agent that takes the step.
    pub who: Who,
    /// The prompt of the agent; `None` for a command.
    pub prompt: Option<Box<str>>,
    /// The command that runs instead of an agent.
    pub command: Vec<Box<str>>,
    /// The check command; the agent is asked until it succeeds.
    pub until: Vec<Box<str>>,
    /// The most times that the agent is asked.
    pub max_rounds: u32,
    /// The phase that the step belongs to.
    pub phase: PhaseName,
}

/// The agent that takes a step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Assignee {
    /// The name that editors show.
    pub shown: Box<str>,
    /// The worker that runs, which is the agent's name.
    pub worker: AgentId,
    /// The beginning of the agent's prompts; `None` if the agent has no preamble.
    pub preamble: Option<Box<str>>,
}

/// A workflow that a client has started, kept with its job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// The order in which the steps are taken.
    pub pattern: Pattern,
    /// The most decisions of a supervisor, or tries of a maker.
    pub max_rounds: u32,
    /// The steps, with their resolved agents.
    pub steps: Vec<Step<Assignee>>,
    /// The input of this run.
    pub inputs: Inputs,
    /// The urgency of the job, in the editor's word.
    pub priority: Option<Box<str>>,
}

/// The input of a workflow, as text and by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Inputs {
    /// The whole input as one text.
    pub text: Box<str>,
    /// The members of an object, by name; empty if there was no object.
    pub named: Map<String, Value>,
}

impl Inputs {
    /// Combines `inputs`, which is an object, and `input`, which may be anything. An object counts as both.
    ///
    /// # Errors
    /// A sentence about the wrong one.
    pub fn of(inputs: Option<Value>, input: Option<Value>) -> Result<Self, String> {
        let mut named = match inputs {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(named)) => named,
            // An empty table of Lua arrives as a list.
            Some(Value::Array(list)) if list.is_empty() => Map::new(),
            Some(_) => return Err("`inputs`: expected an object".into()),
        };
        let text = match input {
            None | Some(Value::Null) => None,
            Some(Value::Object(more)) => {
                named.extend(more);
                None
            }
            Some(other) => Some(as_text(&other)),
        };
        let text =
            text.or_else(|| named.get("input").map(as_text)).unwrap_or_else(|| match named.is_empty() {
                true => String::new(),
                false => serde_json::to_string_pretty(&named).unwrap_or_default(),
            });
        Ok(Self { text: text.into(), named })
    }
}

/// Returns text unchanged, anything else as JSON.
fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The values for the placeholders.
#[derive(Clone, Copy, Debug)]
pub struct TemplateValues<'a> {
    /// The input of the workflow.
    pub inputs: &'a Inputs,
    /// The answers of steps so far, by name; the last one is that of the previous step.
    pub answers: &'a [(Box<str>, String)],
    /// The output of the last check; empty if there was none.
    pub check: &'a str,
    /// The supervisor's order for the step; empty if there is none.
    pub task: &'a str,
}

impl TemplateValues<'_> {
    /// Returns a prompt. An empty value leaves no trace.
    pub fn prompt(&self, template: &str) -> String {
        fill(template, |name| {
            let answer = |name: &str, text: &str| told(&format!("What the step {name} has answered"), text);
            let by_name = |wanted: &str| self.answers.iter().rev().find(|(name, _)| **name == *wanted);
            Some(match name {
                "input" => self.inputs.text.trim().to_owned(),
                "task" => self.task.trim().to_owned(),
                "check" => told("What the check has said", self.check),
                "previous" => self.answers.last().map(|(name, text)| answer(name, text)).unwrap_or_default(),
                other => match other.strip_prefix("steps.") {
                    Some(step) => by_name(step).map(|(name, text)| answer(name, text)).unwrap_or_default(),
                    None => self.named(other)?,
                },
            })
        })
    }

    /// Returns an argument of a command, into which no agent's answer goes.
    pub fn argument(&self, template: &str) -> String {
        fill(
            template,
            |name| if name == "input" { Some(self.inputs.text.to_string()) } else { self.named(name) },
        )
        .replace('\0', "")
    }

    fn named(&self, name: &str) -> Option<String> {
        let input = name.strip_prefix("inputs.")?;
        Some(self.inputs.named.get(input).map(as_text).unwrap_or_default())
    }
}

/// Returns output of others as data; only its end, if it is long.
pub(super) fn told(what: &str, text: &str) -> String {
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(WORKFLOW_TOLD_BYTES_MAX));
    if text.is_empty() { String::new() } else { as_data(what, &text[from..]) }
}

/// Replaces known placeholders in one pass; other braces stay.
fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut out, mut rest) = (String::with_capacity(template.len()), template);
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = rest.strip_prefix('{').and_then(|it| it.split_once('}')).map(|(name, _)| name);
        match name.and_then(|name| Some((name.len() + 2, value(name)?))) {
            Some((len, value)) => {
                out.push_str(&value);
                rest = &rest[len..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}
