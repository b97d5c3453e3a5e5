//! A check of the whole journal that runs beside the engine.

use super::{JournalVerdict, Provost};
use provost_base::EventSeq;
use provost_domain::Refusal;

impl Provost {
    /// Checks the whole journal, and shows each event to `see`: its number, its kind, and its body unless that was pruned. If `see`
    /// returns `false`, the check ends. If the connection to the store breaks, the check begins again with the first event. Returns
    /// `seen` with the verdict.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`], when the store does not answer.
    pub async fn check_journal<S: Send + 'static>(
        &self,
        mut seen: S,
        see: fn(&mut S, EventSeq, &str, Option<&str>) -> bool,
    ) -> Result<(JournalVerdict, S), Refusal> {
        self.read(move |reader| {
            let verdict = reader.verify_with(None, &mut |event| {
                see(&mut seen, event.seq, &event.kind, event.body.as_deref())
            })?;
            Ok((verdict, seen))
        })
        .await
    }
}
