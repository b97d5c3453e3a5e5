//! Names without a proof, where several hosts share the state.
//!
//! An agent that only says its name is an agent of its host. The first host at which such a name does something has it for as long as its
//! daemon is there; an agent that says the same name at another host is called `name@HOST` there, by the first digits of that host's id, and
//! is another agent: it frees nothing of the first agent's, ends none of its tasks and reads none of its mail. A token or a key of its own
//! makes a name good on all hosts, and a worker that a host's configuration names is that worker there. The names of a host that has left,
//! was taken for dead or was removed are free: their agents may come back through another host.

use std::collections::{BTreeMap, BTreeSet};

use super::post::owned_slug;
use super::session::SeenAt;
use super::{Change, Command, Outbox, Principal, Refusal, State};
use provost_base::limits::ID_LEN_MAX;
use provost_base::{AgentId, DaemonId, HostId, Slug, Timestamp};

/// Names of pages, which are a host's own and do no work.
const PAGES: [&str; 2] = ["web-page", "dashboard"];
/// The character before the digits of a host.
const AT: char = '@';
/// The number of digits of a host's id in a name.
const DIGITS: usize = 8;

/// The names of agents, with the host of each.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    here: HostId,
    /// The daemons that take part, by their hosts.
    there: BTreeMap<HostId, DaemonId>,
    /// The hosts of the names that are in use: each spelling by the name that the spellings share.
    at: BTreeMap<Slug, BTreeMap<AgentId, HostId>>,
    workers: BTreeSet<AgentId>,
}

impl HostNames {
    /// Makes the table from the state.
    pub fn of(state: &State) -> Self {
        let mut names = Self { here: state.here.host, ..Self::default() };
        if names.here.is_alone() {
            return names;
        }
        names.there = state.abilities.iter().map(|it| (it.daemon.host, it.daemon)).collect();
        names.workers = state.settings.workers.keys().cloned().collect();
        for (agent, seen) in state.agents.places() {
            names.put(agent, seen.daemon.host);
        }
        names
    }

    /// Follows a change to agents and hosts. Returns whether a name may belong to another host from now on, or be free.
    pub fn follow(&mut self, change: &Change) -> bool {
        if self.here.is_alone() {
            return false;
        }
        match change {
            Change::At(agent, Some(SeenAt { daemon, .. })) => {
                self.put(agent, daemon.host) != Some(daemon.host)
            }
            Change::At(agent, None) | Change::DropAgent(agent) => self.take_out(agent),
            Change::PutAbility(it) => self.there.insert(it.daemon.host, it.daemon).is_none(),
            Change::DropAbility(host) => self.there.remove(host).is_some(),
            Change::HostDown(daemon, _) => {
                let has_gone = |it: &DaemonId| it.incarnation <= daemon.incarnation;
                self.there.get(&daemon.host).is_some_and(has_gone)
                    && self.there.remove(&daemon.host).is_some()
            }
            _ => false,
        }
    }

    fn put(&mut self, agent: &AgentId, host: HostId) -> Option<HostId> {
        self.at.entry(owned_slug(agent.as_str())).or_default().insert(agent.clone(), host)
    }

    fn take_out(&mut self, agent: &AgentId) -> bool {
        let slug = owned_slug(agent.as_str());
        let Some(spellings) = self.at.get_mut(&slug) else { return false };
        let was_there = spellings.remove(agent).is_some();
        if spellings.is_empty() {
            self.at.remove(&slug);
        }
        was_there
    }

    /// Returns the host at which exactly this name is in use.
    fn host_of(&self, agent: &AgentId) -> Option<HostId> {
        self.at.get(&owned_slug(agent.as_str()))?.get(agent).copied()
    }

    /// Checks whether an agent of another host has this name or another spelling of it, for a caller without a proof. A name that ends in
    /// the digits of a host is that host's alone: such names are made there, and their spellings share an inbox.
    pub fn is_elsewhere(&self, agent: &AgentId) -> bool {
        if self.here.is_alone() || self.is_common(agent) {
            return false;
        }
        let here = self.here.short();
        match host_in(agent) {
            Some(host) => host != here,
            None if self.host_of(agent) == Some(self.here) => false,
            None if self.there.keys().any(|it| *it != self.here && ends_like(agent, &it.short())) => true,
            None => {
                let spellings = self.at.get(&owned_slug(agent.as_str())).into_iter().flatten();
                spellings.into_iter().any(|(_, it)| *it != self.here && self.there.contains_key(it))
            }
        }
    }

    /// Returns the name by which this host calls an agent without a proof that says this name; `None` if the longer name would be too long.
    pub fn called_here(&self, agent: AgentId) -> Option<AgentId> {
        let is_at_home = self.host_of(&agent) == Some(self.here);
        if self.here.is_alone() || self.is_common(&agent) || host_in(&agent).is_some() || is_at_home {
            return Some(agent);
        }
        let longer = AgentId::parse(&format!("{agent}{AT}{}", self.here.short())).ok();
        // An agent keeps the longer name once it has it.
        let was_called = |it: &AgentId| self.host_of(it) == Some(self.here);
        if self.is_elsewhere(&agent) || longer.as_ref().is_some_and(was_called) {
            return longer;
        }
        Some(agent)
    }

    fn is_common(&self, agent: &AgentId) -> bool {
        PAGES.contains(&agent.as_str()) || self.workers.contains(agent)
    }
}

/// Returns the next step of an agent whose name is that of an agent of another host.
pub(super) fn next_name(agent: &AgentId) -> String {
    let room = ID_LEN_MAX - DIGITS - AT.len_utf8();
    if agent.as_str().len() > room {
        return format!(
            "take another name, of {room} bytes at the most, so that this host can make a longer one of it"
        );
    }
    "ask again, or take another name".to_owned()
}

/// Checks whether a name shares its inbox with a name that a host with these digits makes.
fn ends_like(agent: &AgentId, digits: &str) -> bool {
    owned_slug(agent.as_str()).as_str().strip_suffix(digits).is_some_and(|it| it.ends_with('-'))
}

/// Returns the digits of a host at the end of a name.
fn host_in(agent: &AgentId) -> Option<&str> {
    let (_, host) = agent.as_str().rsplit_once(AT)?;
    let is_host = host.len() == DIGITS && host.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    is_host.then_some(host)
}

impl State {
    /// Returns the command of a caller that may use its name. The door has checked the name already; only the core knows what other hosts
    /// have done since then. A caller that has the longer name, and asks for the outcome under the shorter name, means itself.
    ///
    /// # Errors
    /// [`Refusal::OtherSpelling`]; [`Refusal::NameElsewhere`] if the command would act for another host's agent.
    pub(super) fn under_own_name(&self, who: &Principal, mut command: Command) -> Result<Command, Refusal> {
        if !who.has_free_name() {
            return Ok(command);
        }
        let agent = who.agent().clone();
        if let Some(used) = self.agents.other_spelling(&agent) {
            let used = used.clone();
            return Err(Refusal::OtherSpelling { agent, used });
        }
        if self.is_name_elsewhere(&agent) {
            return Err(Refusal::NameElsewhere { agent });
        }
        let own = host_in(&agent).filter(|it| !self.here.is_alone() && *it == self.here.host.short());
        if let (Command::Delegate(order), Some(host)) = (&mut command, own)
            && order.return_to.as_ref().is_some_and(|it| agent.as_str() == format!("{it}{AT}{host}"))
        {
            order.return_to = Some(agent);
        }
        Ok(command)
    }

    /// Checks whether an agent of another host has a name, and the daemon of that host takes part.
    fn is_name_elsewhere(&self, agent: &AgentId) -> bool {
        let is_common = PAGES.contains(&agent.as_str()) || self.settings.workers.contains_key(agent);
        if self.here.is_alone() || is_common {
            return false;
        }
        let at = self.agents.at(agent).map(|it| it.daemon.host);
        at.is_some_and(|it| it != self.here.host && self.abilities.of(it).is_some())
    }

    /// Notes that an agent which has done something under a free name is an agent of this host.
    pub(super) fn note_home(&self, now: Timestamp, agent: &AgentId, is_free: bool, out: &mut Outbox) {
        if is_free && out.wrote() {
            self.agents.is_at_home(now, agent, out);
        }
    }

    /// Checks whether an agent has something for which its name is needed: tasks, locks or mail.
    pub(super) fn holds_something(&self, agent: &AgentId) -> bool {
        self.tasks.asked_by(agent) > 0 || self.locks.count_of(agent) > 0 || self.mail.waiting(agent) > 0
    }
}
