//! What the engine counts of its own work.

use std::time::Duration;

use super::super::Found;
use super::Worker;
use super::beside::Batch;
use provost_domain::Change;
use provost_store::Head;

impl Worker {
    /// A batch is stored, which took so long.
    pub(super) fn committed(&self, took: Duration, batch: &Batch) {
        self.measures.commits.note(took);
        self.measures.observed().inspect(|it| it.committed(batch.commands));
    }

    /// Counts what this daemon has committed.
    pub(super) fn count(&self, changes: &[Change]) {
        let prices = &self.core.state().settings.spending;
        self.measures.observed().inspect(|it| it.follow(changes, prices));
    }

    /// The store has answered just now.
    pub(super) fn store_answers(&self) {
        self.measures.observed().inspect(|it| it.store_answers());
    }

    /// What has become of a commit without an answer is known.
    pub(super) fn found_out(&self, found: Found) {
        self.measures.observed().inspect(|it| it.found(found));
    }

    /// Memory has the shared log up to here.
    pub(super) fn has_log_to(&mut self, head: Head) {
        self.others.head = head;
        self.measures.observed().inspect(|it| it.has_log_to(head.n.0));
    }
}
