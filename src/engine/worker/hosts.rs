//! The other hosts of a shared store: which of them are dead, and whether this one still takes part.
//!
//! Each daemon judges by itself, in its turn, and no host leads. A host is dead when its sign of life has not changed for `HOST_TTL_MS`, by
//! the store's clock, while this daemon looked without a gap. After a gap, the time counts from the next look: while the store was away for
//! all, no host could give a sign of life, and the first daemon that reaches it again must not bury the others.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Worker;
use provost_base::limits::HOST_TTL_MS;
use provost_base::{DaemonId, Timestamp};
use provost_domain::Gone;
use provost_store::{HostBeat, HostState, StoreError};

/// The longest time between two looks that does not count as a gap, in milliseconds.
const GAP_MS_MAX: u64 = HOST_TTL_MS / 2;

/// The sentence for callers where the server has no connection left.
pub(super) const NO_CONNECTION: &str =
    "the shared store has no connection left for this host, which goes on once it has";

/// The observations of this daemon about the others.
#[derive(Debug, Default)]
pub(super) struct HostWatch {
    /// When it last looked; `None` before the first time.
    looked: Option<Timestamp>,
    /// The last sign of life of each host, and since when it is unchanged.
    seen: BTreeMap<DaemonId, (Timestamp, Timestamp)>,
}

impl HostWatch {
    /// Looks at the hosts, and returns the daemons that have gone.
    fn look(&mut self, now: Timestamp, here: DaemonId, hosts: &[HostBeat]) -> Vec<(DaemonId, Gone)> {
        let was_away = self.looked.is_none_or(|at| now.since_ms(at) > GAP_MS_MAX);
        self.looked = Some(now);
        let takes_part = |it: &&HostBeat| matches!(it.state, HostState::Live | HostState::Draining);
        let mut seen = BTreeMap::new();
        for it in hosts.iter().filter(takes_part).filter(|it| it.daemon != here) {
            let since = match self.seen.get(&it.daemon) {
                Some((beat, since)) if *beat == it.beat && !was_away => *since,
                _ => now,
            };
            seen.insert(it.daemon, (it.beat, since));
        }
        self.seen = seen;
        let is_dead = |since: Timestamp| now.since_ms(since) >= HOST_TTL_MS;
        let dead =
            self.seen.iter().filter(|(_, (_, since))| is_dead(*since)).map(|(it, _)| (*it, Gone::Silent));
        let removed = hosts.iter().filter(|it| it.state == HostState::Removing && it.daemon != here);
        dead.chain(removed.map(|it| (it.daemon, Gone::Removed))).collect()
    }
}

impl Worker {
    /// Looks at the hosts as the store has them in this turn: this host may no longer take part, and dead ones are buried.
    ///
    /// # Errors
    /// If the store does not answer.
    pub(super) fn look_at_hosts(&mut self, hosts: &[HostBeat]) -> Result<(), StoreError> {
        let here = self.others.daemon();
        let mine = hosts.iter().find(|it| it.daemon.host == here.host).map(|it| it.state);
        let gone = match mine {
            Some(HostState::Down) => Some(Gone::Silent),
            Some(HostState::Removing | HostState::Removed) => Some(Gone::Removed),
            _ => None,
        };
        if let Some(gone) = gone {
            self.takes_part_no_more(gone);
            return Ok(());
        }
        let drains = mine == Some(HostState::Draining);
        self.core.drains(drains);
        if drains && self.store.owed_by(here)?.is_empty() {
            // Its last run is over: it leaves, and learns so with its next turn.
            self.core.bury(self.now, (here, Gone::Removed), &[], &mut self.out);
        }
        if self.core.state().only_works() {
            // Only full hosts decide which hosts have gone.
            return Ok(());
        }
        for (daemon, gone) in self.others.watch.look(self.now, here, hosts) {
            tracing::warn!(host = %daemon, ?gone, "a host takes part no more; what it held is freed");
            let owed = self.store.owed_by(daemon)?;
            self.core.bury(self.now, (daemon, gone), &owed, &mut self.out);
        }
        Ok(())
    }

    /// Lets writes go on, since the store answers again.
    pub(super) fn answers_again(&mut self) {
        tracing::warn!("the store answers again; writes go on");
        self.store_answers();
        self.broken = None;
        self.repeats.open(!self.store.waits_for_disk());
        self.repeats_due = Some(Instant::now());
        self.tell_trouble(None);
        self.catch_up();
    }

    /// Tells why the store still does not answer. A lost connection may not come back for a reason of its own, which callers hear then.
    pub(super) fn is_still_away(&mut self, err: &StoreError) {
        self.tell_trouble(Some(err));
        self.forgets_what_is_lost(err);
        let says_so = self.broken.as_ref().is_some_and(|why| why.contains(NO_CONNECTION));
        if self.others.are_there() && says_so != err.is_of_connections() {
            self.broken = Some(self.report("the store is still away", err));
        }
    }
}
