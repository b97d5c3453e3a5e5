//! The engine's counts of its own work.

use std::time::Duration;

use super::super::Found;
use super::Worker;
use super::beside::Batch;
use provost_domain::Change;
use provost_store::Head;

impl Worker {
    /// Counts a stored batch, with the time that its commit took.
    pub(super) fn committed(&self, took: Duration, batch: &Batch) {
        self.measures.commits.note(took);
        self.trouble.tell_commit(took);
        self.measures.observed().inspect(|it| it.committed(batch.commands));
    }

    /// Counts the changes that this daemon has committed.
    pub(super) fn count(&self, changes: &[Change]) {
        let prices = &self.core.state().settings.spending;
        self.measures.observed().inspect(|it| it.follow(changes, prices));
    }

    /// Notes that the store has just answered.
    pub(super) fn store_answers(&self) {
        self.measures.observed().inspect(|it| it.store_answers());
    }

    /// Counts the later finding about a commit without an answer.
    pub(super) fn found_out(&self, found: Found) {
        self.measures.observed().inspect(|it| it.found(found));
    }

    /// Notes that memory has the shared log up to here.
    pub(super) fn has_log_to(&mut self, head: Head) {
        self.others.head = head;
        self.measures.observed().inspect(|it| it.has_log_to(head.n.0));
    }
}
