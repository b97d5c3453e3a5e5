//! Agents and roles of the configuration, and the resolution of their names.

use std::collections::BTreeMap;

use super::prompts::Prompts;
use super::roles::{BUILT_IN_ROLES, preamble_of};
use super::workflows::Workflow;
use provost_base::{AgentId, Ttl};
use provost_domain::{PhaseName, Switch};
use provost_jail::Reader;

/// The form of an agent's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentOutput {
    /// It changes files in its copy.
    Edit,
    /// It answers with JSON.
    Json,
    /// It answers with text.
    Text,
}

/// An agent of the configuration. It is a worker of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfiguredAgent {
    /// The name tasks are delegated to.
    pub id: AgentId,
    /// The name that editors show to people.
    pub name: Box<str>,
    /// What it is good for; may be empty.
    pub description: Box<str>,
    /// `BUILD` and the like.
    pub capability: Box<str>,
    /// The place that editors show for it; the configuration says it.
    pub region: Box<str>,
    /// The form of its work.
    pub output: AgentOutput,
    /// How its standard output is read.
    pub reader: Reader,
    /// Tasks of it that run at the same time.
    pub parallel: u32,
    /// How long a task of it may take.
    pub timeout: Ttl,
    /// What it may be asked for, as patterns.
    pub methods: Vec<Box<str>>,
    /// Whether it works at all.
    pub enabled: bool,
    /// Why it cannot be used, if it cannot.
    pub trouble: Option<Box<str>>,
    /// What surrounds its work in an execution.
    pub rounds: Rounds,
}

/// What surrounds the work of an agent in an execution. A6s 6.2.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rounds {
    /// Commands that tidy up.
    pub fix: Vec<Vec<Box<str>>>,
    /// Commands that check the changes.
    pub check: Vec<Vec<Box<str>>>,
    /// Whether the execution fails when one of those does, or its reviewer.
    pub required: bool,
    /// The agent that reviews the changes; `None` for no review.
    pub reviewer: Option<AgentId>,
    /// Whether each phase is a run of its own.
    pub pipeline: bool,
}

impl ConfiguredAgent {
    /// Whether it may be asked for something: `code.review`.
    pub fn takes(&self, method: &str) -> bool {
        self.methods.iter().any(|pattern| {
            let domain = pattern.strip_suffix('*').and_then(|it| it.strip_suffix('.'));
            let within = |domain: &str| method.strip_prefix(domain).is_some_and(|rest| rest.starts_with('.'));
            **pattern == *"*" || **pattern == *method || domain.is_some_and(within)
        })
    }
}

impl ConfiguredAgent {
    /// Why it cannot be asked, as it is switched now.
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
    /// The id by which editors name it.
    pub id: AgentId,
    /// The agent behind it; `None` is the first one.
    pub agent: Option<AgentId>,
    /// The text with which its prompts begin; `None` for the built-in one, if there is one.
    pub preamble: Option<Box<str>>,
}

/// The agent that a name means, and the role in which.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedAgent<'a> {
    /// The agent that does the work.
    pub agent: &'a ConfiguredAgent,
    /// The role, by the spelling of the configuration or of the protocol.
    pub role: Option<&'a str>,
    /// The text with which its prompts begin.
    pub preamble: Option<&'a str>,
}

/// Why no agent can be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoAgent {
    /// There are workers at the most, whose goal is no prompt.
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
    /// None is for that.
    #[error("No agent takes {0}: add it to the `methods` of one of them. Configured: {1}")]
    Takes(&'static str, String),
    /// The agent for it does not work.
    #[error("{0} cannot be asked: {1}")]
    Works(AgentId, String),
}

/// The agents of the configuration, replaced as a whole on reload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agents {
    /// In the order of the configuration.
    pub agents: Vec<ConfiguredAgent>,
    /// Entries that cannot be used, by what they call themselves, each with the reason.
    pub refused: BTreeMap<Box<str>, Box<str>>,
    /// The roles of the configuration, by id.
    pub roles: BTreeMap<AgentId, Role>,
    /// Whether roles are listed beside the agents.
    pub list_roles: bool,
    /// Who is asked about code rather than others: an agent, or a role.
    pub code_agent: Option<AgentId>,
    /// How long an editor waits for an answer about code before it gets an error about the delay.
    pub soft_deadline: Ttl,
    /// Whether ids that editors' plugins know from the beginning are names for the first agent.
    pub role_aliases: bool,
    /// The templates of prompts.
    pub prompts: Prompts,
    /// Who does a phase of an execution instead of the agent that was asked, where each is a run of its own.
    pub phases: BTreeMap<PhaseName, AgentId>,
    /// The workflows of the configuration that can be run.
    pub workflows: Vec<Workflow>,
    /// Workflows that cannot be used, by id, and why.
    pub refused_workflows: BTreeMap<Box<str>, Box<str>>,
    /// Whether they may be had look through a whole repository.
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
    /// The agent that is meant when the editor names none: the first that works.
    pub fn first(&self) -> Option<&ConfiguredAgent> {
        let works = |agent: &&ConfiguredAgent| agent.enabled && agent.trouble.is_none();
        self.agents.iter().find(works).or(self.agents.first())
    }

    /// An agent by its id, to the letter.
    pub fn get(&self, id: &AgentId) -> Option<&ConfiguredAgent> {
        self.agents.iter().find(|agent| agent.id == *id)
    }

    /// The agent that a name means. The name is an agent's id, its name, a role, or one of the ids that
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

    /// The agent that is asked where an editor names none: the one that the configuration prefers, or else
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
        // With one that is held back a question waits.
        let asked = takes.iter().find(begins).or_else(|| takes.iter().find(works));
        match (asked, takes.first()) {
            (Some(meant), _) => Ok(meant.clone()),
            (None, Some(meant)) => {
                Err(NoAgent::Works(meant.agent.id.clone(), trouble(meant).unwrap_or_default()))
            }
            (None, None) => Err(NoAgent::Takes(method, self.ids())),
        }
    }

    /// Why an entry of this name cannot be used.
    pub fn refusal(&self, name: &str) -> Option<&str> {
        let same = |known: &str| known.to_lowercase() == name.trim().to_lowercase();
        self.refused.iter().find(|(known, _)| same(known)).map(|(_, why)| &**why)
    }

    /// The ids of all agents, for an error about an unknown one.
    pub fn ids(&self) -> String {
        self.agents.iter().map(|agent| agent.id.as_str()).collect::<Vec<_>>().join(", ")
    }
}
