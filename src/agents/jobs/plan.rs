//! The plan of a job: kept with it, so that a restarted daemon can continue it.

use serde::{Deserialize, Serialize};

use super::phases::Wanted;
use crate::CodePlan;
use crate::workflows::Flow;

/// How a job is carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// In five phases. A6s 6.2.
    Phases(Wanted),
    /// By one run. A6s 6.3.
    Once,
    /// As a question about code. A6s 6.4.
    Code(Box<CodePlan>),
    /// By one run that reports in a form. A6s 6.9.
    Scan,
    /// By steps. A6s 6.9.
    Workflow(Box<Flow>),
}

/// What carries a job out, kept with it for the next daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct JobRecord {
    /// The prompt of its worker.
    pub(super) prompt: Box<str>,
    /// Where its worker works, within the workspace.
    pub(super) working_dir: Option<Box<str>>,
    /// Whether its worker is an agent.
    pub(super) by_agent: bool,
    /// How it is carried out.
    pub(super) plan: Plan,
}
