//! Statuses that agents repeat again and again: they are recorded together.

use super::super::repeats::last_ones;
use super::Worker;
use provost_domain::command::{Publish, Republish};
use provost_domain::post::Source;
use provost_domain::{Command, Facts};

impl Worker {
    /// Applies repeated statuses. If an agent has repeated its status several times, only the last one has all
    /// consequences.
    pub(super) fn put_on_record(&mut self) {
        if self.broken.is_some() || !self.repeats.any() {
            return;
        }
        self.repeats_due = None;
        self.of_messages(Self::put_repeats_on_record);
    }

    fn put_repeats_on_record(&mut self) {
        let taken = self.repeats.drain();
        for (it, is_last) in taken.iter().zip(last_ones(&taken)) {
            let post = it.post.clone();
            let command: Command = match is_last {
                true => Publish { post, source: Source::Client }.into(),
                false => Republish { post }.into(),
            };
            if let Err(refusal) = self.apply(&it.who, command, Facts::default()) {
                tracing::debug!(agent = %it.who, %refusal, "a repeated status is not recorded");
            }
        }
        self.repeated.extend(taken);
    }
}
