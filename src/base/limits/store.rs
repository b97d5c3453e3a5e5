//! Bounds of the store.

/// The largest store, in bytes, that a start looks through page by page: a fifth of a second. A larger one is
/// looked through by `provost doctor`.
pub const STORE_CHECKED_BYTES_MAX: u64 = 64 << 20;

/// Events between two checkpoints of the journal, each of which waits for the disk.
pub const CHECKPOINT_EVERY: u64 = 1_000;

/// How long a checkpoint waits after the one before it, in milliseconds, where more events come.
pub const CHECKPOINT_PAUSE_MS: u64 = 1_000;

/// Events after which a checkpoint does not wait: what a start has to verify at most.
pub const CHECKPOINT_EVENTS_MAX: u64 = 8_000;

/// By how much numbers of approvals, effects and messages jump after a stop that was not clean. Commits that do
/// not wait for the disk may be lost with the machine's power, and the numbers in them had been shown; this is
/// more of them than fit between two syncs of the store.
pub const NUMBERS_SKIPPED: u64 = 100_000;

/// Pages in the store's write-ahead log before they are moved to the database, at 4 KiB each. Larger makes
/// commits cheaper and the first start after a crash slower.
pub const WAL_PAGES: u32 = 4_000;

/// How long a backup waits for a program that holds the database, in milliseconds.
pub const BACKUP_WAIT_MS_MAX: u64 = 10_000;
