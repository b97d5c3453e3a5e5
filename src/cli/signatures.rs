//! Checks again, from the journal alone, the requests that passkeys have signed.

use super::CliError;
use super::cli_error::{DONE, UNCHECKED};
use provost_base::EventSeq;
use provost_base::limits::EVENT_PAGE_MAX;
use provost_passkey::record::{Checked, Record};
use provost_store::Reader;

/// Returns the exit code of a check: signatures that could not be checked are no success.
pub(super) fn exit_code(it: Checked) -> u8 {
    if it.without_key > 0 { UNCHECKED } else { DONE }
}

/// Checks every signed word in the journal.
///
/// # Errors
/// The first event whose signature does not hold.
pub(super) fn check(reader: &mut dyn Reader) -> Result<Checked, CliError> {
    let (mut record, mut last) = (Record::default(), EventSeq::default());
    loop {
        let page = reader.events_after(last, EVENT_PAGE_MAX)?;
        let Some(newest) = page.last() else { return Ok(record.checked()) };
        last = newest.seq;
        for event in &page {
            record.take(&event.kind, event.body.as_deref()).map_err(|why| {
                CliError::of("a signature in the journal does not hold")
                    .because(format!("event {}: {why}", event.seq))
                    .next("provost journal export, and docs/passkeys.md for a check by other means")
            })?;
        }
    }
}
