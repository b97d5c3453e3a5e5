//! The configuration of the core. Set at the start, replaced as a whole on reload.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Delegate, Facts, Git, Network, NoticeTarget, PoolSetting, PostSettings, PushSetting, Rate, Refusal,
    Retries, SecretUse, SpendingSettings, Tier, WorkerKind,
};
use provost_base::{AgentId, Resource, Ttl};

/// The core's part of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The accepted versions: REGISTER must announce one of them; if empty, any version is accepted.
    ///
    /// DevIt, `[daemon].expected_worker_version`.
    pub expected_versions: Vec<Box<str>>,
    /// The agent that gets the mail about approvals. DevIt, `[daemon.approvals].default_target`.
    pub approval_target: AgentId,
    /// Workers in the configuration; every other name is a polling worker.
    pub workers: BTreeMap<AgentId, WorkerSetting>,
    /// The shortest lease of a polled task; a task with a longer timeout has a longer lease.
    pub lease_min: Ttl,
    /// The time for which a worker that is away keeps its tasks.
    pub away_keep: Ttl,
    /// The time for which mail is kept for an agent that does not collect it.
    pub mail_keep: Ttl,
    /// The longest wait of an approval, even if its rule allows more.
    pub approval_wait_max: Ttl,
    /// The most unfinished tasks that one agent may have asked for.
    pub tasks_per_agent: u32,
    /// Pools of workers, by name.
    pub pools: BTreeMap<Box<str>, PoolSetting>,
    /// The labels of this host, such as `gpu`.
    pub labels: BTreeSet<Box<str>>,
    /// The number of the daemon's workers that run here at once.
    pub places: u32,
    /// Agents that may give work a high priority, if they prove their names.
    pub high_priority: BTreeSet<AgentId>,
    /// Whether a reservation that another agent has through another door is refused, and not only reported.
    pub deny_across_doors: bool,
    /// Whether a contract binds only on the branch on which it was offered.
    pub contracts_by_branch: bool,
    /// The leases that agents take by writing.
    pub auto: AutoSetting,
    /// The number of units of each counted kind of resource.
    pub counted: BTreeMap<Box<str>, u32>,
    /// Whether pictures of the screen may be taken at all.
    pub screenshots: bool,
    /// Whether a notification hook is configured.
    pub hooks: bool,
    /// Addresses elsewhere that get notices.
    pub notices: Vec<NoticeTarget>,
    /// The notices that browsers get through their push services.
    pub push: PushSetting,
    /// The settings of messages between agents.
    pub posts: PostSettings,
    /// The rules of the crew.
    pub crew: CrewSetting,
    /// Prices and budgets.
    pub spending: SpendingSettings,
    /// The rate at which pictures may be taken; `None` for any number.
    pub screenshot_rate: Option<Rate>,
}

/// The effect of a write on the locks of its agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Auto {
    /// The write takes leases that keep other agents of the same work tree out.
    #[default]
    Hold,
    /// The write takes leases that are only announced to other agents.
    Announce,
    /// The write takes no leases.
    Off,
}

/// The settings for leases that agents take by writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AutoSetting {
    /// The effect of a write.
    pub mode: Auto,
    /// Whether a lease keeps agents of other work trees out, too.
    pub everywhere: bool,
    /// The time for which a lease lasts after the last write.
    pub ttl: Ttl,
    /// Whether subagents of one session keep each other out.
    pub subagents_differ: bool,
}

impl Default for AutoSetting {
    fn default() -> Self {
        Self { mode: Auto::default(), everywhere: false, ttl: Ttl::minutes(10), subagents_differ: false }
    }
}

/// The rules of a crew. Agent Protocol, 3.8.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CrewSetting {
    /// The longest time that a member may be silent.
    pub dead_after: Ttl,
    /// The longest delay with which an agent may report a change of its own that was already seen.
    pub detection_window: Ttl,
    /// The interval at which the daemon checks for members that have fallen silent; `None` for as soon as they have.
    pub heartbeat_interval: Option<Ttl>,
    /// Whether the timeline shows signs of life.
    pub beats: bool,
    /// The agent that leads whenever it is at work.
    pub lead: Option<AgentId>,
    /// Whether an assignment waits for those that it depends on.
    pub honour_dependencies: bool,
    /// Whether a claim for an assignment has to be for one of its files.
    pub strict_scope: bool,
    /// Whether a caller that asks for the crew also gets agents of other doors and delegated tasks.
    pub show_foreign: bool,
}

impl Default for CrewSetting {
    fn default() -> Self {
        Self {
            dead_after: Ttl::minutes(1),
            detection_window: Ttl::seconds_clamped(5),
            heartbeat_interval: None,
            beats: true,
            lead: None,
            honour_dependencies: false,
            strict_scope: false,
            show_foreign: false,
        }
    }
}

/// A worker of the configuration, with the members that rules need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerSetting {
    /// The way in which it gets its tasks.
    pub kind: WorkerKind,
    /// The network that its profile asks for.
    pub network: Network,
    /// Its access to the repository; a worker in a copy has none.
    pub git: Git,
    /// The secrets it would be given.
    pub secrets: Vec<SecretUse>,
    /// The confinement it would get.
    pub tier: Tier,
    /// Whether each of its tasks works in a copy of the directory.
    pub copy: bool,
    /// Whether it takes tasks of other hosts even without a copy.
    pub other_hosts: bool,
    /// Whether its runs are sessions, so that people can send words to a running agent.
    pub speaks: bool,
    /// The resources that each of its runs has for itself.
    pub needs: Vec<Resource>,
    /// The time for which a task waits for these resources before it fails.
    pub needs_wait: Ttl,
    /// The retries of its failed runs.
    pub retries: Retries,
    /// The reason why it cannot be used, if its entry is wrong: delegations to it are refused with this sentence.
    pub broken: Option<Box<str>>,
}

impl Settings {
    /// Returns the settings of an empty configuration.
    pub fn new(approval_target: AgentId) -> Self {
        Self {
            expected_versions: Vec::new(),
            approval_target,
            workers: BTreeMap::new(),
            lease_min: Ttl::minutes(15),
            away_keep: Ttl::minutes(24 * 60),
            mail_keep: Ttl::minutes(24 * 60),
            approval_wait_max: Ttl::minutes(24 * 60),
            tasks_per_agent: 1_000,
            pools: BTreeMap::new(),
            labels: BTreeSet::new(),
            places: 1,
            high_priority: BTreeSet::new(),
            deny_across_doors: false,
            contracts_by_branch: false,
            auto: AutoSetting::default(),
            counted: BTreeMap::new(),
            screenshots: false,
            hooks: false,
            notices: Vec::new(),
            push: PushSetting::default(),
            posts: PostSettings::default(),
            crew: CrewSetting::default(),
            spending: SpendingSettings::default(),
            screenshot_rate: None,
        }
    }

    /// Completes facts with the worker's settings.
    ///
    /// # Errors
    /// [`Refusal::WorkerBroken`] if its entry is wrong.
    pub(super) fn facts_of(&self, order: &Delegate, facts: Facts) -> Result<Facts, Refusal> {
        let worker = &order.worker;
        let setting = self.workers.get(worker);
        if let Some(why) = setting.and_then(|it| it.broken.clone()) {
            return Err(Refusal::WorkerBroken { worker: worker.clone(), why });
        }
        // A command that runs instead of the worker's own gets neither.
        let own = setting.filter(|_| order.command().is_none());
        Ok(Facts {
            worker_kind: Some(self.kind_of(worker)),
            network: own.map(|it| it.network.clone()).unwrap_or_default(),
            // Such a command has the worker's jail, however.
            git: setting.map_or(Git::Read, |it| it.git),
            secrets: own.map(|it| it.secrets.clone()).unwrap_or_default(),
            tier: setting.map(|it| it.tier),
            ..facts
        })
    }

    /// Returns the way in which a worker with this name gets its tasks.
    pub fn kind_of(&self, worker: &AgentId) -> WorkerKind {
        self.workers.get(worker).map_or(WorkerKind::Polling, |setting| setting.kind)
    }
}
