//! The state that results from posts, without their content: inboxes, agents' work, and open questions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contention::Key;
use super::{Contention, Mailbox, PathScope, Post, WorkingSet, roster, slug};
use crate::Share;
use provost_base::{AgentId, Digest, EventSeq, PostSeq, Slug, TaskId, Timestamp, Ttl};

/// The time within which a repeated question counts as the same.
pub(super) const SAME_FOR: Ttl = Ttl::minutes(10);

/// The time for which a question without an answer stays open.
const OPEN_FOR: Ttl = Ttl::minutes(24 * 60);

/// The time for which a silent agent is remembered. A broken branch may rest for a weekend.
const SILENT_FOR: Ttl = Ttl::minutes(7 * 24 * 60);

/// A question that waits for an answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The number of the question's post.
    pub n: PostSeq,
    /// The agent that asks.
    pub agent: AgentId,
    /// The beginning of the question, for lists.
    pub text: Box<str>,
    /// The digest of the whole question.
    pub whole: Digest,
    /// When it was asked.
    pub at: Timestamp,
    /// The share of its agent; `None` for questions of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The task in whose jail it was asked; `None` if it was asked outside of every jail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Whether the agent's program waits for the answer, so that it matters who gives it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_form: bool,
}

impl Question {
    /// Returns the share to which the question counts.
    fn counts_for(&self) -> Share {
        self.share.clone().unwrap_or_else(|| Share::Name(slug(self.agent.as_str())))
    }
}

/// The files and places that agents have announced or changed, with the agents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reach {
    files: BTreeMap<Box<str>, BTreeSet<Slug>>,
    wide: BTreeMap<Slug, Vec<PathScope>>,
}

impl Reach {
    fn add(&mut self, slug: &Slug, places: impl Iterator<Item = PathScope>) {
        for place in places {
            match place.file() {
                Some(file) => drop(self.files.entry(file.into()).or_default().insert(slug.clone())),
                None => self.wide.entry(slug.clone()).or_default().push(place),
            }
        }
    }

    fn remove(&mut self, slug: &Slug, places: impl Iterator<Item = PathScope>) {
        self.wide.remove(slug);
        for place in places {
            let Some(file) = place.file() else { continue };
            if let Some(who) = self.files.get_mut(file) {
                who.remove(slug);
                if who.is_empty() {
                    self.files.remove(file);
                }
            }
        }
    }

    /// Returns how many folders and patterns an agent has.
    fn wide_of(&self, slug: &Slug) -> usize {
        self.wide.get(slug).map_or(0, Vec::len)
    }

    /// Returns every agent that has a file which the place means, too.
    pub(super) fn meeting(&self, place: &PathScope) -> BTreeSet<&Slug> {
        let wide = self.wide.iter().filter(|(_, places)| places.iter().any(|it| it.meets(place)));
        let mut found: BTreeSet<&Slug> = wide.map(|(slug, _)| slug).collect();
        match place.file() {
            Some(file) => found.extend(self.files.get(file).into_iter().flatten()),
            None => {
                let meant =
                    self.files.iter().filter(|(file, _)| place.meets(&PathScope::File((*file).clone())));
                found.extend(meant.flat_map(|(_, who)| who));
            }
        }
        found
    }
}

/// The broker's part of the state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BrokerState {
    correspondents: BTreeMap<Slug, Arc<Mailbox>>,
    newest: BTreeMap<Slug, PostSeq>,
    prints: BTreeMap<Slug, Arc<WorkingSet>>,
    pub(super) changed: Reach,
    pub(super) intended: Reach,
    standoffs: BTreeMap<Key, Arc<Contention>>,
    standoffs_of: BTreeMap<Slug, BTreeSet<Key>>,
    undecided: BTreeSet<(Timestamp, Key)>,
    questions: BTreeMap<PostSeq, Arc<Question>>,
    parked: BTreeMap<Slug, VecDeque<(PostSeq, EventSeq)>>,
    /// The audit log begins after this number.
    pub log_from: PostSeq,
}

impl BrokerState {
    pub(super) fn filed(&mut self, to: &Slug, n: PostSeq) {
        let newest = self.newest.entry(to.clone()).or_default();
        *newest = n.max(*newest);
    }

    pub(super) fn put_correspondent(&mut self, it: Arc<Mailbox>) {
        self.newest.entry(it.slug.clone()).or_default();
        self.correspondents.insert(it.slug.clone(), it);
    }

    pub(super) fn forget(&mut self, slug: &Slug) {
        self.correspondents.remove(slug);
        self.newest.remove(slug);
        self.take_print(slug);
        let keys: Vec<Key> = self.standoffs_of.get(slug).into_iter().flatten().cloned().collect();
        keys.iter().for_each(|key| self.remove_standoff(key));
    }

    fn take_print(&mut self, slug: &Slug) {
        if let Some(old) = self.prints.remove(slug) {
            self.changed.remove(slug, old.files().into_keys());
            self.intended.remove(slug, intended(&old));
        }
    }

    pub(super) fn put_footprint(&mut self, it: Arc<WorkingSet>) {
        self.take_print(&it.slug);
        self.changed.add(&it.slug, it.files().into_keys());
        self.intended.add(&it.slug, intended(&it));
        self.prints.insert(it.slug.clone(), it);
    }

    pub(super) fn put_standoff(&mut self, it: Arc<Contention>) {
        let key = it.key();
        self.remove_standoff(&key);
        for slug in [&it.a, &it.b] {
            self.standoffs_of.entry(slug.clone()).or_default().insert(key.clone());
        }
        if !it.decided {
            self.undecided.insert((it.since, key.clone()));
        }
        self.standoffs.insert(key, it);
    }

    pub(super) fn drop_standoff(&mut self, it: &Contention) {
        self.remove_standoff(&it.key());
    }

    fn remove_standoff(&mut self, key: &Key) {
        let Some(old) = self.standoffs.remove(key) else { return };
        self.undecided.remove(&(old.since, key.clone()));
        for slug in [&old.a, &old.b] {
            if let Some(keys) = self.standoffs_of.get_mut(slug) {
                keys.remove(key);
                if keys.is_empty() {
                    self.standoffs_of.remove(slug);
                }
            }
        }
    }

    pub(super) fn put_question(&mut self, it: Arc<Question>) {
        self.questions.insert(it.n, it);
    }

    pub(super) fn drop_question(&mut self, n: PostSeq) {
        self.questions.remove(&n);
    }

    pub(super) fn park(&mut self, to: &Slug, n: PostSeq, seq: EventSeq) {
        self.parked.entry(to.clone()).or_default().push_back((n, seq));
    }

    pub(super) fn unpark(&mut self, to: &Slug, n: PostSeq) {
        if let Some(waiting) = self.parked.get_mut(to) {
            waiting.retain(|(it, _)| *it != n);
            if waiting.is_empty() {
                self.parked.remove(to);
            }
        }
    }

    /// Checks whether a status repeats what its agent's row shows, so that only the time of the last report
    /// changes. A word that settles a row does so each time it is said.
    pub fn has_heard(&self, post: &Post) -> bool {
        let Post::Status { agent, status, phase, .. } = post else { return false };
        let row = self.correspondents.get(&slug(agent.as_str())).and_then(|it| it.row.as_ref());
        !post.hearsay()
            && !roster::is_settled(status)
            && row.is_some_and(|row| row.label == *status && row.phase == *phase)
    }

    /// Returns the inbox of an agent, if it has one.
    pub fn get(&self, slug: &Slug) -> Option<&Arc<Mailbox>> {
        self.correspondents.get(slug)
    }

    /// Returns all inboxes, by name of their agents.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Mailbox>> {
        self.correspondents.values()
    }

    /// Returns the number of inboxes.
    pub fn len(&self) -> usize {
        self.correspondents.len()
    }

    /// Checks whether no agent has an inbox, and no post waits for one.
    pub fn is_empty(&self) -> bool {
        self.correspondents.is_empty() && self.parked.is_empty()
    }

    /// Returns the newest number of every inbox.
    pub fn newest(&self) -> impl Iterator<Item = (&Slug, PostSeq)> {
        self.newest.iter().map(|(slug, n)| (slug, *n))
    }

    /// Returns the working set of an agent, if it works on files.
    pub fn print(&self, slug: &Slug) -> Option<&Arc<WorkingSet>> {
        self.prints.get(slug)
    }

    /// Returns the open questions, oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &Arc<Question>> {
        self.questions.values()
    }

    pub(super) fn standoff(&self, key: &Key) -> Option<&Arc<Contention>> {
        self.standoffs.get(key)
    }

    /// Returns all cases of two agents that change one file.
    pub fn standoffs(&self) -> impl Iterator<Item = &Arc<Contention>> {
        self.standoffs.values()
    }

    /// Returns the cases in which an agent takes part.
    pub(super) fn standoffs_of(&self, slug: &Slug) -> impl Iterator<Item = &Arc<Contention>> {
        let keys = self.standoffs_of.get(slug).into_iter().flatten();
        keys.filter_map(|key| self.standoffs.get(key))
    }

    /// Returns the cases that have to go if `more` are added, oldest first.
    pub(super) fn too_old(&self, more: usize, most: usize) -> Vec<Arc<Contention>> {
        let excess = (self.standoffs.len() + more).saturating_sub(most);
        if excess == 0 {
            return Vec::new();
        }
        let mut all: Vec<_> = self.standoffs.values().cloned().collect();
        all.sort_by_key(|it| it.since);
        all.truncate(excess);
        all
    }

    /// Returns the cases whose time is up.
    pub(super) fn overdue(&self, now: Timestamp, window: Ttl) -> Vec<Arc<Contention>> {
        let due = self.undecided.iter().take_while(|(since, _)| since.after(window) <= now);
        due.filter_map(|(_, key)| self.standoffs.get(key).cloned()).collect()
    }

    pub(crate) fn next_deadline(&self, window: Ttl) -> Option<Timestamp> {
        self.undecided.first().map(|(since, _)| since.after(window))
    }

    /// Returns how many posts wait for agents that have no inbox yet.
    pub fn waiting(&self) -> usize {
        self.parked.values().map(VecDeque::len).sum()
    }

    pub(super) fn waiting_for(&self, slug: &Slug) -> Vec<(PostSeq, EventSeq)> {
        self.parked.get(slug).into_iter().flatten().copied().collect()
    }

    /// Returns the number of posts that wait for an agent, the oldest of them, and the number of awaited agents.
    pub(super) fn parked(&self, slug: &Slug) -> (usize, Option<PostSeq>, usize) {
        let waiting = self.parked.get(slug);
        let oldest = waiting.and_then(|it| it.front()).map(|(n, _)| *n);
        (waiting.map_or(0, VecDeque::len), oldest, self.parked.len())
    }

    /// Returns the agent for which the oldest post waits.
    pub(super) fn longest_awaited(&self) -> Option<&Slug> {
        self.parked.iter().min_by_key(|(_, it)| it.front().map(|(n, _)| *n)).map(|(slug, _)| slug)
    }

    /// Returns how many folders and patterns are compared for a share, without those of one agent.
    pub(super) fn wide_beside(&self, slug: &Slug, share: &Share) -> usize {
        let wide = |it: &Slug| self.changed.wide_of(it) + self.intended.wide_of(it);
        let others = self.correspondents.values().filter(|it| it.slug != *slug);
        others.filter(|it| it.share.as_ref() == Some(share)).map(|it| wide(&it.slug)).sum()
    }

    /// Returns how many inboxes count to a share.
    pub(super) fn counted_for(&self, share: &Share) -> usize {
        self.correspondents.values().filter(|it| it.share.as_ref() == Some(share)).count()
    }

    /// Returns the agent that has been silent for longest, of all or of one share; only an agent that was silent
    /// since before `before` is forgotten for lack of room.
    pub(super) fn longest_silent(
        &self,
        before: Timestamp,
        of: Option<&Share>,
        gone: &BTreeSet<Slug>,
    ) -> Option<Slug> {
        let last = |it: &Mailbox| it.row.as_ref().map_or(it.since, |row| row.seen);
        let theirs = |it: &&Arc<Mailbox>| of.is_none() || it.share.as_ref() == of;
        let there = self.correspondents.values().filter(|it| !gone.contains(&it.slug));
        let silent = there.filter(theirs).filter(|it| last(it) < before);
        silent.min_by_key(|it| last(it)).map(|it| it.slug.clone())
    }

    pub(super) fn silent_too_long(&self, now: Timestamp) -> Vec<Slug> {
        let last = |it: &Mailbox| it.row.as_ref().map_or(it.since, |row| row.seen);
        let gone = self.correspondents.values().filter(|it| last(it).after(SILENT_FOR) <= now);
        gone.map(|it| it.slug.clone()).collect()
    }

    /// Returns the question that is dropped when another needs room: the oldest of the share with the most
    /// questions, so that an agent which asks much loses its own.
    pub(super) fn question_to_drop(&self) -> Option<&Arc<Question>> {
        let mut counts: BTreeMap<Share, usize> = BTreeMap::new();
        for it in self.questions.values() {
            *counts.entry(it.counts_for()).or_default() += 1;
        }
        let most = counts.values().max()?;
        self.questions.values().find(|it| counts.get(&it.counts_for()) == Some(most))
    }

    pub(super) fn questions_too_old(&self, now: Timestamp) -> Vec<PostSeq> {
        let old = self.questions.values().filter(|it| it.at.after(OPEN_FOR) <= now);
        old.map(|it| it.n).collect()
    }
}

fn intended(print: &WorkingSet) -> impl Iterator<Item = PathScope> + '_ {
    print.intent.iter().flat_map(|it| &it.files).map(|it| PathScope::of(&it.path))
}
