//! Intents: changes that agents announce in advance.
//!
//! ```text
//!              update             update
//!  [declared] --------> [active] --------> [resolved]
//!      |  |                | |                 ^
//!      |  +----------------|-+-- update -------+
//!      +-------------------+----> [abandoned]: update, its time is up, its session has left
//! ```
//! Intents of two agents collide when they share a file, unless both name symbols there and these lie apart. The
//! places of symbols are kept per file, and updated as files change. A collision is reported, never refused. wit,
//! 5.6 to 5.8.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    Conflict, DeclareIntent, Declared, FreshSpans, IntentUpdated, IntentsRefreshed, RefreshIntents,
    UpdateIntent,
};
use super::tally::Tally;
use super::{
    Change, EventKind, Lock, Outbox, Part, Principal, Refusal, Reservation, ReservationKind, Share, State,
    Title,
};
use provost_base::limits::{
    DESCRIPTION_LEN_MAX, INTENT_FILES_MAX, INTENT_PLACES_MAX, INTENT_SYMBOLS_MAX, INTENTS_MAX,
    INTENTS_OF_ONE_MAX, INTENTS_PER_AGENT_MAX, INTENTS_SETTLED_MAX, LOCKS_PER_AGENT_MAX, TTL_MAX_MS,
    WARNINGS_MAX,
};
use provost_base::{AgentId, Fence, IntentId, RepoPath, Span, SymbolPath, Timestamp, Ttl, encloses};

/// An intent without a time of its own lapses this long after its last change, so that nothing a peer asks for
/// stays forever.
const KEEP: Ttl = Ttl::seconds_clamped(TTL_MAX_MS as u64 / 1000);

/// The state of an intent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentStatus {
    /// The agent makes the change now.
    Active,
    /// The agent has announced the change, and has not begun.
    Declared,
    /// The agent has made the change.
    Resolved,
    /// The agent will not make the change, or its time is up.
    Abandoned,
}

impl IntentStatus {
    /// Returns the word for it, which is also wit's.
    pub fn as_str(self) -> &'static str {
        match self {
            IntentStatus::Active => "active",
            IntentStatus::Declared => "declared",
            IntentStatus::Resolved => "resolved",
            IntentStatus::Abandoned => "abandoned",
        }
    }

    /// Checks whether the intent still concerns other agents.
    pub fn is_live(self) -> bool {
        matches!(self, IntentStatus::Active | IntentStatus::Declared)
    }

    fn may_become(self, to: IntentStatus) -> bool {
        match to {
            IntentStatus::Declared => false,
            IntentStatus::Active => self == IntentStatus::Declared,
            IntentStatus::Resolved | IntentStatus::Abandoned => self.is_live(),
        }
    }
}

/// A change that an agent has announced.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// The id that the door has chosen.
    pub id: IntentId,
    /// The agent that announces the change.
    pub agent: AgentId,
    /// The change, in words.
    pub description: Box<str>,
    /// The files that will change, each with the places of its symbols.
    pub files: Vec<IntentFile>,
    /// The symbols in those files that will change; empty for whole files.
    pub symbols: Vec<Box<str>>,
    /// The state of the change, as its agent reports it.
    pub status: IntentStatus,
    /// When it was declared.
    pub declared_at: Timestamp,
    /// When its status last changed.
    pub updated_at: Timestamp,
    /// When it lapses by itself.
    pub expires_at: Timestamp,
    /// A number that only orders lists: older ones first.
    pub place: Fence,
    /// The grants of locks that were taken for it; its owner releases them when the intent ends.
    #[serde(default)]
    pub grants: Vec<Fence>,
    /// The share of its agent, to which it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

/// A file of an intent, with the places of its symbols.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntentFile {
    /// The path, in its one spelling.
    pub path: RepoPath,
    /// The path, as the intent's owner wrote it.
    pub asked: Box<str>,
    /// The places of the intent's symbols in the file; empty if it defines none of them.
    pub spans: Vec<Span>,
    /// All names of the intent's symbols in the file.
    pub names: Vec<Box<str>>,
}

impl Intent {
    /// Returns the range from the first byte of any of its symbols to the end of the last one, over all files, as wit reports it.
    pub fn reach(&self) -> Option<Span> {
        let spans = || self.files.iter().flat_map(|it| &it.spans);
        let start = spans().map(|it| it.start).min()?;
        Some(Span { start, end: spans().map(|it| it.end).max()? })
    }

    pub(super) fn stakes(&self) -> Vec<Reservation> {
        let names = |it: &IntentFile| if self.symbols.is_empty() { Vec::new() } else { it.names.clone() };
        let stake = |it: &IntentFile| Reservation {
            agent: self.agent.clone(),
            kind: ReservationKind::Intent,
            at: it.path.clone(),
            pattern: None,
            part: Part { names: names(it), lines: Vec::new() },
            since: self.declared_at,
            until: Some(self.expires_at),
            asked: self.description.clone(),
        };
        self.files.iter().map(stake).collect()
    }

    fn file(&self, path: &RepoPath) -> Option<&IntentFile> {
        self.files.iter().find(|it| it.path == *path)
    }
}

/// All live intents, and the newest of the settled ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Intents {
    all: BTreeMap<IntentId, Arc<Intent>>,
    places: BTreeMap<Fence, IntentId>,
    live_by_file: BTreeMap<RepoPath, BTreeSet<Fence>>,
    live_by_agent: BTreeMap<AgentId, BTreeSet<Fence>>,
    live_by_share: Tally,
    settled: BTreeSet<(Timestamp, Fence)>,
    due: BTreeSet<(Timestamp, Fence)>,
}

impl Intents {
    pub(super) fn put(&mut self, intent: Arc<Intent>) {
        self.remove(&intent.id);
        self.places.insert(intent.place, intent.id.clone());
        if intent.status.is_live() {
            for file in &intent.files {
                self.live_by_file.entry(file.path.clone()).or_default().insert(intent.place);
            }
            self.live_by_agent.entry(intent.agent.clone()).or_default().insert(intent.place);
            self.live_by_share.add(intent.share.as_ref());
            self.due.insert((intent.expires_at, intent.place));
        } else {
            self.settled.insert((intent.updated_at, intent.place));
        }
        self.all.insert(intent.id.clone(), intent);
    }

    pub(super) fn remove(&mut self, id: &IntentId) {
        let Some(intent) = self.all.remove(id) else { return };
        self.places.remove(&intent.place);
        for file in &intent.files {
            drop_from(&mut self.live_by_file, &file.path, intent.place);
        }
        drop_from(&mut self.live_by_agent, &intent.agent, intent.place);
        if intent.status.is_live() {
            self.live_by_share.take(intent.share.as_ref());
        }
        self.due.remove(&(intent.expires_at, intent.place));
        self.settled.remove(&(intent.updated_at, intent.place));
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the intent with this id, if it is remembered.
    pub fn get(&self, id: &IntentId) -> Option<&Arc<Intent>> {
        self.all.get(id)
    }

    /// Returns all intents, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Intent>> {
        self.at(self.places.keys())
    }

    /// Returns the intents on a file that are declared or active.
    pub fn live_on(&self, file: &RepoPath) -> impl Iterator<Item = &Arc<Intent>> {
        self.at(self.live_by_file.get(file).into_iter().flatten())
    }

    /// Returns how many intents are declared or active.
    pub fn live(&self) -> usize {
        self.due.len()
    }

    fn live_of(&self, agent: &AgentId) -> impl Iterator<Item = &Arc<Intent>> {
        self.at(self.live_by_agent.get(agent).into_iter().flatten())
    }

    fn at<'a>(&'a self, places: impl Iterator<Item = &'a Fence>) -> impl Iterator<Item = &'a Arc<Intent>> {
        places.filter_map(|place| self.all.get(self.places.get(place)?))
    }

    /// Returns other agents' intents for a symbol under any of its names: those that name it, or a symbol around or inside it.
    pub(super) fn intending<'a>(
        &'a self,
        who: &'a AgentId,
        file: &'a RepoPath,
        names: &'a [&'a str],
    ) -> impl Iterator<Item = Arc<Intent>> + 'a {
        let others = self.live_on(file).filter(move |it| it.agent != *who);
        others.filter(move |it| it.file(file).is_some_and(|it| names_touch(&it.names, names))).cloned()
    }
}

fn drop_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Fence>>, key: &K, place: Fence) {
    if let Some(places) = index.get_mut(key) {
        places.remove(&place);
        if places.is_empty() {
            index.remove(key);
        }
    }
}

fn names_touch(intended: &[Box<str>], names: &[&str]) -> bool {
    let touch = |a: &str, b: &str| a == b || encloses(a, b) || encloses(b, a);
    names.iter().any(|name| intended.iter().any(|it| touch(it, name)))
}

/// Checks whether two agents would work at the same place of a file; yes, if either has not said where.
fn same_place(a: &[Span], b: &[Span]) -> bool {
    a.is_empty() || b.is_empty() || a.iter().any(|a| b.iter().any(|b| a.meets(*b)))
}

impl State {
    /// Declares an intent. wit `intent.declare`.
    pub(super) fn declare(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &DeclareIntent,
        out: &mut Outbox,
    ) -> Result<Declared, Refusal> {
        self.room_for_intent(who, verb)?;
        self.agents.beat(now, who.agent(), out);
        self.refreshed(&verb.fresh, out);
        let drafted = drafted(now, who.agent(), verb, out.next_fence());
        let intent = Arc::new(Intent { share: Some(who.share()), ..drafted });
        let mut conflicts = self.collisions(&intent, verb);
        let met = self.meet(now, &Title::Intent(intent.id.clone()), &intent.stakes(), out)?;
        conflicts.extend(met.into_iter().map(Conflict::Elsewhere));
        out.append_event(EventKind::IntentDeclared {
            intent: intent.id.clone(),
            files: intent.files.iter().take(SHOWN).map(|it| it.path.clone()).collect(),
            conflicts: u32::try_from(conflicts.len()).unwrap_or(u32::MAX),
        });
        let more = bounded(&mut conflicts, &verb.gaps);
        out.put(Change::PutIntent(intent.clone()));
        Ok(Declared { intent, conflicts, more })
    }

    /// Returns the conflicts that a change would have if it were announced now, and how many more there are.
    pub(super) fn collisions_ahead(
        &self,
        now: Timestamp,
        who: &AgentId,
        verb: &DeclareIntent,
    ) -> (Vec<Conflict>, usize) {
        let intent = drafted(now, who, verb, Fence(0));
        let mut found = self.collisions(&intent, verb);
        found.extend(self.meetings(now, &intent.stakes()).into_iter().map(Conflict::Elsewhere));
        let more = bounded(&mut found, &verb.gaps);
        (found, more)
    }

    fn room_for_intent(&self, who: &Principal, verb: &DeclareIntent) -> Result<(), Refusal> {
        if self.intents.get(&verb.id).is_some() {
            return Err(Refusal::Exists { what: "an intent" });
        }
        let members = [
            (verb.description.len(), DESCRIPTION_LEN_MAX, "bytes of description"),
            (verb.files.len(), INTENT_FILES_MAX, "files"),
            (verb.symbols.len(), INTENT_SYMBOLS_MAX, "symbols"),
            (
                verb.symbols.len() * verb.files.len(),
                INTENT_PLACES_MAX,
                "symbols in all of its files together",
            ),
            (verb.grants.len(), LOCKS_PER_AGENT_MAX, "locks"),
        ];
        if let Some((_, most, unit)) = members.into_iter().find(|(has, most, _)| has > most) {
            return Err(Refusal::too_long("an intent", most, unit));
        }
        if self.intents.live_by_agent.get(who.agent()).map_or(0, BTreeSet::len) >= INTENTS_PER_AGENT_MAX {
            return Err(Refusal::quota(
                "as many intents as one agent can have",
                INTENTS_PER_AGENT_MAX,
                "resolve or abandon some",
            ));
        }
        // As for locks: a process cannot have more by using more names.
        if self.intents.live_by_share.of(&who.share()) >= INTENTS_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many intents as the processes of one agent can have under all their names",
                INTENTS_OF_ONE_MAX,
                "resolve or abandon some",
            ));
        }
        if self.intents.live() >= INTENTS_MAX {
            return Err(Refusal::busy(
                "as many intents as there can be; `provost intent list` shows whose they are",
            ));
        }
        Ok(())
    }

    /// Returns the conflicts in wit's order: intents (active ones first), locks on its symbols, locks on called
    /// symbols; then Provost's own.
    fn collisions(&self, intent: &Intent, verb: &DeclareIntent) -> Vec<Conflict> {
        let mut found: Vec<Conflict> =
            self.overlaps(intent, &verb.fresh).into_iter().map(Conflict::Overlap).collect();
        let foreign = |lock: &&Arc<Lock>| lock.holder != intent.agent;
        let mut told = BTreeSet::new();
        for file in &verb.files {
            for (symbol, name) in asked_names(verb, file) {
                let Ok(symbol) = SymbolPath::of(file.path.clone(), symbol) else { continue };
                for lock in self.locks.live_named(&file.path, name).filter(foreign) {
                    if told.insert((lock.fence, symbol.symbol().to_owned())) {
                        found.push(Conflict::Locked { symbol: symbol.clone(), lock: lock.clone() });
                    }
                }
            }
        }
        let is_guess = |call: &(SymbolPath, SymbolPath)| verb.guessed.contains(call);
        for call @ (symbol, callee) in &verb.calls {
            let named = self.locks.live_named(callee.file(), callee.symbol());
            let lock = named.chain(self.locks.live_around(callee.file(), callee.symbol())).find(foreign);
            let guessed = is_guess(call);
            let chain =
                |lock: &Arc<Lock>| Conflict::Chain { symbol: symbol.clone(), lock: lock.clone(), guessed };
            found.extend(lock.map(chain));
        }
        for call @ (symbol, caller) in &verb.callers {
            let named = self.locks.live_named(caller.file(), caller.symbol());
            let lock = named.chain(self.locks.live_around(caller.file(), caller.symbol())).find(foreign);
            let guessed = is_guess(call);
            let locked = |lock: &Arc<Lock>| Conflict::CallerLocked {
                symbol: symbol.clone(),
                lock: lock.clone(),
                guessed,
            };
            found.extend(lock.map(locked));
        }
        // A lock that has met a symbol of the intent is not told a second time for its file.
        let mut told: BTreeSet<Fence> = told.into_iter().map(|(fence, _)| fence).collect();
        for file in &verb.files {
            for lock in self.locks.live_in(&file.path).filter(foreign) {
                if in_reach(intent, file, lock) && told.insert(lock.fence) {
                    found.push(Conflict::Within(lock.clone()));
                }
            }
        }
        found
    }

    /// Returns other agents' live intents for the same places, active ones first, each group oldest first.
    fn overlaps(&self, intent: &Intent, fresh: &[FreshSpans]) -> Vec<Arc<Intent>> {
        let mut found: BTreeMap<(IntentStatus, Fence), Arc<Intent>> = BTreeMap::new();
        for file in &intent.files {
            for other in self.intents.live_on(&file.path).filter(|it| it.agent != intent.agent) {
                let newer = fresh.iter().find(|it| it.intent == other.id && it.file == file.path);
                let known = other.file(&file.path).map(|it| it.spans.as_slice()).unwrap_or_default();
                if same_place(&file.spans, newer.map_or(known, |it| &it.spans)) {
                    found.entry((other.status, other.place)).or_insert_with(|| other.clone());
                }
            }
        }
        found.into_values().collect()
    }

    /// Updates an intent. Only the agent that declared it may do this. wit `intent.update`.
    pub(super) fn update_intent(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &UpdateIntent,
        out: &mut Outbox,
    ) -> Result<IntentUpdated, Refusal> {
        let intent = self.intents.get(&verb.id).ok_or(Refusal::IntentNotFound)?;
        if intent.agent != *who.agent() {
            return Err(Refusal::IntentNotOwned { by: intent.agent.clone() });
        }
        if !intent.status.may_become(verb.to) {
            return Err(Refusal::IntentCannot { from: intent.status, to: verb.to });
        }
        self.agents.beat(now, who.agent(), out);
        Ok(IntentUpdated { intent: self.settle_intent(now, intent, verb.to, out) })
    }

    /// Changes the status of an intent, and makes room for it among the settled ones.
    pub(super) fn settle_intent(
        &self,
        now: Timestamp,
        intent: &Intent,
        to: IntentStatus,
        out: &mut Outbox,
    ) -> Arc<Intent> {
        self.forget_settled(usize::from(!to.is_live()), out);
        self.move_intent(now, intent, to, out)
    }

    fn move_intent(
        &self,
        now: Timestamp,
        intent: &Intent,
        to: IntentStatus,
        out: &mut Outbox,
    ) -> Arc<Intent> {
        out.append_event(EventKind::IntentMoved {
            intent: intent.id.clone(),
            owner: intent.agent.clone(),
            to,
        });
        let moved = Arc::new(Intent { status: to, updated_at: now, ..intent.clone() });
        out.put(Change::PutIntent(moved.clone()));
        moved
    }

    /// Makes room for `more` intents among the settled ones.
    fn forget_settled(&self, more: usize, out: &mut Outbox) {
        let settled = &self.intents.settled;
        let excess = (settled.len() + more).saturating_sub(INTENTS_SETTLED_MAX);
        let oldest = settled.iter().take(excess).filter_map(|(_, place)| self.intents.places.get(place));
        oldest.for_each(|id| out.put(Change::DropIntent(id.clone())));
    }

    pub(super) fn abandon_all(&self, now: Timestamp, agent: &AgentId, out: &mut Outbox) -> usize {
        let live: Vec<_> = self.intents.live_of(agent).collect();
        self.forget_settled(live.len(), out);
        live.iter().for_each(|intent| drop(self.move_intent(now, intent, IntentStatus::Abandoned, out)));
        live.len()
    }

    /// Ends intents whose time is up.
    pub(super) fn lapse_intents(&self, now: Timestamp, out: &mut Outbox) {
        let due = self.intents.due.iter().take_while(|(at, _)| *at <= now).map(|(_, place)| place);
        let late: Vec<_> = self.intents.at(due).collect();
        self.forget_settled(late.len(), out);
        late.iter().for_each(|intent| drop(self.move_intent(now, intent, IntentStatus::Abandoned, out)));
    }

    /// Updates the places of symbols in files that have changed.
    pub(super) fn refresh_intents(&self, verb: &RefreshIntents, out: &mut Outbox) -> IntentsRefreshed {
        IntentsRefreshed { moved: self.refreshed(&verb.spans, out) }
    }

    fn refreshed(&self, fresh: &[FreshSpans], out: &mut Outbox) -> usize {
        let mut changed: BTreeMap<&IntentId, Intent> = BTreeMap::new();
        for it in fresh {
            let known = changed.get(&it.intent).or(self.intents.get(&it.intent).map(|it| &**it));
            let stale =
                known.and_then(|known| known.file(&it.file)).is_some_and(|file| file.spans != it.spans);
            let Some(known) = known.filter(|known| stale && known.status.is_live()) else { continue };
            let mut known = known.clone();
            known
                .files
                .iter_mut()
                .filter(|file| file.path == it.file)
                .for_each(|file| file.spans = it.spans.clone());
            changed.insert(&it.intent, known);
        }
        let count = changed.len();
        changed.into_values().for_each(|intent| out.put(Change::PutIntent(Arc::new(intent))));
        count
    }
}

/// Cuts the conflicts to the number that is reported, and adds the gaps; returns how many were cut.
fn bounded(conflicts: &mut Vec<Conflict>, gaps: &[Box<str>]) -> usize {
    let room = WARNINGS_MAX.saturating_sub(gaps.len());
    let more = conflicts.len().saturating_sub(room);
    conflicts.truncate(room);
    conflicts.extend(gaps.iter().cloned().map(Conflict::Incomplete));
    more
}

/// The number of an intent's files that its event names.
const SHOWN: usize = 16;

fn drafted(now: Timestamp, who: &AgentId, verb: &DeclareIntent, place: Fence) -> Intent {
    let file = |it: &super::command::IntendedFile| IntentFile {
        path: it.path.clone(),
        asked: it.asked.clone(),
        spans: it.spans.clone(),
        names: verb.symbols.iter().cloned().chain(it.names.iter().map(|(_, name)| name.clone())).collect(),
    };
    Intent {
        id: verb.id.clone(),
        agent: who.clone(),
        description: verb.description.clone(),
        files: verb.files.iter().map(file).collect(),
        symbols: verb.symbols.clone(),
        status: IntentStatus::Declared,
        declared_at: now,
        updated_at: now,
        expires_at: now.after(verb.ttl.unwrap_or(KEEP)),
        place,
        grants: verb.grants.clone(),
        share: None,
    }
}

/// Returns each symbol of an intent with each of its names in a file, in the order in which the symbols were given.
fn asked_names<'a>(
    verb: &'a DeclareIntent,
    file: &'a super::command::IntendedFile,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut more: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (symbol, name) in &file.names {
        more.entry(*symbol).or_default().push(name);
    }
    (0u32..).zip(&verb.symbols).flat_map(move |(number, symbol)| {
        let others = more.get(&number).cloned().unwrap_or_default();
        std::iter::once(&**symbol).chain(others).map(move |name| (&**symbol, name))
    })
}

/// Checks whether an intent concerns a lock in one of its files: it means the whole file, or one's name is around or inside the other's.
fn in_reach(intent: &Intent, file: &super::command::IntendedFile, lock: &Lock) -> bool {
    if intent.symbols.is_empty() {
        return true;
    }
    let Some(file) = intent.file(&file.path) else { return false };
    lock.all_names().any(|name| names_touch(&file.names, &[name]))
}
