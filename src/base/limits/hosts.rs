//! Bounds of several hosts at one store.

/// After how long without work a daemon takes a turn at a shared store, in milliseconds: often enough that a host is not taken for
/// dead, and that a lost word of the store about something new costs no more.
pub const HOST_BEAT_MS: u64 = 3_000;

/// How long callers wait to learn what has become of a commit without an answer, in milliseconds: longer than most failovers take.
pub const UNKNOWN_KEPT_MS: u64 = 10_000;

/// After how long without a sign of life a host is taken for dead, in milliseconds: longer than twice the time for which one that is
/// slow can keep the others out of their turns.
pub const HOST_TTL_MS: u64 = 15_000;

/// Between two words of a daemon that it has committed something, in milliseconds: each has the others ask the database.
pub const WAKE_EVERY_MS: u64 = 10;

/// A word for another host has at most so many bytes: sealed and written as text, it fits into a notification of PostgreSQL's, which has 8,000.
pub const HOST_WORD_BYTES_MAX: usize = 5_600;

/// How many words for other hosts wait at most; one more is not said.
pub const HOST_WORDS_WAITING_MAX: usize = 256;

/// How many of them are said at once.
pub const HOST_WORDS_AT_ONCE: usize = 16;

/// Between two questions for the output of one run on another host, in milliseconds: who follows gets at most 20 words a second, which are
/// some 100 KiB, and the rest with the run's end.
pub const FAR_OUTPUT_EVERY_MS: u64 = 50;

/// How long such a question waits at the other host for something new, in milliseconds.
pub const FAR_OUTPUT_PATIENCE_MS: u64 = 4_000;

/// How much longer its answer is waited for, in milliseconds, before the other host counts as one that does not answer.
pub const FAR_OUTPUT_LATE_MS: u64 = 3_000;

/// How long after the last look at it the output of a run on another host is asked for, in milliseconds.
pub const FAR_OUTPUT_LOOKED_MS: u64 = 15_000;

/// How many runs of other hosts are followed at once. Of each, as much is kept as of a run here.
pub const FAR_OUTPUTS_MAX: usize = 16;

/// How many questions of other hosts wait for output here at once; one more has no answer.
pub const FAR_OUTPUT_ASKED_MAX: usize = 64;

/// How long a daemon waits before it listens again where its connection for that was lost, in milliseconds.
pub const LISTEN_AGAIN_MS: u64 = 1_000;

/// How many hosts one repository has at most, removed ones apart: each reads what each other one writes.
pub const HOSTS_MAX: usize = 64;

/// The file with the journal's key for a host that joins is shorter than this, in bytes: it has the keys of all hosts there
/// ever were, as hexadecimal digits twice over.
pub const HOST_KEY_BYTES_MAX: u64 = 4 << 20;

/// The files with a host's key, and with what it knows of the other hosts, are shorter than this, in bytes.
pub const HOST_STATE_BYTES_MAX: u64 = 1 << 20;

/// The name of a user of a host is no longer than this, in bytes.
pub const USER_NAME_BYTES_MAX: usize = 64;

/// How many root commits of a repository are compared when a host joins.
pub const ROOT_COMMITS_MAX: usize = 64;

/// How much of what one run has left goes through the database to other hosts, in bytes: it is in memory while it does.
pub const SHARED_ARTIFACT_BYTES_MAX: usize = 8 << 20;

/// How much of it the database keeps for one repository, in bytes; the oldest goes first.
pub const SHARED_ARTIFACTS_BYTES_MAX: u64 = 512 << 20;

/// A piece of it, in bytes: a value of one row.
pub const SHARED_ARTIFACT_PIECE_BYTES: usize = 1 << 20;

/// After how long without a turn at the shared store a host ends its runs by itself, in milliseconds: they are over before another host
/// takes it for dead, so that a second attempt there is the only one.
pub const RUNS_CUT_OFF_MS: u64 = HOST_TTL_MS / 3 * 2;

/// After how long without a word from a shared store what a daemon shows is called old, in milliseconds.
pub const STALE_AFTER_MS: u64 = 2_000;
