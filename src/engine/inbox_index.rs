//! The number of the newest message in every inbox, which doors read without asking the engine.
//!
//! Most polls find nothing new. The engine writes here after a commit and before it answers, so a reader of a number
//! can read every message up to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use provost_base::limits::POST_AGENTS_MAX;
use provost_base::{PostSeq, Slug};
use provost_domain::{PostChange, State};

/// The newest number of one inbox.
#[derive(Debug, Default)]
pub struct InboxMark {
    newest: AtomicU64,
    /// Whether it belongs to an agent; if not, only readers wait at it.
    taken: std::sync::atomic::AtomicBool,
    /// Notified whenever there is a new message.
    pub arrived: Notify,
}

impl InboxMark {
    /// Returns the newest number in it; 0 while it is empty.
    pub fn newest(&self) -> PostSeq {
        PostSeq(self.newest.load(Ordering::Acquire))
    }
}

/// The newest numbers of all inboxes, by slug, and the notice that wakes doors when one rises.
#[derive(Debug, Default)]
pub struct InboxIndex {
    boxes: RwLock<HashMap<Slug, Arc<InboxMark>>>,
    changed: Notify,
}

impl InboxIndex {
    /// Returns the newest number in an inbox; 0 if there is no such inbox.
    pub fn newest(&self, slug: &Slug) -> PostSeq {
        let boxes = self.boxes.read().unwrap_or_else(PoisonError::into_inner);
        boxes.get(slug).map_or(PostSeq(0), |it| it.newest())
    }

    /// Checks whether an agent has an inbox.
    pub fn has(&self, slug: &Slug) -> bool {
        let boxes = self.boxes.read().unwrap_or_else(PoisonError::into_inner);
        boxes.get(slug).is_some_and(|it| it.taken.load(Ordering::Acquire))
    }

    /// Waits until an agent gets an inbox, or loses it. One listener is notified.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns an inbox to wait at, and makes it if necessary.
    pub fn at(&self, slug: &Slug) -> Arc<InboxMark> {
        if let Some(it) = self.boxes.read().unwrap_or_else(PoisonError::into_inner).get(slug) {
            return it.clone();
        }
        let mut boxes = self.boxes.write().unwrap_or_else(PoisonError::into_inner);
        if boxes.len() >= 2 * POST_AGENTS_MAX {
            // Inboxes without an agent and without a waiting reader are dropped.
            boxes.retain(|_, it| it.taken.load(Ordering::Acquire) || Arc::strong_count(it) > 1);
        }
        boxes.entry(slug.clone()).or_default().clone()
    }

    /// Takes over all inboxes of a state. Readers look again: messages may have come that this daemon has not followed.
    pub(super) fn load(&self, state: &State) {
        for it in self.boxes.read().unwrap_or_else(PoisonError::into_inner).values() {
            it.taken.store(false, Ordering::Release);
            it.newest.store(0, Ordering::Release);
        }
        for (slug, n) in state.broker.newest() {
            let it = self.at(slug);
            it.newest.store(n.0, Ordering::Release);
            it.taken.store(true, Ordering::Release);
        }
        for it in self.boxes.read().unwrap_or_else(PoisonError::into_inner).values() {
            it.arrived.notify_waiters();
        }
        self.changed.notify_one();
    }

    pub(super) fn follow(&self, change: &PostChange) {
        match change {
            PostChange::File { n, to, .. } => {
                for slug in to.iter() {
                    let it = self.at(slug);
                    it.newest.fetch_max(n.0, Ordering::AcqRel);
                    it.arrived.notify_waiters();
                }
            }
            PostChange::PutMailbox(who) => {
                let known = self.at(&who.slug).taken.swap(true, Ordering::AcqRel);
                if !known {
                    self.changed.notify_one();
                }
            }
            PostChange::DropMailbox(slug) => {
                // Readers that wait at it continue to wait: its owner may come back.
                let it = self.at(slug);
                it.taken.store(false, Ordering::Release);
                it.newest.store(0, Ordering::Release);
                self.changed.notify_one();
            }
            _ => {}
        }
    }
}
