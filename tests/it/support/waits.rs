//! Ways to wait: until another process or task has brought something about, or long enough to see that
//! nothing does. Tests do not sleep; these do it for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether a condition comes true in this time.
pub(crate) fn within(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(STEP);
    }
}

/// Returns a value as soon as there is one.
#[track_caller]
pub(crate) fn until_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    within(PATIENCE, || {
        found = find();
        found.is_some()
    });
    found.unwrap_or_else(|| panic!("{what} did not happen"))
}

/// Waits for a condition that another task brings about.
pub(crate) async fn eventually_so(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < until, "{what} did not happen");
        tokio::time::sleep(STEP).await;
    }
}

/// Looks all the time whether something stays as it is: that nothing happens can be seen in no other way.
#[track_caller]
pub(crate) fn stays(what: &str, time: Duration, mut condition: impl FnMut() -> bool) {
    assert!(!within(time, || !condition()), "{what} did not stay so");
}

/// Tells the threads beside a test that it is over, also where the test fails: the scope of a failed test waits for them.
pub(crate) struct Ends<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
