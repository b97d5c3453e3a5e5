//! Finds the parties that hold up a wait: holders, parties that have waited longer, and circles of both.
//!
//! A party is an agent, or a run of a jailed worker: several runs of one worker hold and wait for themselves. For a counted
//! kind, a party blocks another as long as too few units are left, so that a circle may need several of them to hold on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Lock, Locks};
use crate::Share;
use crate::command::Rival;
use provost_base::{AgentId, DaemonId, Fence, SymbolPath, TaskId, Ticket, Timestamp, encloses};

/// A party that holds or waits: an agent, or one run of a jailed worker.
pub(super) type Party = (AgentId, Option<TaskId>);

/// Units of a counted kind of resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Units {
    /// The kind, without its `@`.
    pub kind: Box<str>,
    /// The number of units that are wanted.
    pub wanted: u32,
    /// The number of units that exist.
    pub of: u32,
}

/// An agent that waits for a lock. In memory only: the wait ends with the connection that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// The number of its place; the lowest number has waited longest.
    pub ticket: Ticket,
    /// The symbol that it waits for.
    pub at: SymbolPath,
    /// The symbol, as the waiter wrote it.
    pub asked: Box<str>,
    /// Other names of the same symbol.
    pub names: Vec<Box<str>>,
    /// The agent that waits.
    pub agent: AgentId,
    /// When it began to wait.
    pub since: Timestamp,
    /// When the wait ends, unless the agent asks again before.
    pub until: Timestamp,
    /// The share to which the wait counts.
    pub share: Share,
    /// The run of a jailed worker for which it waits.
    pub run: Option<TaskId>,
    /// The units that it wants of a counted kind of resource.
    pub units: Option<Units>,
    /// The grant on the same symbol that the agent has already.
    pub own: Option<Fence>,
    /// Whether other grants of the same agent block it, too.
    pub apart: bool,
    /// The daemon at which it waits; the wait ends with that daemon.
    #[serde(default, skip_serializing_if = "DaemonId::is_alone")]
    pub daemon: DaemonId,
}

impl Waiter {
    pub(super) fn all_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.at.symbol()).chain(self.names.iter().map(|it| &**it))
    }

    pub(super) fn rival(&self) -> Rival {
        Rival {
            by: self.agent.clone(),
            asked: self.asked.clone(),
            until: self.until,
            since: self.since,
            fence: None,
            reason: None,
        }
    }
}

/// A request of a party, granted or not.
#[derive(Clone, Copy)]
pub(super) struct Want<'a> {
    /// The agent that asks.
    pub(super) who: &'a AgentId,
    /// The run for which it asks.
    pub(super) run: Option<&'a TaskId>,
    /// The symbol or resource.
    pub(super) at: &'a SymbolPath,
    /// Every name of the symbol in its file.
    pub(super) names: &'a [&'a str],
    /// The units, for a counted kind.
    pub(super) units: Option<&'a Units>,
    /// The grant on it that the agent has already.
    pub(super) own: Option<Fence>,
    /// Whether grants of the same agent for its other processes or runs block the request.
    pub(super) apart: bool,
    /// Its place in the queue.
    pub(super) ticket: Option<Ticket>,
}

impl Want<'_> {
    fn party(&self) -> Party {
        (self.who.clone(), self.run.cloned())
    }

    /// Checks whether a grant is another party's, from the view of this request.
    fn is_anothers(&self, lock: &Lock) -> bool {
        let is_of_other_run = || lock.run.is_some() && lock.run.as_ref() != self.run;
        self.own != Some(lock.fence) && (lock.holder != *self.who || self.apart || is_of_other_run())
    }

    /// Checks whether a waiter wants the same resource, or the same counted kind.
    fn shares_with(&self, waiter: &Waiter) -> bool {
        match (self.units, &waiter.units) {
            (Some(mine), Some(theirs)) => mine.kind == theirs.kind,
            _ => *self.at == waiter.at,
        }
    }
}

impl Lock {
    pub(super) fn party(&self) -> Party {
        (self.holder.clone(), self.run.clone())
    }
}

impl Waiter {
    pub(super) fn party(&self) -> Party {
        (self.agent.clone(), self.run.clone())
    }

    pub(super) fn want<'a>(&'a self, names: &'a [&'a str]) -> Want<'a> {
        Want {
            who: &self.agent,
            run: self.run.as_ref(),
            at: &self.at,
            names,
            units: self.units.as_ref(),
            own: self.own,
            apart: self.apart,
            ticket: Some(self.ticket),
        }
    }
}

impl Locks {
    /// Returns the grants of others that block a request; for a counted kind all of them, if too few units are left.
    pub(super) fn holders<'a>(&'a self, want: Want<'a>) -> Box<dyn Iterator<Item = &'a Arc<Lock>> + 'a> {
        if !want.at.is_resource() {
            return Box::new(self.in_the_way(want.who, want.at.file(), want.names));
        }
        let Some(units) = want.units else {
            let held = self.get(want.at).filter(|it| !it.lapsed);
            return Box::new(held.into_iter().filter(move |it| want.is_anothers(it)));
        };
        let others = move || self.live_of_kind(&units.kind).filter(move |it| want.is_anothers(it));
        let used: u64 = others().map(|it| u64::from(it.units.unwrap_or(1))).sum();
        let is_short = used + u64::from(units.wanted) > u64::from(units.of);
        Box::new(others().filter(move |_| is_short))
    }

    /// Returns the earlier waits of others for the same: for a symbol under any of its names, or for its container;
    /// for a resource, or for any units of its kind.
    pub(super) fn earlier<'a>(&'a self, want: Want<'a>) -> impl Iterator<Item = &'a Arc<Waiter>> + 'a {
        let waits = self.waiting_in(want.at.file());
        let waits = waits.take_while(move |it| want.ticket.is_none_or(|ticket| it.ticket < ticket));
        waits.filter(move |it| {
            // One run takes all of its needs in one step, so its places do not block each other.
            let is_of_this_run = want.run.is_some() && it.run.as_ref() == want.run;
            let is_other = it.agent != *want.who || (want.apart && !is_of_this_run);
            let has = |name: &str| want.names.iter().any(|it| *it == name || encloses(name, it));
            is_other && if want.at.is_resource() { want.shares_with(it) } else { it.all_names().any(has) }
        })
    }

    /// Returns the parties for which a party has to wait, except itself: another process of the same agent ends by itself.
    fn blockers(&self, want: Want<'_>) -> BTreeSet<Party> {
        let mut all: BTreeSet<Party> = self.holders(want).map(|it| it.party()).collect();
        all.extend(self.earlier(want).map(|it| it.party()));
        all.remove(&want.party());
        all
    }

    /// Returns the circle of agents that would wait for each other if this party began to wait, beginning with it.
    pub(super) fn circle(&self, want: Want<'_>) -> Option<Vec<AgentId>> {
        let start = want.party();
        let mut came_from: BTreeMap<Party, Party> = BTreeMap::new();
        let mut next: Vec<Party> = self.blockers(want).into_iter().collect();
        next.iter().for_each(|it| drop(came_from.insert(it.clone(), start.clone())));
        while let Some(party) = next.pop() {
            for waiter in self.waiters().filter(|it| it.agent == party.0 && it.run == party.1) {
                let names: Vec<&str> = waiter.all_names().collect();
                for blocker in self.blockers(waiter.want(&names)) {
                    if blocker == start {
                        let circle = path_back(&start, party, &came_from);
                        return self.never_ends(want).then_some(circle);
                    }
                    if !came_from.contains_key(&blocker) {
                        came_from.insert(blocker.clone(), party.clone());
                        next.push(blocker);
                    }
                }
            }
        }
        None
    }

    /// Checks whether a party in a circle would wait forever. Without counted kinds it would; with a counted kind,
    /// a party that does not wait may give enough units back.
    fn never_ends(&self, want: Want<'_>) -> bool {
        if want.units.is_none() && self.waiters().all(|it| it.units.is_none()) {
            return true;
        }
        let names: Vec<(Party, Vec<&str>, &Waiter)> =
            self.waiters().map(|it| (it.party(), it.all_names().collect(), &**it)).collect();
        let mut wants: Vec<(Party, Want<'_>)> =
            names.iter().map(|(party, names, waiter)| (party.clone(), waiter.want(names))).collect();
        wants.push((want.party(), want));
        let mut stuck: BTreeSet<Party> = wants.iter().map(|(party, _)| party.clone()).collect();
        loop {
            // A party is stuck as long as other stuck parties block one of its requests.
            let still: BTreeSet<Party> = wants
                .iter()
                .filter(|(party, want)| stuck.contains(party) && self.is_kept_by(*want, &stuck))
                .map(|(party, _)| party.clone())
                .collect();
            if still.len() == stuck.len() {
                return stuck.contains(&want.party());
            }
            stuck = still;
        }
    }

    /// Checks whether these parties, which never give anything back, are enough to block a request.
    fn is_kept_by(&self, want: Want<'_>, stuck: &BTreeSet<Party>) -> bool {
        let me = want.party();
        let is_stuck = |party: &Party| *party != me && stuck.contains(party);
        if self.earlier(want).any(|it| is_stuck(&it.party())) {
            return true;
        }
        let held = self.holders(want).filter(|it| is_stuck(&it.party()));
        match want.units {
            None => held.count() > 0,
            Some(units) => {
                let used: u64 = held.map(|it| u64::from(it.units.unwrap_or(1))).sum();
                used + u64::from(units.wanted) > u64::from(units.of)
            }
        }
    }
}

fn path_back(start: &Party, from: Party, came_from: &BTreeMap<Party, Party>) -> Vec<AgentId> {
    let mut circle = vec![from];
    while let Some(before) = circle.last().and_then(|it| came_from.get(it)) {
        circle.push(before.clone());
        if before == start {
            break;
        }
    }
    circle.reverse();
    circle.into_iter().map(|(agent, _)| agent).collect()
}
