//! Bounds of watched folders, and of files that a delegation wants watched.

/// Patterns of files that one delegation may want watched.
pub const WATCH_PATTERNS_MAX: usize = 64;

/// The longest pattern of files to be watched, in bytes.
pub const WATCH_PATTERN_LEN_MAX: usize = 1024;

/// Bytes of patterns, as regular expressions, that can always be watched together: each byte takes at most a few
/// hundred of the ten mebibytes that the matcher has. More are tried when they come.
pub const WATCH_PATTERNS_EASY_BYTES: usize = 8 << 10;

/// Matching files of one task that are remembered, at some 150 bytes each; no person reads a longer list.
pub const WATCH_FILES_MAX: usize = 10_000;

/// Directories of one task for which the kernel gives hints; its own bound counts all programs of a user together.
/// If there are more, the clock replaces the hints.
pub const WATCH_DIRS_MAX: usize = 1_024;

/// Changed files listed in a report. With long paths, a result still fits into one frame.
pub const WATCH_LISTED_MAX: usize = 100;

/// Reports on the files of one task while it runs; its end reports the rest.
pub const WATCH_REPORTS_MAX: u32 = 100;

/// Tasks whose files are watched at once.
pub const WATCHED_TASKS_MAX: usize = 64;

/// Folders that one part of the daemon has watched for changes; the system's own bound counts all programs of a
/// user together.
pub const WATCH_FOLDERS_MAX: usize = 32_768;

/// Folders that a daemon has watched in all: the largest repository, and as many folders of its other work trees.
/// The kernel takes about a kilobyte for each.
pub const WATCH_FOLDERS_ALL_MAX: usize = 2 * WATCH_FOLDERS_MAX;

/// Changed folders, beyond which everything is examined instead.
pub const WATCH_EVENTS_MAX: usize = 4_096;

/// The quiet time before changed files are examined, in milliseconds: a checkout writes many.
pub const WATCH_QUIET_MS: u64 = 30;

/// The longest time that changes wait for quiet, in milliseconds.
pub const WATCH_WAIT_MS_MAX: u64 = 300;
