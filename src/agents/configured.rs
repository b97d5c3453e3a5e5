//! Agents and roles of the configuration, and the resolution of their names.

use std::collections::BTreeMap;

use super::prompts::Prompts;
use super::roles::{BUILT_IN_ROLES, preamble_of};
use super::workflows::Workflow;
use provost_base::{AgentId, Ttl};
use provost_domain::{PhaseName, Switch};
use provost_jail::Reader;

/// The form of an agent's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentOutput {
    /// Changed files in the agent's copy.
    Edit,
    /// JSON.
    Json,
    /// Text.
    Text,
}

/// An agent of the configuration. It is a worker of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfiguredAgent {
    /// The name that tasks are delegated to.
    pub id: AgentId,
    /// The name that editors show to people.
    pub name: Box<str>,
    /// The purpose of the agent; may be empty.
    pub description: Box<str>,
    /// The kind of work, such as `BUILD`.
    pub capability: Box<str>,
    /// The place that editors show for the agent, from the configuration.
    pub region: Box<str>,
    /// The form of the agent's result.
    pub output: AgentOutput,
    /// The format of the agent's standard output.
    pub reader: Reader,
    /// The number of the agent's tasks that may run at the same time.
    pub parallel: u32,
    /// The time limit of the agent's tasks.
    pub timeout: Ttl,
    /// The methods that the agent may be asked for, as patterns.
    pub methods: Vec<Box<str>>,
    /// Whether the agent's entry enables it.
    pub enabled: bool,
    /// The reason why the agent cannot be used, if there is one.
    pub trouble: Option<Box<str>>,
    /// The steps around the agent's work in an execution.
    pub checks: ChecksConfig,
}

/// The steps around the work of an agent in an execution. A6s 6.2.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChecksConfig {
    /// Fix commands.
    pub fix: Vec<Vec<Box<str>>>,
    /// Check commands.
    pub check: Vec<Vec<Box<str>>>,
    /// Whether the execution fails if a command or the reviewer does.
    pub required: bool,
    /// The agent that reviews the changes; `None` for no review.
    pub reviewer: Option<AgentId>,
    /// Whether each phase is a run of its own.
    pub pipeline: bool,
}

impl ConfiguredAgent {
    /// Checks whether the agent may be asked for a method, such as `code.review`.
    pub fn takes(&self, method: &str) -> bool {
        self.methods.iter().any(|pattern| {
            let domain = pattern.strip_suffix('*').and_then(|it| it.strip_suffix('.'));
            let within = |domain: &str| method.strip_prefix(domain).is_some_and(|rest| rest.starts_with('.'));
            **pattern == *"*" || **pattern == *method || domain.is_some_and(within)
        })
    }
}

impl ConfiguredAgent {
    /// Returns the reason why the agent cannot be asked, given its switch.
    fn is_no_use(&self, switch: Switch) -> Option<&str> {
        match (&self.trouble, self.enabled) {
            (_, false) => Some("it is switched off: `enabled = false` in its entry"),
            (Some(trouble), true) => Some(trouble),
            (None, true) if switch == Switch::Off => {
                Some("it is switched off; the fleet.command `start` switches it on")
            }
            (None, true) => None,
        }
    }
}

/// Another name for an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// The id by which editors name the agent.
    pub id: AgentId,
    /// The agent behind the id; `None` for the first one.
    pub agent: Option<AgentId>,
    /// The beginning of the agent's prompts; `None` for the built-in text, if there is one.
    pub preamble: Option<Box<str>>,
}

/// The agent that a name refers to, with the role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedAgent<'a> {
    /// The agent that does the work.
    pub agent: &'a ConfiguredAgent,
    /// The role, spelt as in the configuration or the protocol.
    pub role: Option<&'a str>,
    /// The beginning of the agent's prompts.
    pub preamble: Option<&'a str>,
}

/// The reason why no agent can be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoAgent {
    /// No agent is configured. There may be workers, whose goal is no prompt.
    #[error(
        "No agent is configured for {0}: put an [[agent]] entry into provost.toml, as docs/agents.md shows"
    )]
    Configured(&'static str),
    /// The configured agent's entry is invalid.
    #[error("{0} cannot be used: {1}")]
    Refused(Box<str>, Box<str>),
    /// No agent has that name.
    #[error("a6s.code_agent names no agent: {0}. Configured: {1}")]
    Called(AgentId, String),
    /// No agent takes the method.
    #[error("No agent takes {0}: add it to the `methods` of one of them. Configured: {1}")]
    Takes(&'static str, String),
    /// The agent that takes the method does not work.
    #[error("{0} cannot be asked: {1}")]
    Works(AgentId, String),
}

/// The agents of the configuration, replaced as a whole on reload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agents {
    /// The agents, in the order of the configuration.
    pub agents: Vec<ConfiguredAgent>,
    /// Entries that cannot be used, by their names, each with the reason.
    pub refused: BTreeMap<Box<str>, Box<str>>,
    /// The roles of the configuration, by id.
    pub roles: BTreeMap<AgentId, Role>,
    /// Whether roles are listed in addition to the agents.
    pub list_roles: bool,
    /// The preferred agent or role for questions about code.
    pub code_agent: Option<AgentId>,
    /// How long an editor waits for an answer about code before it gets an error about the delay.
    pub soft_deadline: Ttl,
    /// Whether ids that are built into editors' plugins are names for the first agent.
    pub role_aliases: bool,
    /// The templates of prompts.
    pub prompts: Prompts,
    /// The agents that do single phases of an execution instead of the agent that was asked, if each phase is a run of its own.
    pub phases: BTreeMap<PhaseName, AgentId>,
    /// The workflows of the configuration that can be run.
    pub workflows: Vec<Workflow>,
    /// Workflows that cannot be used, by id, each with the reason.
    pub refused_workflows: BTreeMap<Box<str>, Box<str>>,
    /// Whether agents may be asked to scan a whole repository.
    pub scans: bool,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            workflows: Vec::new(),
            refused_workflows: BTreeMap::new(),
            scans: false,
            agents: Vec::new(),
            refused: BTreeMap::new(),
            roles: BTreeMap::new(),
            list_roles: false,
            code_agent: None,
            soft_deadline: Ttl::seconds_clamped(27),
            role_aliases: false,
            prompts: Prompts::default(),
            phases: BTreeMap::new(),
        }
    }
}

impl Agents {
    /// Returns the agent for a request that names none: the first that works.
    pub fn first(&self) -> Option<&ConfiguredAgent> {
        let works = |agent: &&ConfiguredAgent| agent.enabled && agent.trouble.is_none();
        self.agents.iter().find(works).or(self.agents.first())
    }

    /// Returns an agent by its exact id.
    pub fn get(&self, id: &AgentId) -> Option<&ConfiguredAgent> {
        self.agents.iter().find(|agent| agent.id == *id)
    }

    /// Returns the agent that a name refers to. The name is an agent's id, its name, a role, or one of the ids that
    /// plugins know; upper and lower case are the same.
    pub fn find(&self, name: &str) -> Option<ResolvedAgent<'_>> {
        let name = name.trim();
        let same = |known: &str| known.to_lowercase() == name.to_lowercase();
        let by_id = self.agents.iter().find(|agent| same(agent.id.as_str()));
        if let Some(agent) = by_id.or_else(|| self.agents.iter().find(|agent| same(&agent.name))) {
            return Some(ResolvedAgent { agent, role: None, preamble: None });
        }
        if let Some(role) = self.roles.values().find(|role| same(role.id.as_str())) {
            let agent = role.agent.as_ref().map_or_else(|| self.first(), |id| self.get(id))?;
            let preamble = role.preamble.as_deref().or_else(|| preamble_of(role.id.as_str()));
            return Some(ResolvedAgent { agent, role: Some(role.id.as_str()), preamble });
        }
        let (id, preamble) = BUILT_IN_ROLES.iter().find(|(id, _)| self.role_aliases && same(id))?;
        self.first().map(|agent| ResolvedAgent { agent, role: Some(id), preamble: Some(preamble) })
    }

    /// Returns the agent for a question that names none: the one that the configuration prefers, or else
    /// the first that works and takes such questions.
    ///
    /// # Errors
    /// [`NoAgent`].
    pub fn asked_for(
        &self,
        method: &'static str,
        switch: impl Fn(&AgentId) -> Switch,
    ) -> Result<ResolvedAgent<'_>, NoAgent> {
        if self.agents.is_empty() {
            return Err(match self.refused.first_key_value() {
                Some((name, why)) => NoAgent::Refused(name.clone(), why.clone()),
                None => NoAgent::Configured(method),
            });
        }
        let preferred = self
            .code_agent
            .as_ref()
            .map(|id| self.find(id.as_str()).ok_or_else(|| NoAgent::Called(id.clone(), self.ids())));
        let all = self.agents.iter().map(|agent| ResolvedAgent { agent, role: None, preamble: None });
        let takes: Vec<ResolvedAgent<'_>> =
            preferred.transpose()?.into_iter().chain(all).filter(|meant| meant.agent.takes(method)).collect();
        let trouble =
            |meant: &ResolvedAgent<'_>| meant.agent.is_no_use(switch(&meant.agent.id)).map(str::to_owned);
        let works = |meant: &&ResolvedAgent<'_>| trouble(meant).is_none();
        let begins = |meant: &&ResolvedAgent<'_>| works(meant) && switch(&meant.agent.id) == Switch::On;
        // A question to an agent that is switched off waits.
        let asked = takes.iter().find(begins).or_else(|| takes.iter().find(works));
        match (asked, takes.first()) {
            (Some(meant), _) => Ok(meant.clone()),
            (None, Some(meant)) => {
                Err(NoAgent::Works(meant.agent.id.clone(), trouble(meant).unwrap_or_default()))
            }
            (None, None) => Err(NoAgent::Takes(method, self.ids())),
        }
    }

    /// Returns the reason why an entry of this name cannot be used.
    pub fn refusal(&self, name: &str) -> Option<&str> {
        let same = |known: &str| known.to_lowercase() == name.trim().to_lowercase();
        self.refused.iter().find(|(known, _)| same(known)).map(|(_, why)| &**why)
    }

    /// Returns the ids of all agents, for an error about an unknown one.
    pub fn ids(&self) -> String {
        self.agents.iter().map(|agent| agent.id.as_str()).collect::<Vec<_>>().join(", ")
    }
}
