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
use provost_domain::{Gone, Users};
use provost_store::{HostBeat, HostState, StoreError};

/// The longest time between two looks that does not count as a gap, in milliseconds.
const GAP_MS_MAX: u64 = HOST_TTL_MS / 2;

/// The sentence for callers where the server has no connection left.
const NO_CONNECTION: &str =
    "the shared store has no connection left for this host, which goes on once it has";

/// The sentence for callers where the server, or what it has, stands in the way.
const REFUSED: &str = "the shared store could not be written";

/// The sentence for callers where the server does not answer.
pub(super) const SILENT: &str = "the shared store does not answer";

/// Returns the sentence for callers about a shared store that takes no writes.
pub(super) fn said_of(err: &StoreError) -> &'static str {
    match err {
        StoreError::Full(_) => "no space is left for the shared store",
        StoreError::WentBack { .. } => {
            "the shared store has lost what was acknowledged, so nothing is written any more"
        }
        StoreError::NewerFormat { .. } | StoreError::UnknownChange { .. } => {
            "the shared store was written by a newer Provost, which this one cannot follow"
        }
        StoreError::BrokenLog { .. } => {
            "the shared log has an entry that its host does not prove, so nothing is written any more"
        }
        err if err.is_of_connections() => NO_CONNECTION,
        err if err.is_read_only() => "the shared store takes no writes: it is a standby, or read-only",
        StoreError::Away(_) => SILENT,
        _ => REFUSED,
    }
}

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

/// Returns a host whose removal counts only if its own user or an admin has asked for it.
fn as_asked_for(users: &Users, it: &HostBeat) -> HostBeat {
    let may = |by| users.may_take_out(by, it.daemon.host);
    let state = if it.asked_by.is_none_or(may) { it.state } else { HostState::Live };
    HostBeat { state, ..it.clone() }
}

impl Worker {
    /// Looks at the hosts as the store has them in this turn: dead ones are buried. Returns `false` if nothing may be decided in this
    /// turn: this host takes part no more, or its own removal has to be tried once more.
    ///
    /// # Errors
    /// If the store does not answer.
    pub(super) fn look_at_hosts(&mut self, hosts: &[HostBeat]) -> Result<bool, StoreError> {
        let here = self.others.daemon();
        let hosts: Vec<HostBeat> =
            hosts.iter().map(|it| as_asked_for(&self.core.state().users, it)).collect();
        let mine = hosts.iter().find(|it| it.daemon.host == here.host).map(|it| it.state);
        let gone = match mine {
            Some(HostState::Down) => Some(Gone::Silent),
            Some(HostState::Removing | HostState::Removed) => Some(Gone::Removed),
            _ => None,
        };
        if let Some(gone) = gone {
            self.takes_part_no_more(gone);
            return Ok(false);
        }
        let drains = mine == Some(HostState::Draining);
        self.core.drains(drains);
        let removed = hosts.iter().filter(|it| it.state == HostState::Removed);
        self.core.knows_removed(removed.map(|it| it.daemon.host).collect());
        if drains && self.store.owed_by(here)?.is_empty() {
            self.leaves_drained(here);
            return Ok(false);
        }
        if self.core.state().only_works() {
            // Only full hosts decide which hosts have gone.
            return Ok(true);
        }
        for (daemon, gone) in self.others.watch.look(self.now, here, &hosts) {
            tracing::warn!(host = %daemon, ?gone, "a host takes part no more; what it held is freed");
            let owed = self.store.owed_by(daemon)?;
            self.core.bury(self.now, (daemon, gone), &owed, &mut self.out);
        }
        Ok(true)
    }

    /// Takes this host out, whose last run is over, in a commit of its own: no host would end what a command behind its removal had begun.
    fn leaves_drained(&mut self, here: DaemonId) {
        self.core.bury(self.now, (here, Gone::Removed), &[], &mut self.out);
        self.commit(&mut Vec::new());
        if self.broken.is_none() && !self.others.is_ahead() {
            self.takes_part_no_more(Gone::Removed);
        }
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

    /// Tells why the store still takes no writes. The reason may be another one by now, which callers hear then.
    pub(super) fn is_still_away(&mut self, err: &StoreError) {
        self.tell_trouble(Some(err));
        self.forgets_what_is_lost(err);
        let says_so = self.broken.as_ref().is_some_and(|why| why.starts_with(said_of(err)));
        if self.others.are_there() && !says_so {
            self.broken = Some(self.report("the store is still away", err));
        }
    }
}
