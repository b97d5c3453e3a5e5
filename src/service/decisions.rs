//! Reads the recorded decisions of the rules, beside the engine.

use std::time::Instant;

use super::Provost;
use provost_domain::Refusal;
use provost_domain::view::LiveTask;
use provost_store::{RecordedDecisions, recorded_decisions};

impl Provost {
    /// Returns the newest decisions of the rules and the number of the newest event. `bounds` are the most
    /// decisions and the most events to read; the read ends at `until`.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`], when the store does not answer.
    pub async fn recorded_decisions(
        &self,
        bounds: (usize, u64),
        until: Instant,
    ) -> Result<(RecordedDecisions, u64), Refusal> {
        let head = self.engine().journal_head().await?.seq;
        let mut found = self.read(move |reader| recorded_decisions(reader, head, bounds, until)).await?;
        // A task that has not ended is in memory.
        for it in found.decisions.iter_mut().filter(|it| it.task.is_none()) {
            if let Some(id) = it.event.kind.task()
                && let Some(task) = self.view(LiveTask(id.clone())).await?
            {
                it.task = Some((*task).clone());
            }
        }
        Ok((found, head.0))
    }
}
