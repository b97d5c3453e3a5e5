//! Registered agents.
//!
//! ```text
//!            Register                   30 s of silence
//!  [unknown] --------> [known, alive] -----------------> [known, away]
//!                          ^                                  |
//!                          +------- any sign of life ---------+
//! ```
//! An absent agent keeps its mail, its tasks and its accepted version. DevIt 1.5, REGISTER and HEARTBEAT.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{AgentNamed, NameAgent, Register, Registered};
use super::tally::Tally;
use super::{Call, Change, Door, EventKind, Outbox, Principal, Refusal, Settings, Share, State};
use provost_base::limits::{AGENTS_MAX, AGENTS_OF_ONE_MAX, CAPS_MAX, ID_LEN_MAX};
use provost_base::small;
use provost_base::{AgentId, DaemonId, Timestamp, Ttl};

/// The time after its last sign of life for which an agent counts as alive. DevIt: 30 s, checked every 10 s.
pub const ALIVE_FOR: Ttl = Ttl::seconds_clamped(30);

/// The age of the last published sign of life at which the next one is published to the other hosts: much less than
/// [`ALIVE_FOR`].
pub(super) const SEEN_TOLD: Ttl = Ttl::seconds_clamped(10);

/// The daemon and time of an agent's sign of life, as all hosts know them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeenAt {
    /// The daemon that the agent came by.
    pub daemon: DaemonId,
    /// The time of the sign of life; later ones are published after some seconds.
    pub at: Timestamp,
}

/// The time for which the daemon remembers where an unregistered agent was seen.
const STRANGERS_KEPT: Ttl = Ttl::minutes(60);

/// The record of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RegisteredAgent {
    /// The name of the agent.
    pub id: AgentId,
    /// Capabilities that the agent announced; recorded, not trusted.
    pub caps: Vec<Box<str>>,
    /// The version that the agent announced, and that was accepted if one was expected.
    pub version: Option<Box<str>>,
    /// The process id as announced.
    pub pid: Option<u64>,
    /// The process id from the kernel.
    pub peer_pid: Option<u32>,
    /// When it last registered.
    pub registered_at: Timestamp,
    /// Whether it has registered, and collects its mail.
    #[serde(default)]
    pub registered: bool,
    /// The name that people use for it, if it has one.
    #[serde(default)]
    pub nick: Option<Nick>,
    /// The share to which the agent counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl RegisteredAgent {
    /// Checks whether the agent collects mail. A record from before that distinction had no other reason to exist,
    /// unless it has a name.
    pub fn has_registered(&self) -> bool {
        self.registered || self.nick.is_none()
    }
}

/// A name for people, with a number. wit `register`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Nick {
    /// The number, counted from 1 over all agents that have a name.
    pub number: u64,
    /// The name; several agents may have the same one.
    pub name: Box<str>,
}

/// All known agents. Signs of life are in memory only, and begin again with the daemon.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Agents {
    known: BTreeMap<AgentId, Arc<RegisteredAgent>>,
    /// The number of known agents of each share.
    names: Tally,
    seen: BTreeMap<AgentId, Timestamp>,
    /// The place where each agent was last seen, over all hosts; empty if a daemon writes alone.
    at: BTreeMap<AgentId, SeenAt>,
    doors: BTreeMap<AgentId, Vec<Door>>,
    /// The spelling in use of each name, by the form that spellings share which differ only by case.
    spellings: BTreeMap<Box<str>, AgentId>,
}

impl State {
    /// Registers an agent. Mail that would reach another process by now is given up, with the work in it.
    pub(super) fn register(
        &self,
        call: &Call<'_>,
        verb: &Register,
        out: &mut Outbox,
    ) -> Result<Registered, Refusal> {
        for task in self.mail.clear_recurring(call.now, call.who.agent(), &self.agents, out) {
            self.not_collected(call.now, &task, out);
        }
        self.agents.register(call.now, call.who, verb, &self.settings, out)
    }
}

impl Agents {
    fn register(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &Register,
        settings: &Settings,
        out: &mut Outbox,
    ) -> Result<Registered, Refusal> {
        check_version(settings, verb.version.as_deref())?;
        if verb.caps.len() > CAPS_MAX {
            return Err(Refusal::too_long("an agent", CAPS_MAX, "capabilities"));
        }
        self.room_for(now, who, out)?;
        let agent = RegisteredAgent {
            id: who.agent().clone(),
            caps: verb.caps.clone(),
            version: verb.version.clone(),
            pid: verb.pid,
            peer_pid: verb.peer_pid,
            registered_at: now,
            registered: true,
            nick: self.known.get(who.agent()).and_then(|it| it.nick.clone()),
            share: Some(who.share()),
        };
        out.append_event(EventKind::AgentRegistered {
            version: agent.version.clone(),
            caps: agent.caps.clone(),
            pid: agent.pid,
        });
        out.put(Change::PutAgent(Arc::new(agent)));
        self.is_seen(now, who.agent(), out);
        Ok(Registered { expected: settings.expected_versions.clone() })
    }

    /// Gives an agent a name, once for each session id. wit `register`.
    pub(super) fn name(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &NameAgent,
        out: &mut Outbox,
    ) -> Result<AgentNamed, Refusal> {
        let known = self.known.get(who.agent());
        if let Some(nick) = known.and_then(|it| it.nick.clone()) {
            return Err(Refusal::AlreadyNamed { nick });
        }
        if verb.name.len() > ID_LEN_MAX {
            return Err(Refusal::too_long("the name of an agent", ID_LEN_MAX, "bytes"));
        }
        self.room_for(now, who, out)?;
        let blank = RegisteredAgent {
            id: who.agent().clone(),
            caps: Vec::new(),
            version: None,
            pid: None,
            peer_pid: None,
            registered_at: now,
            registered: false,
            nick: None,
            share: Some(who.share()),
        };
        let mut agent = known.map_or(blank, |it| RegisteredAgent::clone(it));
        let number = out.next_named();
        agent.nick = Some(Nick { number, name: verb.name.clone() });
        out.append_event(EventKind::AgentNamed { number });
        out.put(Change::PutAgent(Arc::new(agent)));
        out.put(Change::Beat(who.agent().clone(), now));
        Ok(AgentNamed { number })
    }

    /// Makes room for one more agent, if necessary: among those of its share, if the share has reached its limit.
    fn room_for(&self, now: Timestamp, who: &Principal, out: &mut Outbox) -> Result<(), Refusal> {
        if self.known.contains_key(who.agent()) {
            return Ok(());
        }
        let share = who.share();
        let crowd = (self.names.of(&share) >= AGENTS_OF_ONE_MAX).then_some(&share);
        if crowd.is_none() && self.known.len() < AGENTS_MAX {
            return Ok(());
        }
        let full = || match crowd {
            Some(_) => Refusal::quota(
                "as many agents as the processes of one agent can be under all their names",
                AGENTS_OF_ONE_MAX,
                "speak under fewer names",
            ),
            None => Refusal::busy("too many agents"),
        };
        out.put(Change::DropAgent(self.longest_away(now, crowd).ok_or_else(full)?));
        Ok(())
    }

    /// Notes a sign of life, and announces an agent that had been away.
    pub(super) fn beat(&self, now: Timestamp, agent: &AgentId, out: &mut Outbox) {
        if self.known.contains_key(agent) && !self.is_alive(agent, now) {
            out.append_event(EventKind::AgentRevived);
        }
        self.is_seen(now, agent, out);
    }

    /// Notes a sign of life, and publishes it to the other hosts now and then.
    fn is_seen(&self, now: Timestamp, agent: &AgentId, out: &mut Outbox) {
        out.put(Change::Beat(agent.clone(), now));
        self.is_at_home(now, agent, out);
    }

    /// Tells the other hosts now and then that an agent is at this one.
    pub(super) fn is_at_home(&self, now: Timestamp, agent: &AgentId, out: &mut Outbox) {
        let (daemon, told) = (out.here(), self.at.get(agent));
        let is_told = told.is_some_and(|it| it.daemon == daemon && now < it.at.after(SEEN_TOLD));
        let has_room = told.is_some() || self.at.len() < 2 * AGENTS_MAX;
        if !daemon.is_alone() && !is_told && has_room {
            out.put(Change::At(agent.clone(), Some(SeenAt { daemon, at: now })));
        }
    }

    /// Forgets where unregistered agents were seen that have been away for long, since names can be invented freely.
    pub(super) fn expire_strangers(
        &self,
        now: Timestamp,
        holds_something: impl Fn(&AgentId) -> bool,
        out: &mut Outbox,
    ) {
        let is_old = |(id, it): &(&AgentId, &SeenAt)| {
            !self.known.contains_key(*id) && it.at.after(STRANGERS_KEPT) <= now && !holds_something(id)
        };
        self.at.iter().filter(is_old).for_each(|(id, _)| out.put(Change::At(id.clone(), None)));
    }

    /// Checks whether this agent may use the door at all, given the expected versions.
    pub(super) fn admit(&self, agent: &AgentId, settings: &Settings) -> Result<(), Refusal> {
        if settings.expected_versions.is_empty() {
            return Ok(());
        }
        let version = self.known.get(agent).and_then(|agent| agent.version.as_deref());
        check_version(settings, version)
            .map_err(|_| Refusal::RegisterFirst { expected: settings.expected_versions.join(" or ").into() })
    }

    /// Checks whether the agent gave a sign of life within [`ALIVE_FOR`].
    pub fn is_alive(&self, agent: &AgentId, now: Timestamp) -> bool {
        self.last_seen(agent).is_some_and(|seen| now < seen.after(ALIVE_FOR))
    }

    /// Returns when the agent last gave a sign of life since the daemon started, or (to within some seconds) at another host.
    pub fn last_seen(&self, agent: &AgentId) -> Option<Timestamp> {
        self.seen.get(agent).copied().max(self.at.get(agent).map(|it| it.at))
    }

    /// Returns where the agent gave its last sign of life; `None` if a daemon writes alone.
    pub fn at(&self, agent: &AgentId) -> Option<SeenAt> {
        self.at.get(agent).copied()
    }

    /// Returns all agents that were seen at any host, each with the place where it was seen last.
    pub(super) fn places(&self) -> impl Iterator<Item = (&AgentId, &SeenAt)> {
        self.at.iter()
    }

    /// Returns all agents that were seen at any host.
    pub(super) fn seen_anywhere(&self) -> impl Iterator<Item = &AgentId> {
        self.at.keys()
    }

    /// Returns the record of an agent.
    pub fn get(&self, agent: &AgentId) -> Option<&Arc<RegisteredAgent>> {
        self.known.get(agent)
    }

    /// Checks whether any agent gave a sign of life within this time.
    pub(super) fn any_seen_within(&self, now: Timestamp, time: Ttl) -> bool {
        let told = self.at.values().map(|it| &it.at);
        self.seen.values().chain(told).any(|at| now < at.after(time))
    }

    /// Returns all known agents, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RegisteredAgent>> {
        self.known.values()
    }

    /// Returns the agent that has been away for longest, of all or of one share.
    fn longest_away(&self, now: Timestamp, of: Option<&Share>) -> Option<AgentId> {
        self.known
            .values()
            .filter(|agent| of.is_none() || agent.share.as_ref() == of)
            .filter(|agent| !self.is_alive(&agent.id, now))
            .min_by_key(|agent| (self.last_seen(&agent.id), agent.registered_at))
            .map(|agent| agent.id.clone())
    }

    /// Returns the doors by which an agent has come since the daemon started.
    pub fn doors_of(&self, agent: &AgentId) -> &[Door] {
        self.doors.get(agent).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns all agents that have come by a door since the daemon started.
    pub(super) fn visitors(&self) -> impl Iterator<Item = &AgentId> {
        self.doors.keys()
    }

    /// Returns the spelling of a name that is in use, if it differs: `agent-b` for `Agent-B`.
    pub(super) fn other_spelling(&self, agent: &AgentId) -> Option<&AgentId> {
        self.spellings.get(&caseless(agent)).filter(|it| *it != agent)
    }

    /// Checks whether an agent has this name, in any case: a known one, or one that has come by a door since the daemon started.
    pub(super) fn is_used(&self, agent: &AgentId) -> bool {
        self.spellings.contains_key(&caseless(agent))
    }

    fn uses(&mut self, agent: &AgentId) {
        self.spellings.entry(caseless(agent)).or_insert_with(|| agent.clone());
    }

    pub(super) fn came_by(&mut self, agent: &AgentId, door: Door) {
        if !self.doors.contains_key(agent) && self.doors.len() >= 2 * AGENTS_MAX {
            // Names can be invented freely; those that the daemon need not remember make room.
            let (known, seen) = (&self.known, &self.seen);
            self.doors.retain(|id, _| known.contains_key(id) || seen.contains_key(id));
            if self.doors.len() >= 2 * AGENTS_MAX {
                self.doors.clear();
            }
            let (known, seen, doors) = (&self.known, &self.seen, &self.doors);
            let is_there =
                |id: &AgentId| known.contains_key(id) || seen.contains_key(id) || doors.contains_key(id);
            self.spellings.retain(|_, id| is_there(id));
        }
        self.uses(agent);
        let doors = self.doors.entry(agent.clone()).or_default();
        if !doors.contains(&door) {
            doors.push(door);
        }
    }

    /// Keeps from an earlier state which agents this daemon has seen, and by which doors.
    pub(super) fn keep_own(&mut self, old: Agents) {
        (self.seen, self.doors) = (old.seen, old.doors);
        for agent in self.seen.keys().chain(self.doors.keys()) {
            self.spellings.entry(caseless(agent)).or_insert_with(|| agent.clone());
        }
    }

    pub(super) fn put(&mut self, agent: Arc<RegisteredAgent>) {
        self.uses(&agent.id);
        self.names.add(agent.share.as_ref());
        if let Some(before) = self.known.insert(agent.id.clone(), agent) {
            self.names.take(before.share.as_ref());
        }
    }

    pub(super) fn forget(&mut self, agent: &AgentId) {
        if let Some(known) = self.known.remove(agent) {
            self.names.take(known.share.as_ref());
        }
        self.seen.remove(agent);
        self.at.remove(agent);
        self.doors.remove(agent);
        self.spellings.retain(|_, it| it != agent);
    }

    pub(super) fn is_at(&mut self, agent: &AgentId, at: Option<SeenAt>) {
        match at {
            Some(at) => {
                self.uses(agent);
                self.at.insert(agent.clone(), at);
            }
            None => drop(self.at.remove(agent)),
        }
    }

    pub(super) fn seen(&mut self, agent: &AgentId, at: Timestamp) {
        // Unregistered agents only matter while they are alive, so the table cannot grow with them.
        let full = |seen: &BTreeMap<_, _>| seen.len() >= 2 * AGENTS_MAX;
        if !self.seen.contains_key(agent) && full(&self.seen) {
            let known = &self.known;
            self.seen.retain(|id, seen| known.contains_key(id) || at < seen.after(ALIVE_FOR));
            if full(&self.seen) && !self.known.contains_key(agent) {
                return;
            }
        }
        self.seen.insert(agent.clone(), at);
    }
}

fn check_version(settings: &Settings, version: Option<&str>) -> Result<(), Refusal> {
    let expected = &settings.expected_versions;
    let joined = || expected.join(" or ").into();
    match version {
        _ if expected.is_empty() => Ok(()),
        Some(version) if expected.iter().any(|it| **it == *version) => Ok(()),
        Some(version) => Err(Refusal::VersionMismatch { expected: joined(), received: version.into() }),
        None => Err(Refusal::VersionMissing { expected: joined() }),
    }
}

/// Returns the form that all spellings of a name share which differ only by case.
fn caseless(agent: &AgentId) -> Box<str> {
    agent.as_str().chars().map(small).collect::<String>().into()
}
