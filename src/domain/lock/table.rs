//! All locks by file and name, and all waiters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{LAPSED_KEEP, Lock, Waiter};
use crate::Share;
use crate::tally::Tally;
use provost_base::{AgentId, Fence, RepoPath, SymbolPath, Ticket, Timestamp, held_of};

/// All locks, and the agents that wait for one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Locks {
    files: BTreeMap<RepoPath, FileLocks>,
    places: BTreeMap<Fence, SymbolPath>,
    by_holder: BTreeMap<AgentId, BTreeSet<SymbolPath>>,
    by_share: Tally,
    resources_by_share: Tally,
    due: BTreeSet<(Timestamp, SymbolPath)>,
    waiters: BTreeMap<Ticket, Arc<Waiter>>,
    waits_by_file: BTreeMap<RepoPath, BTreeSet<Ticket>>,
    waits_due: BTreeSet<(Timestamp, Ticket)>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct FileLocks {
    by_symbol: BTreeMap<Box<str>, Arc<Lock>>,
    /// Every name of a locked symbol, with the symbols locked under it.
    by_name: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

impl FileLocks {
    fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Lock>> {
        let symbols = self.by_name.get(name).into_iter().flatten();
        symbols.filter_map(|symbol| self.by_symbol.get(symbol))
    }

    /// Returns locks under names that lie inside `name`.
    fn inside<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<Lock>> {
        let first: Box<str> = if name.is_empty() { "".into() } else { format!("{name}.").into() };
        let beyond = first.clone();
        self.by_name
            .range(first..)
            .take_while(move |(it, _)| it.starts_with(&*beyond))
            .filter(|(it, _)| !it.is_empty())
            .flat_map(|(_, symbols)| symbols.iter().filter_map(|symbol| self.by_symbol.get(symbol)))
    }
}

fn deadline(lock: &Lock) -> Timestamp {
    if lock.lapsed { lock.expires_at.after(LAPSED_KEEP) } else { lock.expires_at }
}

impl Locks {
    pub(crate) fn put(&mut self, lock: Arc<Lock>) {
        self.remove(&lock.at);
        self.places.insert(lock.place, lock.at.clone());
        self.by_holder.entry(lock.holder.clone()).or_default().insert(lock.at.clone());
        self.by_share.add(lock.share.as_ref());
        if lock.at.is_resource() {
            self.resources_by_share.add(lock.share.as_ref());
        }
        self.due.insert((deadline(&lock), lock.at.clone()));
        let file = self.files.entry(lock.at.file().clone()).or_default();
        for name in lock.all_names() {
            file.by_name.entry(name.into()).or_default().insert(lock.at.symbol().into());
        }
        file.by_symbol.insert(lock.at.symbol().into(), lock);
    }

    pub(crate) fn remove(&mut self, at: &SymbolPath) {
        let Some(file) = self.files.get_mut(at.file()) else { return };
        let Some(lock) = file.by_symbol.remove(at.symbol()) else { return };
        for name in lock.all_names() {
            if let Some(symbols) = file.by_name.get_mut(name) {
                symbols.remove(at.symbol());
                if symbols.is_empty() {
                    file.by_name.remove(name);
                }
            }
        }
        if file.by_symbol.is_empty() {
            self.files.remove(at.file());
        }
        self.places.remove(&lock.place);
        self.due.remove(&(deadline(&lock), at.clone()));
        self.by_share.take(lock.share.as_ref());
        if lock.at.is_resource() {
            self.resources_by_share.take(lock.share.as_ref());
        }
        if let Some(held) = self.by_holder.get_mut(&lock.holder) {
            held.remove(at);
            if held.is_empty() {
                self.by_holder.remove(&lock.holder);
            }
        }
    }

    pub(crate) fn put_waiter(&mut self, waiter: Arc<Waiter>) {
        self.remove_waiter(waiter.ticket);
        self.waits_by_file.entry(waiter.at.file().clone()).or_default().insert(waiter.ticket);
        self.waits_due.insert((waiter.until, waiter.ticket));
        self.waiters.insert(waiter.ticket, waiter);
    }

    pub(crate) fn remove_waiter(&mut self, ticket: Ticket) {
        let Some(waiter) = self.waiters.remove(&ticket) else { return };
        self.waits_due.remove(&(waiter.until, ticket));
        if let Some(tickets) = self.waits_by_file.get_mut(waiter.at.file()) {
            tickets.remove(&ticket);
            if tickets.is_empty() {
                self.waits_by_file.remove(waiter.at.file());
            }
        }
    }

    /// Returns when the next lock or wait runs out.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let lock = self.due.first().map(|(at, _)| *at);
        lock.into_iter().chain(self.waits_due.first().map(|(at, _)| *at)).min()
    }

    /// Returns the lock on exactly this symbol, lapsed or not.
    pub fn get(&self, at: &SymbolPath) -> Option<&Arc<Lock>> {
        self.files.get(at.file())?.by_symbol.get(at.symbol())
    }

    /// Returns all locks, lapsed ones included, in the order of their first grants.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Lock>> {
        self.places.values().filter_map(|at| self.get(at))
    }

    /// Returns the live locks in a file, by symbol.
    pub fn live_in(&self, file: &RepoPath) -> impl Iterator<Item = &Arc<Lock>> {
        let locks = self.files.get(file).into_iter().flat_map(|it| it.by_symbol.values());
        locks.filter(|lock| !lock.lapsed)
    }

    /// Returns the live locks on a symbol of a file, under any of its names.
    pub(crate) fn live_named<'a>(
        &'a self,
        file: &RepoPath,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Lock>> {
        let locks = self.files.get(file).into_iter().flat_map(move |it| it.named(name));
        locks.filter(|lock| !lock.lapsed)
    }

    /// Returns the live locks on the containers of a name in a file, up to the whole file.
    pub(crate) fn live_around<'a>(
        &'a self,
        file: &RepoPath,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Lock>> {
        let containers = name.match_indices('.').map(|(at, _)| &name[..at]);
        let containers = containers.chain((!name.is_empty()).then_some(""));
        let file = self.files.get(file);
        containers.filter_map(move |it| file.map(|file| file.named(it))).flatten().filter(|lock| !lock.lapsed)
    }

    /// Returns the live locks on names inside a name of a file.
    pub(crate) fn live_inside<'a>(
        &'a self,
        file: &RepoPath,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Lock>> {
        let locks = self.files.get(file).into_iter().flat_map(move |it| it.inside(name));
        locks.filter(|lock| !lock.lapsed)
    }

    /// Returns the live grants of a counted kind of resource.
    pub(super) fn live_of_kind(&self, kind: &str) -> impl Iterator<Item = &Arc<Lock>> {
        let prefix = held_of(kind);
        let resources = self.files.get(&RepoPath::default());
        let from: Box<str> = prefix.as_str().into();
        let found = resources.into_iter().flat_map(move |it| it.by_symbol.range(from.clone()..));
        let found = found.take_while(move |(it, _)| it.starts_with(&prefix));
        found.map(|(_, lock)| lock).filter(|lock| !lock.lapsed)
    }

    /// Returns the waits for symbols of a file, longest first; for the root, those for resources.
    pub(super) fn waiting_in(&self, file: &RepoPath) -> impl Iterator<Item = &Arc<Waiter>> {
        let tickets = self.waits_by_file.get(file).into_iter().flatten();
        tickets.filter_map(|it| self.waiters.get(it))
    }

    /// Returns how many resources a share has, lapsed locks included.
    pub(super) fn resources_of_share(&self, share: &Share) -> usize {
        self.resources_by_share.of(share)
    }

    /// Returns all waits, longest first.
    pub fn waiters(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        self.waiters.values()
    }

    /// Returns the symbol whose lock has this place in the order of first grants.
    pub(crate) fn at_place(&self, place: Fence) -> Option<&SymbolPath> {
        self.places.get(&place)
    }

    /// Returns the waiter with this ticket, if it still waits.
    pub(crate) fn waiter(&self, ticket: Ticket) -> Option<&Arc<Waiter>> {
        self.waiters.get(&ticket)
    }

    /// Returns how many waits there are, for any lock.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Returns the locks that are due to lapse, or to be forgotten.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Lock>> {
        self.due.iter().take_while(move |(at, _)| *at <= now).filter_map(|(_, at)| self.get(at))
    }

    /// Returns the waits whose time is over.
    pub(super) fn tired(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Waiter>> {
        let late = self.waits_due.iter().take_while(move |(at, _)| *at <= now);
        late.filter_map(|(_, ticket)| self.waiters.get(ticket))
    }

    /// Returns the number of locks, lapsed ones included.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Checks whether there are no locks.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns how many locks an agent has, lapsed ones included.
    pub(crate) fn count_of(&self, agent: &AgentId) -> usize {
        self.by_holder.get(agent).map_or(0, BTreeSet::len)
    }

    /// Returns how many locks a share has, lapsed ones included.
    pub(super) fn count_of_share(&self, share: &Share) -> usize {
        self.by_share.of(share)
    }

    /// Returns how many waits a share has.
    pub(super) fn waiting_of(&self, share: &Share) -> usize {
        self.waiters.values().filter(|it| it.share == *share).count()
    }

    pub(super) fn held_by(&self, agent: &AgentId) -> impl Iterator<Item = &Arc<Lock>> {
        self.by_holder.get(agent).into_iter().flatten().filter_map(|at| self.get(at))
    }

    /// Returns other agents' locks on a symbol under any of its names, without leases that are only announced.
    pub(super) fn rivals<'a>(
        &'a self,
        who: &'a AgentId,
        file: &'a RepoPath,
        names: impl Iterator<Item = &'a str> + 'a,
    ) -> impl Iterator<Item = &'a Arc<Lock>> + 'a {
        let named = names.flat_map(move |name| self.live_named(file, name));
        named.filter(move |lock| lock.holder != *who && lock.keeps_out(None))
    }

    /// Returns these locks, and other agents' locks on containers of the symbol, which cover it.
    pub(super) fn in_the_way<'a>(
        &'a self,
        who: &'a AgentId,
        file: &'a RepoPath,
        names: &'a [&'a str],
    ) -> impl Iterator<Item = &'a Arc<Lock>> + 'a {
        let around = names.iter().flat_map(move |name| self.live_around(file, name));
        let same = self.rivals(who, file, names.iter().copied());
        same.chain(around.filter(move |lock| lock.holder != *who && lock.keeps_out(None)))
    }
}
