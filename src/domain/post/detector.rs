//! Conflicts between what agents announce and do, found in the step in which they arise.
//!
//! ```text
//!   intent ---> overlaps another's intent              feedback to both
//!   files  -+-> another changes one of them, too       feedback to both, then
//!           |      after the window: still so           a question to the supervisor,
//!           |      .. but in different parts            or a word to both that this will merge
//!           +-> they are another's, and not intended   feedback, and a question to the supervisor
//! ```
//! A finding is published like any other post. The detector ignores its own posts.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::contention::Key;
use super::publish::Round;
use super::working_set::{AnnouncedPlaces, shared, shown};
use super::{
    Announced, Contention, Owner, PathScope, Post, PostChange, PostSettings, WorkingSet, supervisor,
};
use crate::{Change, Outbox, Refusal, State};
use provost_base::limits::{POST_FINDINGS_MAX, STANDOFFS_MAX};
use provost_base::{AgentId, PostSeq, Slug, Timestamp};

/// The beginning of every finding of the daemon, by which agents can tell it from a reviewer's.
const TAG: &str = "[conflict-detector]";

const ACROSS_KINDS: &str = "Note: one side declared named regions and the other declared line ranges; these always \
                            intersect conservatively. If you want narrower conflict matching, both sides should use \
                            the same region kind.";

impl Round<'_> {
    /// Looks at the files of a post, and puts its sender's working set in force.
    pub(super) fn detect(
        &mut self,
        post: &Post,
        before: &WorkingSet,
        mut after: WorkingSet,
    ) -> Result<(), Refusal> {
        match post {
            Post::Intent { .. } if self.state.settings.posts.warn_on_overlap => self.overlaps(&mut after)?,
            Post::Status { .. } | Post::Artifact { .. } => {
                let met = self.meetings(&after)?;
                self.trespasses(&mut after, &met)?;
            }
            _ => {}
        }
        if after != *before {
            self.stepped(after);
        }
        Ok(())
    }

    /// Tells an agent about a conflict with its work.
    pub(crate) fn feedback(&mut self, to: &Slug, error: String) -> Result<(), Refusal> {
        let errors = vec![format!("{TAG} {error}").into()];
        self.tell(Post::Feedback { agent: named(to), from: named(&supervisor()), errors, re: None }).map(drop)
    }

    fn question(&mut self, text: &str) -> Result<(), Refusal> {
        let question = format!("{TAG} {text}").into();
        self.tell(Post::Question { agent: named(&supervisor()), question }).map(drop)
    }

    /// Finds intents that overlap the one that was just announced.
    fn overlaps(&mut self, mine: &mut WorkingSet) -> Result<(), Refusal> {
        let state = self.state;
        let Some(intent) = mine.live(self.now).cloned() else { return Ok(()) };
        let mut found: BTreeMap<Slug, (PostSeq, BTreeMap<&str, String>, bool)> = BTreeMap::new();
        let mut announced: BTreeMap<&Slug, AnnouncedPlaces<'_>> = BTreeMap::new();
        for file in &intent.files {
            let place = PathScope::of(&file.path);
            for slug in state.broker.intended.meeting(&place) {
                let print = state.broker.print(slug).filter(|_| *slug != mine.slug);
                let Some((print, theirs)) = print.and_then(|it| Some((it, it.live(self.now)?))) else {
                    continue;
                };
                if told(mine, intent.n, print, theirs.n) {
                    continue;
                }
                let places = announced.entry(slug).or_insert_with(|| theirs.places());
                let Some(other) = places.on(&place) else { continue };
                let (text, across) = match (file.regions.is_empty(), other.regions.is_empty()) {
                    (false, false) => match shared(&file.regions, &other.regions) {
                        Some(it) => {
                            let regions: Vec<String> = it.regions.iter().map(shown).collect();
                            (format!("{} (regions: {})", file.path, regions.join(", ")), it.across_kinds)
                        }
                        None => continue,
                    },
                    _ => (file.path.to_string(), false),
                };
                let entry = found.entry(slug.clone()).or_insert_with(|| (theirs.n, BTreeMap::new(), false));
                entry.1.insert(&file.path, text);
                entry.2 |= across;
            }
        }
        for (slug, (n, files, across)) in found {
            let files: Vec<String> = files.into_values().collect();
            let hint = if across { format!(" {ACROSS_KINDS}") } else { String::new() };
            let text = |other: &Slug| {
                let files = files.join("; ");
                format!("forward conflict: agent {other} also intends to modify: {files}{hint}")
            };
            self.feedback(&mine.slug, text(&slug))?;
            self.feedback(&slug, text(&mine.slug))?;
            mine.overlaps.insert(slug, n);
        }
        Ok(())
    }

    /// Finds files that another agent changes, too. Returns the files about which both agents are told now, or with the next report.
    fn meetings(&mut self, mine: &WorkingSet) -> Result<BTreeMap<(Slug, PathScope), bool>, Refusal> {
        let state = self.state;
        let mut new: BTreeMap<Key, (Slug, PathScope, Box<str>)> = BTreeMap::new();
        let known = KnownCases::of(state, &mine.slug);
        for (place, written) in mine.files() {
            for other in state.broker.changed.meeting(&place) {
                if *other == mine.slug {
                    continue;
                }
                let (a, b) = if *other < mine.slug { (other, &mine.slug) } else { (&mine.slug, other) };
                let file: Box<str> = place.file().map_or_else(|| written.into(), Into::into);
                let key = (a.clone(), b.clone(), file);
                if !known.has(&key, &place) {
                    new.insert(key, (other.clone(), place.clone(), written.into()));
                }
            }
        }
        for old in state.broker.too_old(new.len().min(POST_FINDINGS_MAX), STANDOFFS_MAX) {
            self.out.put(Change::Post(PostChange::DropContention(old)));
        }
        let is_told = |(number, (other, place, _)): (usize, &(Slug, PathScope, Box<str>))| {
            ((other.clone(), place.clone()), number < POST_FINDINGS_MAX)
        };
        let met = new.values().enumerate().map(is_told).collect();
        for ((a, b, file), (_, _, written)) in new.into_iter().take(POST_FINDINGS_MAX) {
            let text = |with: &Slug| {
                format!("in-flight conflict: file {written} is being modified by both you and {with}")
            };
            self.feedback(&a, text(&b))?;
            self.feedback(&b, text(&a))?;
            let since = self.now;
            let case = Contention { a, b, file, written, since, decided: false };
            self.out.put(Change::Post(PostChange::PutContention(Arc::new(case))));
        }
        Ok(met)
    }

    /// Finds files that belong to others, by their announcements or by the lists of owners.
    fn trespasses(
        &mut self,
        mine: &mut WorkingSet,
        met: &BTreeMap<(Slug, PathScope), bool>,
    ) -> Result<(), Refusal> {
        let mut told: BTreeMap<Box<str>, Vec<Box<str>>> = BTreeMap::new();
        let rules = rules(self.state);
        let files: Vec<(PathScope, Box<str>)> =
            mine.files().into_iter().map(|(place, written)| (place, written.into())).collect();
        let announced = mine.live(self.now).map(Announced::places);
        let before: BTreeMap<&str, BTreeSet<&str>> =
            mine.told.iter().map(|(mark, files)| (&**mark, files.iter().map(|it| &**it).collect())).collect();
        let mut left = POST_FINDINGS_MAX;
        for (place, written) in files {
            if announced.as_ref().is_some_and(|it| it.on(&place).is_some()) {
                continue;
            }
            for (owner, mark, source) in self.owners(&mine.slug, &place, &rules) {
                let known = before.get(&*mark).is_some_and(|files| files.contains(&*written));
                let met = met.get(&(owner.clone(), place.clone()));
                // What is left to the next report is found again then.
                if !known && (met == Some(&false) || (met.is_none() && left == 0)) {
                    continue;
                }
                told.entry(mark).or_default().push(written.clone());
                if known || met.is_some() {
                    continue;
                }
                left -= 1;
                self.trespass(&mine.slug, &owner, &written, source.as_deref())?;
            }
        }
        mine.told = told;
        Ok(())
    }

    fn trespass(
        &mut self,
        who: &Slug,
        owner: &Slug,
        file: &str,
        source: Option<&str>,
    ) -> Result<(), Refusal> {
        let (is_theirs, place) = match source {
            None => (
                format!(
                    "agent {owner} declared intent over it. Update your agent.intent to declare this file"
                ),
                format!("{owner}'s intent"),
            ),
            Some(source) => (
                format!("it is agent {owner}'s by {source}. Ask for it, declare it in your agent.intent"),
                format!("{owner}'s by {source}"),
            ),
        };
        self.feedback(who, format!("ownership violation: you edited {file} but {is_theirs} or back off."))?;
        if self.state.settings.posts.escalate {
            let is_in = if source.is_none() { "is in" } else { "is" };
            self.question(&format!(
                "ownership violation: {who} edited {file} which {is_in} {place}. Human review requested."
            ))?;
        }
        Ok(())
    }

    /// Returns the owners of a file other than `mine`: their names, a mark that tells one finding from the next,
    /// and the place of the rule if the owner has no intent.
    fn owners(
        &self,
        mine: &Slug,
        place: &PathScope,
        rules: &[Rule<'_>],
    ) -> Vec<(Slug, Box<str>, Option<Box<str>>)> {
        let state = self.state;
        let mut found = Vec::new();
        for slug in state.broker.intended.meeting(place).into_iter().filter(|it| *it != mine) {
            if let Some(intent) = state.broker.print(slug).and_then(|it| it.live(self.now)) {
                found.push((slug.clone(), format!("{slug} {}", intent.n).into(), None));
            }
        }
        // As in a list of owners: the last line that fits decides.
        let rule = rules.iter().rev().find(|it| it.fits(place)).map(|it| it.owner);
        let Some(rule) = rule.filter(|it| !it.by.contains(mine)) else { return found };
        for slug in &rule.by {
            if state.broker.get(slug).is_some() && !found.iter().any(|(it, ..)| it == slug) {
                found.push((
                    slug.clone(),
                    format!("{slug} {}", rule.source).into(),
                    Some(rule.source.clone()),
                ));
            }
        }
        found
    }
}

/// The cases that an agent and others have been told, read once for all files of a post, and only if a file needs it.
struct KnownCases<'a> {
    state: &'a State,
    slug: &'a Slug,
    of_pairs: OnceCell<BTreeMap<(&'a Slug, &'a Slug), PlacesOfPair>>,
}

/// The places of the cases of two agents.
#[derive(Default)]
struct PlacesOfPair {
    all: Vec<PathScope>,
    /// Those of them that may mean several files.
    wide: Vec<PathScope>,
}

impl<'a> KnownCases<'a> {
    fn of(state: &'a State, slug: &'a Slug) -> Self {
        Self { state, slug, of_pairs: OnceCell::new() }
    }

    /// Checks whether these two agents have been told, under this name of the file or another name that includes it.
    fn has(&self, key: &Key, place: &PathScope) -> bool {
        if self.state.broker.standoff(key).is_some() {
            return true;
        }
        let (a, b, _) = key;
        let Some(known) = self.of_pairs.get_or_init(|| self.read()).get(&(a, b)) else { return false };
        // Two files under different names are different files: only names that mean several files are compared.
        let others = if place.file().is_some() { &known.wide } else { &known.all };
        others.iter().any(|it| it.meets(place))
    }

    fn read(&self) -> BTreeMap<(&'a Slug, &'a Slug), PlacesOfPair> {
        let is_wide = |text: &str| text.contains(['*', '?']) || text.ends_with(['/', '\\']);
        let mut pairs: BTreeMap<_, PlacesOfPair> = BTreeMap::new();
        for case in self.state.broker.standoffs_of(self.slug) {
            let (pair, place) = (pairs.entry((&case.a, &case.b)).or_default(), PathScope::of(&case.file));
            if is_wide(&case.file) {
                pair.wide.push(place.clone());
            }
            pair.all.push(place);
        }
        pairs
    }
}

/// Checks whether two agents have been told that their intents overlap.
fn told(mine: &WorkingSet, n: PostSeq, theirs: &WorkingSet, m: PostSeq) -> bool {
    mine.overlaps.get(&theirs.slug) == Some(&m) || theirs.overlaps.get(&mine.slug) == Some(&n)
}

/// Returns the rules of ownership that name an agent; most lists name people, and are not compared.
fn rules(state: &State) -> Vec<Rule<'_>> {
    let PostSettings { code_owners, owners, .. } = &state.settings.posts;
    let all = || code_owners.iter().chain(owners);
    if !all().any(|it| it.by.iter().any(|slug| state.broker.get(slug).is_some())) {
        return Vec::new();
    }
    all().map(Rule::of).collect()
}

/// A line of a list of owners, ready to be compared with many files.
struct Rule<'a> {
    owner: &'a Owner,
    /// The meaning from the top of the repository: this file, or everything below this folder.
    whole: PathScope,
    below: PathScope,
    /// The meaning in any folder, if the pattern names none.
    name: Option<PathScope>,
}

impl<'a> Rule<'a> {
    fn of(owner: &'a Owner) -> Self {
        let anchored = owner.pattern.trim_start_matches('/');
        let bare = anchored.trim_end_matches('/');
        let anywhere = !bare.contains('/') && anchored.len() == owner.pattern.len();
        let name = anywhere.then(|| PathScope::of(bare));
        Self { owner, whole: PathScope::of(anchored), below: PathScope::Folder(bare.into()), name }
    }

    fn fits(&self, place: &PathScope) -> bool {
        let Some(file) = place.file() else { return self.whole.meets(place) };
        self.whole.has(file)
            || self.below.has(file)
            || self.name.as_ref().is_some_and(|name| file.split('/').any(|part| name.has(part)))
    }
}

fn named(slug: &Slug) -> AgentId {
    AgentId::from(slug)
}

impl State {
    /// Handles the cases of agents that have changed one file for too long.
    pub(crate) fn decide_standoffs(&self, now: Timestamp, out: &mut Outbox) {
        let settings = &self.settings.posts;
        let mut round = Round::new(now, self, out);
        let mut announced = BTreeMap::new();
        for case in self.broker.overdue(now, settings.window).into_iter().take(POST_FINDINGS_MAX) {
            // Without room for an inbox of the supervisor, no agent can be asked.
            let _ = round.decide(&case, &mut announced);
            let decided = Contention { decided: true, ..Contention::clone(&case) };
            round.out.put(Change::Post(PostChange::PutContention(Arc::new(decided))));
        }
    }
}

/// The announcements of agents, each read once for all cases of one step.
type AllAnnounced<'a> = BTreeMap<Slug, Option<AnnouncedPlaces<'a>>>;

impl<'a> Round<'a> {
    fn decide(&mut self, case: &Contention, announced: &mut AllAnnounced<'a>) -> Result<(), Refusal> {
        if !self.state.settings.posts.detector {
            return Ok(());
        }
        let (a, b, file) = (&case.a, &case.b, &case.written);
        if self.keep_apart(case, announced) {
            let text = format!(
                "shared file, additive — resolve at merge: {file} is modified by both {a} and {b}, but their declared \
                 regions are disjoint so the edits do not collide in flight"
            );
            self.feedback(a, text.clone())?;
            return self.feedback(b, text);
        }
        let seconds = self.state.settings.posts.window.as_seconds();
        self.question(&format!(
            "in-flight conflict on {file} between {a} and {b} has not resolved within {seconds}s. Human input requested."
        ))
    }

    /// Checks whether both agents have announced the parts of the file that they change, and these differ.
    fn keep_apart(&self, case: &Contention, announced: &mut AllAnnounced<'a>) -> bool {
        let (state, now) = (self.state, self.now);
        let place = PathScope::File(case.file.clone());
        let mut parts = |slug: &Slug| {
            let read = || state.broker.print(slug).and_then(|it| it.live(now)).map(Announced::places);
            let places = announced.entry(slug.clone()).or_insert_with(read).as_ref();
            let file = places.and_then(|it| it.on(&place)).filter(|it| !it.regions.is_empty());
            file.map(|it| it.regions.clone())
        };
        match (parts(&case.a), parts(&case.b)) {
            (Some(a), Some(b)) => shared(&a, &b).is_none(),
            _ => false,
        }
    }
}
