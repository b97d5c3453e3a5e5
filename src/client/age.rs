//! The age of what a daemon has answered, where the database that has its state does not answer it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The greatest age of the answers to some clients. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct Age(Arc<AtomicU64>);

impl Age {
    /// Notes that an answer may be so old.
    pub fn note(&self, ms: u64) {
        self.0.fetch_max(ms, Ordering::Relaxed);
    }

    /// Returns how old an answer may be; `None` if all are of the moment at which they came.
    pub fn greatest(&self) -> Option<Duration> {
        let age = Duration::from_millis(self.0.load(Ordering::Relaxed));
        (!age.is_zero()).then_some(age)
    }

    /// Says how old an answer may be; `None` if all are of the moment at which they came.
    pub fn in_words(&self) -> Option<String> {
        self.greatest().map(|age| {
            let seconds = age.as_secs().max(1);
            format!("the database does not answer the daemon, or did not for a while: what is said here may be {seconds} s old")
        })
    }
}
