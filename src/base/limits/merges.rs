//! Bounds of merges.

/// Branches of one merge, or of one request to the queue: their pairs are compared, about half the square of their
/// number.
pub const MERGE_BRANCHES_MAX: usize = 100;

/// Branches that wait in the queue.
pub const MERGES_WAITING_MAX: usize = 500;

/// Entries that are remembered after they were merged or set aside; older ones are in the journal alone.
pub const MERGES_OVER_MAX: usize = 200;

/// Git's answer to one question of a merge, in bytes: a list of 100,000 files with long names fits.
pub const MERGE_ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The longest time that git may take for one step of a merge, in seconds.
pub const MERGE_GIT_SECONDS_MAX: u64 = 120;

/// Files that a branch to be merged may change.
pub const MERGE_FILES_MAX: usize = 50_000;

/// Source files of one tree in which calls are searched; in a larger tree, only the branches' changes are examined.
pub const MERGE_SOURCES_MAX: usize = 5_000;

/// Conflicts that are reported for one branch; more are counted.
pub const MERGE_TOLD_MAX: usize = 50;

/// The number of times that a branch is merged again because another one has moved the trunk meanwhile.
pub const MERGE_TRIES_MAX: usize = 5;

/// Bytes from the end of a failed check's output that the branch's owner gets.
pub const MERGE_CHECK_TOLD_BYTES_MAX: usize = 4_096;

/// Commits of a branch in which its owner is searched.
pub const MERGE_COMMITS_MAX: usize = 500;

/// Conflicts that a model is given; more are counted.
pub const MERGE_LISTED_MAX: usize = 40;

/// Contents of files that a merge reads at once, in bytes.
pub const MERGE_CONTENTS_AT_ONCE_BYTES: usize = 32 << 20;

/// Kept bytes of git's standard error.
pub const GIT_ERROR_BYTES_MAX: u64 = 4_096;
