//! Agents of the configuration: what editors ask of them, carried out as jobs and followed to the end.
//!
//! Promises: a job is on record before its asker has an answer; it goes on without a listener; what an editor sends
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
pub use configured::{AgentOutput, Agents, ConfiguredAgent, NoAgent, ResolvedAgent, Role, Rounds};
pub use fleet::{Availability, Fleet, FleetAgent, FleetMember};
pub use jobs::{JobAsk, KEPT_WITHIN, Plan, Pulse, Wanted, fresh_job_id};
pub use prompts::{Ask, PromptFor, Prompts, TooLong, built_in, line_count, render, review_focus};
pub use replies::{
    Issue, Review, Severity, as_code, as_markdown, code_in, code_of_json, code_schema, reply_as, review,
    review_schema, unread_review,
};
pub use roles::{BUILT_IN_ROLES, preamble_of};
pub use scans::{ScanFor, scan_report, scan_schema, unread_scan};
pub use workflows::{Assignee, Flow, Inputs, Pattern, Step, TemplateValues, Workflow};

use fleet::Tally;
use jobs::Pulses;
use provost_service::Provost;
use provost_store::JobLogs;

/// What the configuration makes of agents, replaced as a whole on reload.
#[derive(Clone)]
pub struct AgentSettings {
    /// The workers that editors ask.
    pub agents: Arc<Agents>,
    /// The same, for editors that ask whether an agent could begin now.
    pub fleet: Fleet,
    /// The output of jobs' workers.
    pub job_logs: JobLogs,
    /// What prompts tell agents of the workspace.
    pub surroundings: Surroundings,
}

/// Describes the state of the workspace for agents that are to work in a copy of it; a sentence where the state cannot
/// be found out. Blocking.
#[derive(Clone, Default)]
pub struct Surroundings(Option<Arc<Looks>>);

/// How the workspace is looked at.
type Looks = dyn Fn() -> Result<String, String> + Send + Sync;

impl Surroundings {
    /// Looks in this way.
    pub fn new(look: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look)))
    }

    /// The description; empty where no way to look was given.
    fn told(&self) -> Result<String, String> {
        self.0.as_ref().map_or_else(|| Ok(String::new()), |look| look())
    }
}

/// Everything that a door may ask of agents. Cheap to clone.
#[derive(Clone)]
pub struct AgentService(Arc<AgentServiceInner>);

struct AgentServiceInner {
    provost: Provost,
    settings: RwLock<AgentSettings>,
    pulses: Pulses,
    /// What agents say that they have used since the start.
    used: Tally,
}

impl AgentService {
    /// Agents whose tasks go through `provost`.
    pub fn new(provost: Provost, settings: AgentSettings) -> Self {
        let settings = RwLock::new(settings);
        Self(Arc::new(AgentServiceInner {
            provost,
            settings,
            pulses: Pulses::default(),
            used: Tally::default(),
        }))
    }

    /// The service through which tasks are delegated and files are read.
    pub fn provost(&self) -> &Provost {
        &self.0.provost
    }

    fn settings(&self) -> AgentSettings {
        self.0.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agents of the configuration.
    pub fn configured(&self) -> Arc<Agents> {
        self.settings().agents
    }

    /// The output of jobs' workers.
    fn job_logs(&self) -> JobLogs {
        self.settings().job_logs
    }

    fn surroundings(&self) -> Surroundings {
        self.settings().surroundings
    }

    /// Uses other agents from the next job on.
    pub fn set_settings(&self, settings: AgentSettings) {
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }
}
