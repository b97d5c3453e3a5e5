//! Bounds of several hosts at one store.

/// After how long without work a daemon takes a turn at a shared store, in milliseconds: often enough that a host is not taken for
/// dead, and that a lost word of the store about something new costs no more.
pub const HOST_BEAT_MS: u64 = 3_000;

/// How long callers wait to learn what has become of a commit without an answer, in milliseconds: longer than most failovers take.
pub const UNKNOWN_KEPT_MS: u64 = 10_000;

/// After how long without a word from a shared store what a daemon shows is called old, in milliseconds.
pub const STALE_AFTER_MS: u64 = 2_000;
