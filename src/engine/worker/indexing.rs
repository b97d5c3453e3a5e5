//! The index of the search, which is made after the commits, in small portions and in pauses of the work; a search has it
//! done at once.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Worker;
use provost_base::limits::{
    INDEX_AFTER_MS, INDEX_AGAIN_MS, INDEX_AGAIN_MS_MAX, INDEX_BITE, INDEX_BITES_BEFORE_SEARCH, INDEX_LATE_MS,
    INDEX_QUIET_MS,
};
use provost_store::{Indexed, Store, StoreError};

/// The pause between two portions, if there is no other work.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the next attempt waits after one that has failed, and after many of them.
const AGAIN: Duration = Duration::from_millis(INDEX_AGAIN_MS);
const AGAIN_MAX: Duration = Duration::from_millis(INDEX_AGAIN_MS_MAX);
const AFTER: Duration = Duration::from_millis(INDEX_AFTER_MS);
const QUIET: Duration = Duration::from_millis(INDEX_QUIET_MS);
const LATE: Duration = Duration::from_millis(INDEX_LATE_MS);

/// When the next portion is indexed.
#[derive(Default)]
pub(super) struct Indexing {
    /// When the first event came that is not in the index; `None` while everything is in it.
    since: Option<Instant>,
    /// The earliest time of the next portion.
    next: Option<Instant>,
    /// When this daemon or another one last committed events.
    worked: Option<Instant>,
    /// Searches that wait for the index.
    pub(super) asked: Vec<oneshot::Sender<()>>,
    /// How long the next attempt waits, if the last one has failed.
    failed: Option<Duration>,
}

impl Indexing {
    /// Continues after an earlier run that has left rows to index.
    pub(super) fn begin(&mut self, store: &dyn Store) {
        if store.lacks_index() {
            self.since.get_or_insert_with(Instant::now);
        }
    }

    /// Notes that events were committed: they have to be indexed, and there is work that is not to wait for that.
    pub(super) fn has_events(&mut self) {
        let now = Instant::now();
        self.worked = Some(now);
        self.since.get_or_insert(now);
    }

    fn due(&self) -> Option<Instant> {
        let since = self.since?;
        let in_a_pause = self.worked.map_or(since, |it| it + QUIET).max(since + AFTER);
        let due = in_a_pause.min(since + LATE);
        Some(self.next.map_or(due, |next| due.max(next)))
    }

    pub(super) fn is_due(&self) -> bool {
        self.due().is_some_and(|at| at <= Instant::now())
    }

    /// Whether events have waited so long that commands have to wait for a portion.
    fn is_late(&self) -> bool {
        self.since.is_some_and(|at| at + LATE <= Instant::now())
    }

    /// Whether the last portion has failed not long ago: a search does not wait for another failure.
    fn waits_after_failure(&self) -> bool {
        self.failed.is_some() && self.next.is_some_and(|at| at > Instant::now())
    }

    pub(super) fn due_in(&self) -> Option<Duration> {
        self.due().map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Notes what the last portion has left, and whether events are missing in the index.
    fn has_done(&mut self, left: Indexed, lacks: bool) {
        let pause = match left {
            // Another host goes on. This one looks again later.
            Indexed::ByAnother if lacks => LATE,
            _ => PAUSE,
        };
        self.next = Some(Instant::now() + pause);
        self.since = self.since.or_else(|| Some(Instant::now())).filter(|_| lacks && left != Indexed::All);
        self.failed = None;
    }

    /// Notes that a portion could not be indexed. Another host may have had the row for too long, or the server was away: it is tried again,
    /// after a longer and longer time.
    fn has_failed(&mut self, err: &StoreError) {
        let wait = self.failed.map_or(AGAIN, |it| (it * 2).min(AGAIN_MAX));
        tracing::warn!(
            %err,
            again_after_s = wait.as_secs(),
            "the index of words could not be written; until then, searches do not find what is new"
        );
        (self.failed, self.next) = (Some(wait), Some(Instant::now() + wait));
        self.since.get_or_insert_with(Instant::now);
    }
}

impl Worker {
    /// Indexes a portion if it is time and no command waits, or if the index is late; several portions if a search waits.
    pub(super) fn index(&mut self, is_idle: bool) {
        let is_asked = !self.indexing.asked.is_empty();
        let is_time = is_asked || (self.indexing.is_due() && (is_idle || self.indexing.is_late()));
        if !is_time || (self.store.is_away() && !is_asked) {
            return;
        }
        if self.have_store(&mut []) && self.broken.is_none() && !self.indexing.waits_after_failure() {
            let bites = if is_asked { INDEX_BITES_BEFORE_SEARCH } else { 1 };
            match self.bites(bites) {
                Ok(left) => self.indexing.has_done(left, self.store.lacks_index()),
                Err(err) => {
                    self.indexing.has_failed(&err);
                    // A command that has come meanwhile would wait for such a server as long again.
                    if err.silent().is_some() {
                        self.turned_away(&err);
                    }
                }
            }
        }
        // A search over an incomplete index reports that.
        self.indexing.asked.drain(..).for_each(|it| {
            // The caller of the search may have gone.
            let _ = it.send(());
        });
    }

    /// Indexes at most so many portions.
    fn bites(&mut self, most: u32) -> Result<Indexed, StoreError> {
        let mut left = Indexed::More;
        for _ in 0..most {
            if left == Indexed::All || !self.store.lacks_index() {
                break;
            }
            left = self.store.index(INDEX_BITE)?;
        }
        Ok(left)
    }
}
