//! The index of the search, which is made after the commits, in small portions and while there is no other work; a
//! search has it done at once.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Worker;
use provost_base::limits::{INDEX_AFTER_MS, INDEX_BITE, INDEX_BITES_BEFORE_SEARCH};
use provost_store::Store;

/// The pause between two portions, if there is no other work.
const PAUSE: Duration = Duration::from_millis(5);

/// When the next portion is indexed.
#[derive(Default)]
pub(super) struct Indexing {
    /// `None` while everything is in the index.
    at: Option<Instant>,
    /// Searches that wait for the index.
    pub(super) asked: Vec<oneshot::Sender<()>>,
    /// Whether indexing has failed; the next start tries again.
    is_broken: bool,
}

impl Indexing {
    /// Continues after an earlier run that has left rows to index.
    pub(super) fn begin(&mut self, store: &dyn Store) {
        if store.lacks_index() {
            self.wait_for_more();
        }
    }

    /// Waits for more, since there is a new row, and soon there are more.
    pub(super) fn wait_for_more(&mut self) {
        if !self.is_broken {
            self.at.get_or_insert_with(|| Instant::now() + Duration::from_millis(INDEX_AFTER_MS));
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    pub(super) fn due_in(&self) -> Option<Duration> {
        self.at.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

impl Worker {
    /// Indexes a portion if it is time and there is no other work; several portions if a search waits.
    pub(super) fn index(&mut self, is_idle: bool) {
        let is_asked = !self.indexing.asked.is_empty();
        let is_time = is_asked || (is_idle && self.indexing.is_due());
        if !is_time || (self.store.is_away() && !is_asked) {
            return;
        }
        if self.have_store(&mut []) && self.broken.is_none() && !self.indexing.is_broken {
            let bites = if is_asked { INDEX_BITES_BEFORE_SEARCH } else { 1 };
            let more = (0..bites).all(|_| self.store.lacks_index() && self.bite());
            self.indexing.at = (more && self.store.lacks_index()).then(|| Instant::now() + PAUSE);
        }
        // A search over an incomplete index reports that.
        self.indexing.asked.drain(..).for_each(|it| {
            // The caller of the search may have gone.
            let _ = it.send(());
        });
    }

    /// Indexes a portion; returns `true` if there are more.
    fn bite(&mut self) -> bool {
        self.store.index(INDEX_BITE).unwrap_or_else(|err| {
            tracing::warn!(%err, "the index of words could not be written; searches do not find what is new");
            self.indexing.is_broken = true;
            false
        })
    }
}
