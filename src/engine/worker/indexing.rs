//! What can be searched is taken into the index behind the commits, a bite at a time and while nothing else is asked; a search has
//! it done at once.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Worker;
use provost_base::limits::{INDEX_AFTER_MS, INDEX_BITE, INDEX_BITES_BEFORE_SEARCH};
use provost_store::Store;

/// Between two bites, when nothing else happens.
const PAUSE: Duration = Duration::from_millis(5);

/// When the next bite comes.
#[derive(Default)]
pub(super) struct Indexing {
    /// None while everything is in the index.
    at: Option<Instant>,
    /// Searches that wait for it.
    pub(super) asked: Vec<oneshot::Sender<()>>,
    /// Whether it has failed; the next start tries again.
    is_broken: bool,
}

impl Indexing {
    /// Goes on with what an earlier run has left.
    pub(super) fn begin(&mut self, store: &dyn Store) {
        if store.lacks_index() {
            self.wait_for_more();
        }
    }

    /// There is something new, and soon more of it.
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
    /// A bite where it is time and nothing else is asked; some bites where a search waits.
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
        // A search without all of it says so.
        self.indexing.asked.drain(..).for_each(|it| {
            // The searcher may have given up.
            let _ = it.send(());
        });
    }

    /// `true` where there is more.
    fn bite(&mut self) -> bool {
        self.store.index(INDEX_BITE).unwrap_or_else(|err| {
            tracing::warn!(%err, "the index of words could not be written; searches do not find what is new");
            self.indexing.is_broken = true;
            false
        })
    }
}
