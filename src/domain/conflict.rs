//! Compares what agents hold and announce through different doors, by one rule set.
//!
//! A *reservation* is an agent's hold on a place: a claim on a file (Agent Protocol), a lock or an intent on symbols
//! (wit), a plan with regions (the broker's `agent.intent`). Reservations of one protocol are compared by that
//! protocol's own rules; between protocols there is this one:
//!
//! | | the same file, or one inside the other's folder | |
//! |---|---|---|
//! | one of them is for the whole file | they meet | |
//! | both name symbols | they meet when a name is the other's, or around or in it | |
//! | both name lines | they meet when a line is both's | |
//! | one names symbols, the other lines | they meet: nothing says that they do not | |
//!
//! An agent never meets itself. By default the daemon reports a meeting to both sides and grants the later reservation;
//! where `[coordination] across_doors` says `deny`, it refuses the later one.

mod reservations;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::post::{PathScope, PostChange, Region, Round, WorkingSet, fits, fixed_part, slug};
use super::{Change, CrewChange, EventKind, Hold, MailKind, Outbox, Refusal, State};
use provost_base::limits::WARNINGS_MAX;

use provost_base::{AgentId, RepoPath, Timestamp};

pub use reservations::{Reservations, Title};

/// The way in which an agent holds a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReservationKind {
    /// A claim on a file.
    Claim,
    /// A lock on a symbol, or on a whole file.
    Lock,
    /// An announced change, in wit's form.
    Intent,
    /// An announced change, in the broker's form.
    Plan,
}

impl ReservationKind {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ReservationKind::Claim => "claim",
            ReservationKind::Lock => "lock",
            ReservationKind::Intent | ReservationKind::Plan => "intent",
        }
    }

    /// Returns the word with its article.
    pub fn one(self) -> &'static str {
        match self {
            ReservationKind::Claim => "a claim",
            ReservationKind::Lock => "a lock",
            ReservationKind::Intent | ReservationKind::Plan => "an intent",
        }
    }

    /// Returns the owner's action with the place, as the verb of a sentence.
    pub fn verb(self) -> &'static str {
        match self {
            ReservationKind::Claim => "is claimed by",
            ReservationKind::Lock => "is locked by",
            ReservationKind::Intent | ReservationKind::Plan => "is to be changed by",
        }
    }

    /// Checks whether a protocol has rules of its own for these two.
    fn has_rules_with(self, other: ReservationKind) -> bool {
        let own = |it: ReservationKind| match it {
            ReservationKind::Claim => 0,
            ReservationKind::Lock | ReservationKind::Intent => 1,
            ReservationKind::Plan => 2,
        };
        own(self) == own(other)
    }
}

/// A part of a file. If both lists are empty, the whole file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    /// Symbols, under all of their known names.
    pub names: Vec<Box<str>>,
    /// Ranges of lines, counted from 1, the last line included.
    pub lines: Vec<(u32, u32)>,
}

impl Part {
    fn is_whole(&self) -> bool {
        self.names.is_empty() && self.lines.is_empty()
    }

    /// Adds another part of the same file.
    fn add(&mut self, other: Part) {
        if self.is_whole() || other.is_whole() {
            *self = Part::default();
            return;
        }
        self.names.extend(other.names);
        self.lines.extend(other.lines);
    }

    fn meets(&self, other: &Part) -> bool {
        let mixed = |a: &Part, b: &Part| !a.names.is_empty() && !b.lines.is_empty();
        self.is_whole()
            || other.is_whole()
            || mixed(self, other)
            || mixed(other, self)
            || have_one_symbol(&self.names, &other.names)
            || self.lines.iter().any(|a| other.lines.iter().any(|b| a.0 <= b.1 && b.0 <= a.1))
    }
}

/// Checks whether a name of one list and a name of the other are the same symbol's, or one lies inside the other.
/// Protocols write them differently: `renew`, `renew()`, `Session.renew`. An intent has thousands of names, so each
/// list is read once, and not once for each name of the other.
fn have_one_symbol(a: &[Box<str>], b: &[Box<str>]) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let plain = |it: &str| it.trim().trim_end_matches("()").to_lowercase();
    let names: Vec<String> = few.iter().map(|it| plain(it)).collect();
    let whole: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let lasts: BTreeSet<&str> = whole.iter().map(|it| last(it)).collect();
    let around: BTreeSet<&str> = whole.iter().flat_map(|it| enclosing(it)).collect();
    // The empty name is the whole file's.
    let all = whole.contains("");
    many.iter().map(|it| plain(it)).any(|it| {
        let it = it.as_str();
        all || whole.contains(it)
            || whole.contains(last(it))
            || lasts.contains(it)
            || around.contains(it)
            || enclosing(it).any(|it| whole.contains(it))
    })
}

/// Returns the names of the symbols that enclose a symbol.
fn enclosing(name: &str) -> impl Iterator<Item = &str> {
    let classes = name.match_indices('.').map(|(at, _)| &name[..at]);
    classes.chain((!name.is_empty()).then_some(""))
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// An agent's hold on one place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reservation {
    /// The agent whose reservation it is.
    pub agent: AgentId,
    /// The way in which the agent holds the place.
    pub kind: ReservationKind,
    /// The file, or a folder and everything below it; for a pattern, the folder in which it begins.
    pub at: RepoPath,
    /// The pattern that paths below `at` have to match; `None` for all paths.
    pub pattern: Option<Box<str>>,
    /// The part of the file that the reservation is for.
    pub part: Part,
    /// When the agent got it.
    pub since: Timestamp,
    /// When it ends; `None` for a reservation without an end of its own.
    pub until: Option<Timestamp>,
    /// The place or the purpose, as the owner wrote it.
    pub asked: Box<str>,
}

impl Reservation {
    /// Checks whether both reservations have a place in common.
    pub fn meets(&self, other: &Reservation) -> bool {
        reaches(&self.at, &other.at)
            && self.covers(other)
            && other.covers(self)
            && self.part.meets(&other.part)
    }

    /// Checks whether both reservations belong to one agent, which never meets itself. If a plan is among them,
    /// names are compared as the broker door compares them.
    pub fn is_of_same_agent(&self, other: &Reservation) -> bool {
        let plan = |it: &Reservation| it.kind == ReservationKind::Plan;
        self.agent == other.agent
            || ((plan(self) || plan(other)) && slug(self.agent.as_str()) == slug(other.agent.as_str()))
    }

    /// Checks whether this reservation's pattern, if it has one, fits the other's path.
    fn covers(&self, other: &Reservation) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        // For two patterns, only the folders are compared.
        other.pattern.is_some() || fits(pattern, other.at.as_str())
    }
}

/// Checks whether one path is the other, or above it.
fn reaches(a: &RepoPath, b: &RepoPath) -> bool {
    let (a, b) = (a.as_str(), b.as_str());
    let above =
        |a: &str, b: &str| a.is_empty() || b.strip_prefix(a).is_some_and(|rest| rest.starts_with('/'));
    a == b || above(a, b) || above(b, a)
}

/// Two agents that work on the same place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Overlap {
    /// The path, as the agents wrote it.
    pub file: Box<str>,
    /// The agent whose name comes first.
    pub a: Box<str>,
    /// The agent whose name comes second.
    pub b: Box<str>,
}

/// The reservations of two agents in one place, in the order of the agents' names.
pub(crate) type Both = (Arc<Reservation>, Arc<Reservation>);

/// A new reservation and one that it meets, across doors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// The new reservation.
    pub mine: Reservation,
    /// The reservation of another agent that exists already.
    pub with: Arc<Reservation>,
}

impl State {
    /// Compares an agent's new reservations with those of others through other doors, and tells both sides about
    /// new meetings. Returns all meetings, at most [`WARNINGS_MAX`].
    ///
    /// # Errors
    /// [`Refusal::HeldElsewhere`] if the configuration denies meetings across doors.
    pub(super) fn meet(
        &self,
        now: Timestamp,
        title: &Title,
        new: &[Reservation],
        out: &mut Outbox,
    ) -> Result<Vec<Meeting>, Refusal> {
        Round::new(now, self, out).meet(title, new)
    }

    /// Returns the first binding reservation of another agent that meets this one.
    pub(super) fn first_in_the_way(
        &self,
        now: Timestamp,
        mine: &Reservation,
        binds: impl Fn(&Reservation) -> bool,
    ) -> Option<Reservation> {
        let live = |it: &Reservation| it.until.is_none_or(|it| it > now);
        let foreign = |it: &Reservation| binds(it) && live(it) && !mine.is_of_same_agent(it);
        self.stakes.near(&mine.at).find(|it| foreign(it) && it.meets(mine)).map(|it| Reservation::clone(it))
    }

    /// Returns the agents that work on the same places at this moment, through any doors: their reservations meet, or both change
    /// one file, or one has changed a file that the other had claimed. Each pair appears once for each place; `most` at most.
    pub(super) fn in_the_way_of_each_other(&self, now: Timestamp, most: usize) -> Vec<Overlap> {
        let live = |it: &&Arc<Reservation>| it.until.is_none_or(|it| it > now);
        let mut found: BTreeSet<Overlap> = BTreeSet::new();
        let pair = |file: &str, a: &str, b: &str| {
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            Overlap { file: file.into(), a: a.into(), b: b.into() }
        };
        for mine in self.stakes.iter().filter(live) {
            let met = self.stakes.near(&mine.at).filter(live);
            for with in met.filter(|it| !mine.is_of_same_agent(it) && it.meets(mine)) {
                // For a folder and a file in it, the file is named.
                let file = if with.at.as_str().len() > mine.at.as_str().len() { &with.at } else { &mine.at };
                found.insert(pair(file.as_str(), mine.agent.as_str(), with.agent.as_str()));
                if found.len() >= most {
                    return found.into_iter().collect();
                }
            }
        }
        let both = self.broker.standoffs().map(|it| pair(&it.written, it.a.as_str(), it.b.as_str()));
        let changed = self.claims.iter().filter_map(|it| match (&it.held, &it.last) {
            (Hold::Conflicted { owner, .. }, Some(by)) if by != owner => {
                Some(pair(it.file.as_str(), owner.as_str(), by.as_str()))
            }
            (Hold::Conflicted { owner, .. }, _) => Some(pair(it.file.as_str(), owner.as_str(), "unknown")),
            _ => None,
        });
        found.extend(both.chain(changed).take(most));
        found.into_iter().take(most).collect()
    }

    /// Returns the reservations that agents have in the same place at this moment, through any doors: each pair of
    /// agents once for each place, `most` pairs at most.
    pub(crate) fn present_meetings(&self, now: Timestamp, most: usize) -> Vec<Both> {
        let live = |it: &&Arc<Reservation>| it.until.is_none_or(|it| it > now);
        let mut found: BTreeMap<(&str, &str, &str), Both> = BTreeMap::new();
        for mine in self.stakes.iter().filter(live) {
            let met = self.stakes.near(&mine.at).filter(live);
            for with in met.filter(|it| !mine.is_of_same_agent(it) && it.meets(mine)) {
                let (one, other) = if mine.agent <= with.agent { (mine, with) } else { (with, mine) };
                let at = if with.at.as_str().len() > mine.at.as_str().len() { &with.at } else { &mine.at };
                let place = (at.as_str(), one.agent.as_str(), other.agent.as_str());
                let known =
                    found.get(&place).is_some_and(|it| it.0.part.names.len() + it.1.part.names.len() > 0);
                // A reservation that names a symbol says more than one for the whole file.
                if !known {
                    found.insert(place, (one.clone(), other.clone()));
                }
                if found.len() >= most {
                    return found.into_values().collect();
                }
            }
        }
        found.into_values().collect()
    }

    /// Returns the present reservations that name symbols of one file, at most `most`.
    pub(crate) fn named_reservations(&self, now: Timestamp, most: usize) -> Vec<Arc<Reservation>> {
        let live = |it: &&Arc<Reservation>| it.until.is_none_or(|it| it > now);
        let named = |it: &&Arc<Reservation>| !it.part.names.is_empty() && it.pattern.is_none();
        self.stakes.iter().filter(live).filter(named).take(most).cloned().collect()
    }

    pub(super) fn meetings(&self, now: Timestamp, new: &[Reservation]) -> Vec<Meeting> {
        let mut met: Vec<Meeting> = Vec::new();
        for mine in new {
            let foreign = |it: &Reservation| {
                !mine.is_of_same_agent(it)
                    && !it.kind.has_rules_with(mine.kind)
                    && it.until.is_none_or(|it| it > now)
            };
            let room = WARNINGS_MAX - met.len().min(WARNINGS_MAX);
            let found = self.stakes.near(&mine.at).filter(|it| foreign(it) && it.meets(mine));
            met.extend(found.take(room).map(|with| Meeting { mine: mine.clone(), with: with.clone() }));
        }
        met
    }
}

impl Round<'_> {
    /// Does the same as [`State::meet`], within a step.
    pub(super) fn meet(&mut self, title: &Title, new: &[Reservation]) -> Result<Vec<Meeting>, Refusal> {
        let met = self.state.meetings(self.now, new);
        if let Some(first) = met.first().filter(|_| self.state.settings.deny_across_doors) {
            return Err(Refusal::HeldElsewhere(Box::new(Reservation::clone(&first.with))));
        }
        let before = self.state.stakes.of(title);
        let now = self.now;
        let live = |it: &Reservation| it.until.is_none_or(|it| it > now);
        let known = |it: &Meeting| {
            before.iter().any(|mine| mine.at == it.mine.at && live(mine) && mine.meets(&it.with))
        };
        met.iter().filter(|it| !known(it)).try_for_each(|it| self.tell_both(it))?;
        Ok(met)
    }

    /// Tells both sides, each one where it listens.
    fn tell_both(&mut self, met: &Meeting) -> Result<(), Refusal> {
        let Meeting { mine, with } = met;
        self.out.append_event(EventKind::StakesMet {
            file: mine.at.clone(),
            kind: mine.kind,
            by: with.agent.clone(),
            with: with.kind,
            asked: with.asked.clone(),
        });
        for (one, other) in [(mine, &**with), (&**with, mine)] {
            if self.state.agents.get(&one.agent).is_some_and(|it| it.has_registered()) {
                let word =
                    MailKind::Met { file: one.at.clone(), mine: one.kind, other: Box::new(other.clone()) };
                self.state.mail.post(self.now, &one.agent, word, self.out);
            }
            self.feed_back(one, other)?;
        }
        Ok(())
    }

    /// Tells an agent that reads messages at the broker door about the meeting there.
    fn feed_back(&mut self, one: &Reservation, other: &Reservation) -> Result<(), Refusal> {
        let to = slug(one.agent.as_str());
        if !self.has_inbox(&to) {
            return Ok(());
        }
        let until = other.until.map(|it| format!(" until {it}")).unwrap_or_default();
        let (mine, verb, who, what) = (one.kind.one(), other.kind.verb(), &other.agent, &other.asked);
        self.feedback(
            &to,
            format!(
                "across protocols: {}, where you have {mine}, {verb} {who}{until} (its {}: {what})",
                one.at,
                other.kind.as_str()
            ),
        )
    }
}

/// Keeps the reservations in step with their sources.
impl Reservations {
    pub(super) fn follow(&mut self, change: &Change) {
        match change {
            // A resource is not a file.
            Change::PutLock(lock) if lock.at.is_resource() => {}
            Change::PutLock(lock) if lock.lapsed => self.drop(&Title::Lock(lock.at.clone())),
            Change::PutLock(lock) => self.put(Title::Lock(lock.at.clone()), vec![lock.stake()]),
            Change::DropLock(at) => self.drop(&Title::Lock(at.clone())),
            Change::PutIntent(it) if it.status.is_live() => {
                self.put(Title::Intent(it.id.clone()), it.stakes())
            }
            Change::PutIntent(it) => self.drop(&Title::Intent(it.id.clone())),
            Change::Crew(CrewChange::PutClaim(it)) => match it.stake() {
                Some(stake) => self.put(Title::Claim(it.file.clone()), vec![stake]),
                None => self.drop(&Title::Claim(it.file.clone())),
            },
            Change::Crew(CrewChange::DropClaim(file)) => self.drop(&Title::Claim(file.clone())),
            Change::DropIntent(id) => self.drop(&Title::Intent(id.clone())),
            Change::Post(PostChange::PutWorkingSet(it)) => self.put(Title::Plan(it.slug.clone()), plan(it)),
            Change::Post(PostChange::DropMailbox(slug)) => self.drop(&Title::Plan(slug.clone())),
            _ => {}
        }
    }
}

/// Returns the reservations for the plan that an agent has announced at the broker door.
pub(super) fn plan(print: &WorkingSet) -> Vec<Reservation> {
    let Some(intent) = &print.intent else { return Vec::new() };
    let agent = AgentId::from(&print.slug);
    let mut plan: Vec<Reservation> = Vec::new();
    let mut at_place: BTreeMap<(RepoPath, Option<Box<str>>), usize> = BTreeMap::new();
    for file in &intent.files {
        let (Some((at, pattern)), part) = (place(&file.path), part(&file.regions)) else { continue };
        let place = (at.clone(), pattern.clone());
        // A file that is there several times is one place, with all of its parts.
        if let Some(known) = at_place.get(&place).and_then(|number| plan.get_mut(*number)) {
            known.part.add(part);
            continue;
        }
        at_place.insert(place, plan.len());
        plan.push(Reservation {
            agent: agent.clone(),
            kind: ReservationKind::Plan,
            at,
            pattern,
            part,
            since: intent.since,
            until: Some(intent.until),
            asked: intent.summary.clone(),
        });
    }
    plan
}

/// Returns the path that a text means; for a pattern, the folder in which it begins, and the pattern. A text is a pattern
/// here if it is one at the broker door. A path that leads out of the repository meets no other agent's reservation.
fn place(text: &str) -> Option<(RepoPath, Option<Box<str>>)> {
    match PathScope::of(text) {
        PathScope::Pattern(pattern) => Some((RepoPath::parse(fixed_part(&pattern)).ok()?, Some(pattern))),
        PathScope::File(_) | PathScope::Folder(_) => RepoPath::parse(text.trim()).ok().map(|it| (it, None)),
    }
}

fn part(regions: &[Region]) -> Part {
    let mut part = Part::default();
    for region in regions {
        match region {
            Region::Function(name) | Region::Class(name) | Region::Block(name) => {
                part.names.push(name.clone())
            }
            Region::Lines(first, last) => part.lines.push((*first, *last)),
        }
    }
    part
}
