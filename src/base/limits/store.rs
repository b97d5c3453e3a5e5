//! Bounds of the store.

/// The largest store, in bytes, whose pages a start checks one by one: a fifth of a second. `provost doctor` checks
/// a larger one.
pub const STORE_CHECKED_BYTES_MAX: u64 = 64 << 20;

/// Events between two checkpoints of the journal; each checkpoint waits for the disk.
pub const CHECKPOINT_EVERY: u64 = 1_000;

/// The time for which a checkpoint waits after the one before it, in milliseconds, if more events come.
pub const CHECKPOINT_PAUSE_MS: u64 = 1_000;

/// Events after which a checkpoint does not wait: the most that a start has to verify.
pub const CHECKPOINT_EVENTS_MAX: u64 = 8_000;

/// Checkpoints of a shared store that a load reads at a time, newest first, if the first one has no seal of a host.
pub const CHECKPOINTS_LOOKED_AT: i64 = 10_000;

/// The highest number of starts, of a host's entries and of a finished task that counts in a shared store. Each login can write such a number, and
/// the next one has to fit its column.
pub const POSTGRES_NUMBER_MAX: i64 = i64::MAX / 2;

/// The newest entries of the shared log in which a load looks for numbers that were given, if the repository's row does not say them.
pub const ENTRIES_COUNTED: u64 = 2_000;

/// By how much numbers of approvals, effects and messages jump after a stop that was not clean. Commits that do not
/// wait for the disk may be lost with the machine's power, although the numbers in them were shown; this is more of
/// them than fit between two syncs of the store.
pub const NUMBERS_SKIPPED: u64 = 100_000;

/// The greatest step of a number that a host accepts from another one. Numbers are skipped after a failover, and where a login has changed the
/// repository's row, which it can do several times before a host looks.
pub const NUMBERS_SKIPPED_AT_ONCE_MAX: u64 = 1_000 * NUMBERS_SKIPPED;

/// Pages in the store's write-ahead log before they are moved to the database, at 4 KiB each. A larger number makes
/// commits cheaper and the first start after a crash slower.
pub const WAL_PAGES: u32 = 4_000;

/// The time for which a backup waits for a program that holds the database, in milliseconds.
pub const BACKUP_WAIT_MS_MAX: u64 = 10_000;

/// The longest search, in bytes: more than a person types.
pub const SEARCH_LEN_MAX: usize = 300;

/// Words of a search; each is one more list to search.
pub const SEARCH_WORDS_MAX: usize = 12;

/// Rows of each kind in one page of a search: some screens.
pub const SEARCH_ROWS_MAX: usize = 100;

/// The highest number of events that one page of a search reads; further ones are on the next page.
pub const SEARCH_LOOKED_AT_MAX: usize = 2_000;

/// The text of one task or event that can be searched, in bytes: some screens.
pub const SEARCH_TEXT_BYTES_MAX: usize = 64 << 10;

/// Characters around a match: one line of a wide screen.
pub const SEARCH_EXCERPT_CHARS: usize = 160;

/// Events that are indexed at a time, so that no command waits long for it.
pub const INDEX_BITE: u32 = 100;

/// The most text that is indexed at a time, in bytes.
pub const INDEX_BITE_BYTES_MAX: usize = 256 << 10;

/// The time for which new events wait for others before they are indexed, in milliseconds: a few large pieces are
/// cheaper to search than many small ones. A search does not wait.
pub const INDEX_AFTER_MS: u64 = 1_000;

/// How long no event is committed, by this host or another one, before the next portion is indexed, in milliseconds: a portion over a shared
/// store costs all hosts a turn.
pub const INDEX_QUIET_MS: u64 = 250;

/// The longest time for which events that come without a pause keep the index waiting, in milliseconds. Then it is made between the commands.
pub const INDEX_LATE_MS: u64 = 10_000;

/// How long the index waits after a portion that could not be written, in milliseconds; each further failure doubles it.
pub const INDEX_AGAIN_MS: u64 = 10_000;

/// The longest such wait, in milliseconds.
pub const INDEX_AGAIN_MS_MAX: u64 = 600_000;

/// The highest number of portions that are indexed before a search looks; the rest is found a little later, and the answer says so.
pub const INDEX_BITES_BEFORE_SEARCH: u32 = 20;

/// Tasks of one page.
pub const TASK_PAGE_MAX: usize = 200;

/// Finished tasks that are read for one page of those that pass a filter; a page may be short, and then says where to continue.
pub const TASK_PAGE_SCANNED_MAX: usize = 1_000;

/// The part of a goal that is compared with the words of a filter, in bytes: some screens.
pub const TASK_TEXT_LOOKED_AT: usize = 16 << 10;

/// The free space on the disk of the store below which a person is told, in bytes: room for some hours of busy agents.
pub const DISK_FREE_BYTES_MIN: u64 = 512 << 20;
