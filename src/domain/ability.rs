//! The abilities of a repository's hosts: the workers that each of them starts, its labels, its pools and its
//! places, as its daemon has published them in the shared log.
//!
//! A daemon publishes at its start, when its configuration is read again, and when it is drained; it withdraws the
//! publication when it stops. The published abilities say which hosts may take a task. Whether a host can really do
//! it, its own daemon finds out when it takes the task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Change, Core, Delegate, EventKind, Git, Network, Outbox, PoolSetting, SecretUse, State, Switch, Tier,
    WorkerKind, WorkerSetting,
};
use provost_base::{AgentId, DaemonId, HostId, HostRole, Json, Timestamp};

/// The kind of the event that announces the abilities of a host from now on.
pub const HOST_ABLE: &str = "host.able";

/// The abilities of a host, as its daemon has published them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostAbility {
    /// The daemon that has published it.
    pub daemon: DaemonId,
    /// The labels of the host in its configuration, such as `gpu`.
    pub labels: BTreeSet<Box<str>>,
    /// The workers that it can start.
    pub workers: BTreeMap<AgentId, AbleWorker>,
    /// The pools of its configuration.
    pub pools: BTreeMap<Box<str>, PoolSetting>,
    /// The number of tasks that it runs at once.
    pub places: u32,
    /// Whether it takes no new tasks.
    pub drains: bool,
    /// The role with which the host has joined.
    #[serde(default, skip_serializing_if = "HostRole::is_full")]
    pub role: HostRole,
}

/// A worker of a host, with the properties that the rules of other hosts need.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AbleWorker {
    /// The confinement that the worker gets; `None` if it is not known.
    pub tier: Option<Tier>,
    /// The network that it asks for.
    pub network: Network,
    /// Its access to the repository.
    pub git: Git,
    /// The secrets that it would be given.
    pub secrets: Vec<SecretUse>,
    /// Whether the host runs this worker for tasks from other hosts.
    pub takes: bool,
    /// Whether its runs are sessions, so that people can send words to a running agent.
    #[serde(default)]
    pub speaks: bool,
}

impl AbleWorker {
    pub(super) fn of(setting: &WorkerSetting) -> Self {
        Self {
            tier: Some(setting.tier),
            network: setting.network.clone(),
            git: setting.git,
            secrets: setting.secrets.clone(),
            takes: setting.copy || setting.other_hosts,
            speaks: setting.speaks,
        }
    }

    /// Returns the first property in which the other worker differs from this one, for which a permission was
    /// given; `None` if it reaches no further.
    pub(super) fn differs_in(&self, other: &Self) -> Option<&'static str> {
        let is_other_tier = self.tier.is_some() && self.tier != other.tier;
        match () {
            () if self.network != other.network => Some("network"),
            () if self.git != other.git => Some("access to the repository"),
            () if self.secrets != other.secrets => Some("secrets"),
            () if is_other_tier => Some("tier"),
            () => None,
        }
    }
}

/// The abilities of all hosts that take part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Abilities(BTreeMap<HostId, Arc<HostAbility>>);

impl Abilities {
    /// Returns the abilities of a host.
    pub fn of(&self, host: HostId) -> Option<&Arc<HostAbility>> {
        self.0.get(&host)
    }

    /// Returns all abilities, by the ids of their hosts.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<HostAbility>> {
        self.0.values()
    }

    pub(super) fn put(&mut self, it: Arc<HostAbility>) {
        self.0.insert(it.daemon.host, it);
    }

    pub(super) fn remove(&mut self, host: HostId) {
        self.0.remove(&host);
    }

    /// Removes the abilities of a daemon that is gone, and of earlier daemons of its host.
    pub(super) fn end(&mut self, daemon: DaemonId) {
        if self.of(daemon.host).is_some_and(|it| it.daemon.incarnation <= daemon.incarnation) {
            self.remove(daemon.host);
        }
    }
}

impl Core {
    /// Publishes the abilities of this host to the other daemons, unless they know them already.
    pub fn publish_ability(&mut self, now: Timestamp, out: &mut Outbox) {
        let ability = self.state.ability_here();
        if self.state.abilities.of(ability.daemon.host).is_some_and(|it| **it == ability) {
            return;
        }
        self.by_itself(now, out, |_, out| {
            out.append_event(EventKind::Recorded {
                what: HOST_ABLE.into(),
                subject: ability.daemon.to_string().into(),
                details: Json::from_value(&serde_json::json!({
                    "workers": ability.workers.keys().collect::<Vec<_>>(), "labels": ability.labels,
                    "places": ability.places, "drains": ability.drains,
                })),
            });
            out.put(Change::PutAbility(Arc::new(ability)));
        });
    }
}

impl State {
    /// Returns the abilities of this host, by its configuration.
    fn ability_here(&self) -> HostAbility {
        let is_started = |it: &&WorkerSetting| it.kind == WorkerKind::Cli && it.broken.is_none();
        let workers = self.settings.workers.iter().filter(|(_, it)| is_started(it));
        HostAbility {
            daemon: self.here,
            labels: self.settings.labels.clone(),
            workers: workers.map(|(id, it)| (id.clone(), AbleWorker::of(it))).collect(),
            pools: self.settings.pools.clone(),
            places: self.settings.places,
            drains: self.drains,
            role: if self.only_works() { HostRole::Worker } else { HostRole::Full },
        }
    }

    /// Returns the other hosts whose daemons have published their abilities, without those that are drained.
    pub(super) fn others(&self) -> impl Iterator<Item = &Arc<HostAbility>> {
        self.abilities.iter().filter(|it| it.daemon.host != self.here.host && !it.drains)
    }

    /// Checks whether this host has the worker and the label that a task asks for.
    pub(super) fn fits_here(&self, order: &Delegate) -> bool {
        let setting = self.settings.workers.get(&order.worker);
        let label = order.label();
        setting.is_some_and(|it| it.kind == WorkerKind::Cli && it.broken.is_none())
            && label.is_none_or(|it| self.settings.labels.contains(it))
    }

    /// Returns how many more tasks could begin on a host now, after those that it has taken.
    pub(super) fn free_at(&self, ability: &HostAbility) -> u32 {
        ability.places.saturating_sub(self.tasks.under_way_at(ability.daemon.host))
    }

    /// Checks whether this host could begin one more task now.
    pub(super) fn has_room_here(&self) -> bool {
        self.abilities.of(self.here.host).is_none_or(|it| self.free_at(it) > 0)
    }

    /// Checks whether a worker is switched on here, so that it may begin tasks.
    pub(super) fn is_on(&self, worker: &AgentId) -> bool {
        self.switches.of(worker) == Switch::On
    }
}

impl HostAbility {
    /// Checks whether the host has the worker and the label that a task asks for, and takes tasks of other hosts for it.
    pub(super) fn takes(&self, order: &Delegate) -> bool {
        self.has(order) && self.workers.get(&order.worker).is_some_and(|it| it.takes)
    }

    /// Checks whether the host has the worker and the label.
    pub(super) fn has(&self, order: &Delegate) -> bool {
        self.workers.contains_key(&order.worker) && order.label().is_none_or(|it| self.labels.contains(it))
    }
}
