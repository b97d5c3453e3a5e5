//! How long history is kept, and what was removed because of it.

use std::time::Duration;

/// The times for which history is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The time for which finished tasks are kept. Afterwards their ids are free again.
    pub tasks: Duration,
    /// The highest number of finished tasks; the oldest go first.
    pub tasks_most: u32,
    /// The time for which the bodies of events are kept. Their links of the chain are kept forever.
    pub events: Duration,
}

/// The rows that one call of [`crate::Store::prune`] removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Finished tasks that were removed.
    pub tasks: u32,
    /// Events whose bodies were removed; their links stay in the chain.
    pub events: u32,
    /// Whether there are more rows to remove.
    pub more: bool,
}
