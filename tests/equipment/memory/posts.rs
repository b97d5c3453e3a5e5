//! Messages between agents, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use provost_base::{EventSeq, PostSeq, Slug};
use provost_domain::post::{Contention, Mailbox, Question, WorkingSet};
use provost_domain::{Change, PostChange};
use provost_store::{Letters, StoreError, StoredEvent, StoredPost};

#[derive(Clone, Default)]
pub(super) struct PostRows {
    posts: BTreeMap<PostSeq, EventSeq>,
    inboxes: BTreeMap<(Slug, PostSeq), EventSeq>,
    parked: BTreeMap<(PostSeq, Slug), EventSeq>,
    correspondents: BTreeMap<Slug, Arc<Mailbox>>,
    footprints: BTreeMap<Slug, Arc<WorkingSet>>,
    standoffs: BTreeMap<String, Arc<Contention>>,
    questions: BTreeMap<PostSeq, Arc<Question>>,
    log_from: PostSeq,
}

impl PostRows {
    pub(super) fn apply(&mut self, change: &PostChange) {
        match change {
            PostChange::File { n, seq, to, own, .. } => {
                if *own {
                    self.posts.insert(*n, *seq);
                }
                self.inboxes.extend(to.iter().map(|to| ((to.clone(), *n), *seq)));
            }
            PostChange::PutMailbox(it) => {
                drop(self.correspondents.insert(it.slug.clone(), it.clone()));
            }
            PostChange::DropMailbox(slug) => {
                self.correspondents.remove(slug);
                self.footprints.remove(slug);
                self.standoffs.retain(|_, it| it.a != *slug && it.b != *slug);
                self.inboxes.retain(|(it, _), _| it != slug);
            }
            PostChange::PutWorkingSet(it) => drop(self.footprints.insert(it.slug.clone(), it.clone())),
            PostChange::PutContention(it) => drop(self.standoffs.insert(it.id(), it.clone())),
            PostChange::DropContention(it) => drop(self.standoffs.remove(&it.id())),
            PostChange::PutQuestion(it) => drop(self.questions.insert(it.n, it.clone())),
            PostChange::DropQuestion(n) => drop(self.questions.remove(n)),
            PostChange::Park(to, n, seq) => drop(self.parked.insert((*n, to.clone()), *seq)),
            PostChange::Unpark(to, n) => drop(self.parked.remove(&(*n, to.clone()))),
            PostChange::BeginLog(n) => self.log_from = *n,
            PostChange::Newest(..) => {}
        }
    }

    /// The changes that bring an empty state to these rows.
    pub(super) fn changes(&self) -> Vec<Change> {
        let people = self.correspondents.values().cloned().map(PostChange::PutMailbox);
        let prints = self.footprints.values().cloned().map(PostChange::PutWorkingSet);
        let cases = self.standoffs.values().cloned().map(PostChange::PutContention);
        let questions = self.questions.values().cloned().map(PostChange::PutQuestion);
        let newest = self.inboxes.keys().map(|(slug, n)| PostChange::Newest(slug.clone(), *n));
        let parked = self.parked.iter().map(|((n, to), seq)| PostChange::Park(to.clone(), *n, *seq));
        let all = people.chain(prints).chain(cases).chain(questions).chain(newest).chain(parked);
        all.chain([PostChange::BeginLog(self.log_from)]).map(Change::Post).collect()
    }

    pub(super) fn prune(&mut self, to: EventSeq) {
        let last = self.posts.iter().filter(|(_, seq)| **seq <= to).map(|(n, _)| *n).max();
        let Some(last) = last else { return };
        self.posts.retain(|n, _| *n > last);
        self.inboxes.retain(|(_, n), _| *n > last);
        self.parked.retain(|(n, _), _| *n > last);
    }

    pub(super) fn letters(
        &self,
        events: &[StoredEvent],
        which: &Letters,
        bytes_max: usize,
    ) -> Result<Vec<StoredPost>, StoreError> {
        let all: Vec<(PostSeq, EventSeq)> = match which {
            Letters::In(slug, after) => {
                let mine = self.inboxes.iter().filter(|((it, n), _)| it == slug && n > after);
                mine.map(|((_, n), seq)| (*n, *seq)).collect()
            }
            Letters::After(after) => {
                self.posts.iter().filter(|(n, _)| *n > after).map(|(n, seq)| (*n, *seq)).collect()
            }
            Letters::Before(before) => {
                let all = self.posts.iter().filter(|(n, _)| *n < before).map(|(n, seq)| (*n, *seq));
                all.rev().collect()
            }
            Letters::Newest => self.posts.iter().map(|(n, seq)| (*n, *seq)).collect(),
        };
        let (mut found, mut sizes, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (n, seq) in all {
            // The journal is dense, so an event's number says where it lies.
            let at = usize::try_from(seq.0).unwrap_or(0).saturating_sub(1);
            let Some(event) = events.get(at).map(StoredEvent::event).transpose()?.flatten() else { continue };
            let size = events[at].body.as_ref().map_or(0, |body| body.len());
            bytes += size;
            if bytes > bytes_max && !found.is_empty() && *which != Letters::Newest {
                break;
            }
            found.extend(StoredPost::of(n, event));
            sizes.push(size);
        }
        if *which == Letters::Newest {
            let mut room = bytes_max;
            let fitting = sizes.iter().rev().take_while(|size| {
                let fits = **size <= room;
                room = room.saturating_sub(**size);
                fits
            });
            let keep = fitting.count().max(usize::from(!found.is_empty()));
            found.drain(..found.len() - keep);
        }
        Ok(found)
    }
}
