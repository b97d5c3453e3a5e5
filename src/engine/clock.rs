//! Where the engine gets its time.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::base::Timestamp;

/// A source of time. The real one reads the system clock; tests turn theirs by hand.
pub trait Clock: Send {
    /// The time now. The engine never lets it run backwards.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
