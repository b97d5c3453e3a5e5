//! Bounds of several hosts at one store.

/// The time without work after which a daemon takes a turn at a shared store, in milliseconds: short enough that
/// its host does not count as dead, and that a lost notice of the store costs no more.
pub const HOST_BEAT_MS: u64 = 3_000;

/// The time for which callers wait for the outcome of a commit without an answer, in milliseconds: longer than most failovers take.
pub const UNKNOWN_KEPT_MS: u64 = 10_000;

/// The time without a sign of life after which a host counts as dead, in milliseconds: longer than twice the time
/// for which a slow host can keep the others from their turns.
pub const HOST_TTL_MS: u64 = 15_000;

/// The time between two notices of a daemon about its commits, in milliseconds: each makes the others ask the database.
pub const WAKE_EVERY_MS: u64 = 10;

/// The highest size of a word for another host, in bytes: sealed and written as text, it fits into a notification
/// of PostgreSQL, which has 8,000.
pub const HOST_WORD_BYTES_MAX: usize = 5_600;

/// The most words for other hosts that may wait; one more is not sent.
pub const HOST_WORDS_WAITING_MAX: usize = 256;

/// The number of them that are sent at once.
pub const HOST_WORDS_AT_ONCE: usize = 16;

/// The time between two requests for the output of one run on another host, in milliseconds: a follower gets at
/// most 20 words a second, which are some 100 KiB, and the rest with the run's end.
pub const FAR_OUTPUT_EVERY_MS: u64 = 50;

/// The time for which such a request waits at the other host for new output, in milliseconds.
pub const FAR_OUTPUT_PATIENCE_MS: u64 = 4_000;

/// The further time for which its answer is awaited, in milliseconds, before the other host counts as one that does not answer.
pub const FAR_OUTPUT_LATE_MS: u64 = 3_000;

/// The time after the last look at the output of a run on another host for which more of it is requested, in milliseconds.
pub const FAR_OUTPUT_LOOKED_MS: u64 = 15_000;

/// The number of runs of other hosts that are followed at once. Of each, as much is kept as of a run on this host.
pub const FAR_OUTPUTS_MAX: usize = 16;

/// The most requests of other hosts for output that wait here at once; one more gets no answer.
pub const FAR_OUTPUT_ASKED_MAX: usize = 64;

/// The time for which a daemon waits before it listens again after its connection for that was lost, in milliseconds.
pub const LISTEN_AGAIN_MS: u64 = 1_000;

/// The most hosts that one repository may have, removed ones not counted: each reads the entries of each other one.
pub const HOSTS_MAX: usize = 64;

/// The bound of the file with the journal's key for a host that joins, in bytes: it has the keys of all hosts there
/// ever were, as hexadecimal digits twice over.
pub const HOST_KEY_BYTES_MAX: u64 = 4 << 20;

/// The bound of the files with a host's key, and with its knowledge of the other hosts, in bytes.
pub const HOST_STATE_BYTES_MAX: u64 = 1 << 20;

/// The highest length of the name of a host's user, in bytes.
pub const USER_NAME_BYTES_MAX: usize = 64;

/// The number of root commits of a repository that are compared when a host joins.
pub const ROOT_COMMITS_MAX: usize = 64;

/// The most bytes of one run's results that go through the database to other hosts: they are in memory meanwhile.
pub const SHARED_ARTIFACT_BYTES_MAX: usize = 8 << 20;

/// The most bytes of such results that the database keeps for one repository; the oldest results go first.
pub const SHARED_ARTIFACTS_BYTES_MAX: u64 = 512 << 20;

/// The size of a piece of them, in bytes: the value of one row.
pub const SHARED_ARTIFACT_PIECE_BYTES: usize = 1 << 20;

/// The time without a turn at the shared store after which a host ends its runs by itself, in milliseconds: they
/// are over before another host buries it, so that a second attempt there is the only one.
pub const RUNS_CUT_OFF_MS: u64 = HOST_TTL_MS / 3 * 2;

/// The time without news from a shared store after which a daemon marks its display as old, in milliseconds.
pub const STALE_AFTER_MS: u64 = 2_000;

/// The time for which no login of a shared database can take the text of an event away, in milliseconds: `provost.prune_events` in the tables'
/// third version has the same number. A daemon that looks at the log every few seconds has read the event long before.
pub const EVENT_TEXTS_STAY_MS: u64 = 3_600_000;
