//! Ends a wait or a stream of events when the proof with which it began holds no longer.
//!
//! A proof ends in three places: a token that was revoked in the engine, one that has run out with the time,
//! and a name that became reserved in the key ring. [`Names::changed`] is the notice of all three, but for a
//! token's own end, for which a wait has a deadline. A look reads memory alone.

use std::pin::pin;

use provost_auth::names::{HoldsFor, Names};

/// The result of some work, if the proof of the waiting caller still holds at its end. It is
/// looked at while the work waits, and once more at the end: what has ended the proof was then done before
/// the caller gets the result.
/// # Errors
/// Why the proof does not hold any more. The work is dropped.
pub(super) async fn while_proven<T, E>(
    work: impl Future<Output = T>,
    names: &Names,
    still: impl Fn() -> Result<HoldsFor, E>,
) -> Result<T, E> {
    let mut work = pin!(work);
    tokio::select! {
        // Most work is done at once, and nothing is looked for meanwhile.
        biased;
        done = work.as_mut() => still().map(|_| done),
        why = ended(names, &still) => Err(why),
    }
}

/// Returns when a proof does not hold any more, with why.
pub(super) async fn ended<E>(names: &Names, still: impl Fn() -> Result<HoldsFor, E>) -> E {
    loop {
        // Listened to before the look, so that no change falls between the two.
        let changed = names.changed();
        let HoldsFor(time) = match still() {
            Ok(holds_for) => holds_for,
            Err(why) => return why,
        };
        match time {
            // It is over by then or looked at once more.
            Some(time) => {
                let _changed_or_over = tokio::time::timeout(time, changed).await;
            }
            None => changed.await,
        }
    }
}
