//! Agents of the configuration: what editors ask of them, carried out as jobs and followed to the end.
//!
//! Promises: a job is on record before its asker has an answer; it goes on without a listener; an editor's text
//! stands in a prompt as data. Left to others: whether a task may run (`policy`), running it (`effects`), and writing
//! its changes into the user's files (`service`).
#![forbid(unsafe_code)]

mod code_actions;
mod configured;
mod fleet;
mod jobs;
mod prompts;
mod replies;
mod roles;
mod scans;
mod workflows;

use std::sync::{Arc, PoisonError, RwLock};

pub use code_actions::{
    CodeActionError, CodeAsk, CodePlan, CodeQuestion, CodeResult, MergedTests, NoPlace, Placed, SoFar,
    WorkspaceProbe, further_tests_of, keep_tests, lost_tests, named_after, place, tests_of,
};
pub use configured::{AgentOutput, Agents, ChecksConfig, ConfiguredAgent, NoAgent, ResolvedAgent, Role};
pub use fleet::{Availability, Fleet, FleetAgent, FleetMember};
pub use jobs::{JobAsk, JobProgress, KEPT_WITHIN, Plan, Wanted, fresh_job_id};
pub use prompts::{Ask, PromptFor, Prompts, TooLong, built_in, line_count, render, review_focus};
pub use replies::{
    Issue, Review, Severity, as_code, as_markdown, code_in, code_of_json, code_schema, reply_as, review,
    review_schema, unread_review,
};
pub use roles::{BUILT_IN_ROLES, preamble_of};
pub use scans::{ScanFor, scan_report, scan_schema, unread_scan};
pub use workflows::{Assignee, Flow, Inputs, Pattern, Step, TemplateValues, Workflow};

use fleet::Tally;
use jobs::ProgressBoard;
use provost_service::Provost;
use provost_store::JobLogs;

/// The configuration of agents, replaced as a whole on reload.
#[derive(Clone)]
pub struct AgentSettings {
    /// The agents that editors ask.
    pub agents: Arc<Agents>,
    /// The same agents, for editors that ask whether an agent could begin now.
    pub fleet: Fleet,
    /// The output of jobs' workers.
    pub job_logs: JobLogs,
    /// The description of the workspace for prompts.
    pub surroundings: Surroundings,
}

/// Describes the state of the workspace for agents that will work in a copy of it; a sentence if the state cannot
/// be found out. Blocking.
#[derive(Clone, Default)]
pub struct Surroundings(Option<Arc<Looks>>);

/// The function that examines the workspace.
type Looks = dyn Fn() -> Result<String, String> + Send + Sync;

impl Surroundings {
    /// Makes the surroundings, with the given function.
    pub fn new(look: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look)))
    }

    /// Returns the description; empty without a function.
    fn told(&self) -> Result<String, String> {
        self.0.as_ref().map_or_else(|| Ok(String::new()), |look| look())
    }
}

/// The service by which doors ask agents. Cheap to clone.
#[derive(Clone)]
pub struct AgentService(Arc<AgentServiceInner>);

struct AgentServiceInner {
    provost: Provost,
    settings: RwLock<AgentSettings>,
    pulses: ProgressBoard,
    /// The use that agents have reported since the start.
    used: Tally,
}

impl AgentService {
    /// Makes the service for agents whose tasks go through `provost`.
    pub fn new(provost: Provost, settings: AgentSettings) -> Self {
        let settings = RwLock::new(settings);
        Self(Arc::new(AgentServiceInner {
            provost,
            settings,
            pulses: ProgressBoard::default(),
            used: Tally::default(),
        }))
    }

    /// Returns the service through which tasks are delegated and files are read.
    pub fn provost(&self) -> &Provost {
        &self.0.provost
    }

    fn settings(&self) -> AgentSettings {
        self.0.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the agents of the configuration.
    pub fn configured(&self) -> Arc<Agents> {
        self.settings().agents
    }

    /// Returns the store of the output of jobs' workers.
    fn job_logs(&self) -> JobLogs {
        self.settings().job_logs
    }

    fn surroundings(&self) -> Surroundings {
        self.settings().surroundings
    }

    /// Replaces the settings, from the next job on.
    pub fn set_settings(&self, settings: AgentSettings) {
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }
}
