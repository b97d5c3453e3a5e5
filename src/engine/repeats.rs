//! Repeated statuses, which doors accept without asking the engine.
//!
//! ```text
//!   [published] --the same again--> [taken in] --the engine's next step--> [on record]
//!        ^                               |
//!        +---- anything else ------------+---- the daemon is killed first --> [said once, as it was]
//! ```
//! Agents report every few seconds that they work. After each commit the engine notes an agent's last status here;
//! a door counts and acknowledges an equal one here. The engine records it, with a number of its own, before it
//! carries out the next command, and after `REPEATS_TOLD_MS_MAX` at the latest. So every reader sees it, and only a
//! daemon that is killed within that time forgets the repeat of a known status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_base::Slug;
use provost_base::limits::{REPEATED_BYTES_MAX, REPEATS_MAX, REPEATS_SOON};
use provost_domain::post::{Post, slug};
use provost_domain::{Event, EventKind, Principal};

/// A status that is on record, and its principal.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Said {
    pub(super) who: Principal,
    pub(super) post: Post,
}

/// The result of taking in a status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// The status is news, or there is no room.
    No,
    /// The status is a repeat, and waits to be recorded.
    Yes,
    /// It is a repeat, and the first that waits: the engine has to look within `REPEATS_TOLD_MS_MAX`.
    First,
    /// It is a repeat, and so many wait that the engine should look now.
    Many,
}

/// Repeats of statuses that wait to be recorded.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    inner: Mutex<Inner>,
    /// The number of statuses that wait, readable without the lock.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether repeats are taken in.
    open: bool,
    known: BTreeMap<Slug, Arc<Said>>,
    waiting: Vec<Arc<Said>>,
}

impl Repeats {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Each member is consistent at every moment.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a status in, if it equals its agent's last one, from the same principal.
    pub(super) fn take(&self, who: &Principal, post: &Post) -> Taken {
        if !matches!(post, Post::Status { .. }) {
            return Taken::No;
        }
        let slug = slug(post.sender().as_str());
        let mut inner = self.inner();
        let Inner { open: true, known, waiting } = &mut *inner else { return Taken::No };
        let same = known.get(&slug).filter(|it| it.post == *post && it.who == *who);
        let Some(same) = same.filter(|_| waiting.len() < REPEATS_MAX) else { return Taken::No };
        waiting.push(same.clone());
        self.waiting.store(waiting.len(), Ordering::Release);
        match waiting.len() {
            1 => Taken::First,
            REPEATS_SOON => Taken::Many,
            _ => Taken::Yes,
        }
    }

    /// Checks whether a repeat waits to be recorded.
    pub(super) fn any(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Returns all waiting repeats, in order.
    pub(super) fn drain(&self) -> Vec<Arc<Said>> {
        if !self.any() {
            return Vec::new();
        }
        let mut inner = self.inner();
        self.waiting.store(0, Ordering::Release);
        std::mem::take(&mut inner.waiting)
    }

    /// Puts back the repeats that could not be recorded, before later ones.
    pub(super) fn put_back(&self, mut taken: Vec<Arc<Said>>) {
        let mut inner = self.inner();
        taken.append(&mut inner.waiting);
        self.waiting.store(taken.len(), Ordering::Release);
        inner.waiting = taken;
    }

    /// Notes an agent's last status, which is in force.
    pub(super) fn learn(&self, said: Said) {
        if bytes(&said.post) <= REPEATED_BYTES_MAX {
            self.inner().known.insert(slug(said.post.sender().as_str()), Arc::new(said));
        }
    }

    /// Follows a published event: its sender's earlier status is no longer the last one.
    pub(super) fn follow(&self, event: &Event) {
        let EventKind::Published { post, .. } = &event.kind else { return };
        let slug = slug(post.sender().as_str());
        let mut inner = self.inner();
        if inner.known.get(&slug).is_some_and(|it| it.post != *post) {
            inner.known.remove(&slug);
        }
    }

    /// Forgets an agent that no longer has an inbox.
    pub(super) fn forget(&self, slug: &Slug) {
        self.inner().known.remove(slug);
    }

    /// Begins or stops taking repeats in; known statuses are forgotten.
    pub(super) fn open(&self, open: bool) {
        let mut inner = self.inner();
        inner.open = open;
        inner.known.clear();
    }
}

/// Returns for each of some statuses, in order, whether it is its agent's last one.
pub(super) fn last_ones(said: &[Arc<Said>]) -> Vec<bool> {
    let mut later = BTreeSet::new();
    let mut last: Vec<bool> = said.iter().rev().map(|it| later.insert(it.post.sender())).collect();
    last.reverse();
    last
}

/// Returns roughly how many bytes a status takes in memory.
fn bytes(post: &Post) -> usize {
    let Post::Status { agent, status, files, message, cli, phase, detail } = post else { return usize::MAX };
    let texts = [message, cli, phase].into_iter().flatten().map(|it| it.len()).sum::<usize>();
    let files = files.iter().map(|it| it.len() + size_of::<Box<str>>()).sum::<usize>();
    agent.as_str().len() + status.len() + texts + files + detail.as_ref().map_or(0, |it| it.as_str().len())
}
