//! Ends a wait or a stream of events when the proof with which it began holds no longer.

use std::pin::pin;
use std::time::Duration;

/// Interval of the check whether a waiting caller may still use its name. It is a look and no wait, since a proof ends in three
/// places that share no notice: a token that was revoked is in the engine, one that has run out is a matter of the clock, which
/// may jump when the machine wakes, and a name that became reserved is in the key ring. A look reads memory alone.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The result of some work, if the proof of the waiting caller still holds at its end. It is
/// checked at intervals, and once more at the end: what has ended the proof was then done before
/// the caller gets the result.
/// # Errors
/// Why the proof does not hold any more. The work is dropped.
pub(super) async fn while_proven<T, E>(
    work: impl Future<Output = T>,
    still: impl Fn() -> Result<(), E>,
) -> Result<T, E> {
    let mut work = pin!(work);
    loop {
        let done = tokio::time::timeout(LOOK_EVERY, work.as_mut()).await;
        still()?;
        if let Ok(done) = done {
            return Ok(done);
        }
    }
}

/// Returns when a proof does not hold any more, with why.
pub(super) async fn ended<E>(still: impl Fn() -> Result<(), E>) -> E {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Err(why) = still() {
            return why;
        }
    }
}
