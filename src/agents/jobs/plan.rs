//! The plan of a job: kept with it, so that a restarted daemon can continue it.

use serde::{Deserialize, Serialize};

use super::phases::Wanted;
use crate::CodePlan;
use crate::workflows::Flow;

/// The kind of a job's plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// Five phases. A6s 6.2.
    Phases(Wanted),
    /// One run. A6s 6.3.
    Once,
    /// A question about code. A6s 6.4.
    Code(Box<CodePlan>),
    /// One run that reports in a form. A6s 6.9.
    Scan,
    /// Steps. A6s 6.9.
    Workflow(Box<Flow>),
}

/// The stored parts of a job, with which the next daemon can carry it out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct JobRecord {
    /// The prompt of the job's worker.
    pub(super) prompt: Box<str>,
    /// The directory where the job's worker works, relative to the workspace.
    pub(super) working_dir: Option<Box<str>>,
    /// Whether the job's worker is an agent.
    pub(super) by_agent: bool,
    /// The plan by which the job is carried out.
    pub(super) plan: Plan,
}
