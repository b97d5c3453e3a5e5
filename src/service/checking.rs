//! A check of the whole journal, beside the engine.

use super::{JournalVerdict, Provost};
use provost_base::EventSeq;
use provost_domain::Refusal;

impl Provost {
    /// Checks the whole journal, and shows each event that holds to `see`: its number, its kind, and its body where that was not
    /// pruned. A `false` ends the check. A store that went away begins again with the first event. What was seen comes back.
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
