//! Ends a wait or a stream of events when the proof with which it began is no longer valid.
//!
//! A proof ends in three ways: the engine revokes its token, the token expires, or its name becomes reserved in the
//! key ring. [`Names::changed`] signals all of them except expiry, for which a wait has a deadline. A check reads
//! memory only.

use std::pin::pin;

use provost_auth::names::{HoldsFor, Names};

/// Returns the result of some work, if the proof of the waiting caller is still valid at its end. The proof is
/// checked while the work waits, and once more at the end: the change that ends a proof then comes before the
/// caller gets the result.
/// # Errors
/// The reason why the proof is no longer valid. The work is dropped.
pub(super) async fn while_proven<T, E>(
    work: impl Future<Output = T>,
    names: &Names,
    still: impl Fn() -> Result<HoldsFor, E>,
) -> Result<T, E> {
    let mut work = pin!(work);
    tokio::select! {
        // Most work is done at once, and then nothing else is polled.
        biased;
        done = work.as_mut() => still().map(|_| done),
        why = ended(names, &still) => Err(why),
    }
}

/// Returns when a proof is no longer valid, with the reason.
pub(super) async fn ended<E>(names: &Names, still: impl Fn() -> Result<HoldsFor, E>) -> E {
    loop {
        // The signal is armed before the check, so that no change in between is missed.
        let changed = names.changed();
        let HoldsFor(time) = match still() {
            Ok(holds_for) => holds_for,
            Err(why) => return why,
        };
        match time {
            // The proof has expired by then, or is checked once more.
            Some(time) => {
                let _changed_or_over = tokio::time::timeout(time, changed).await;
            }
            None => changed.await,
        }
    }
}
