//! Bounds of previews and applies.

/// Artifacts of one call, if `changes.files_per_call` is missing. A6s 3.3.
pub const APPLY_FILES_USUAL: usize = 500;

/// The largest value of `changes.files_per_call`.
pub const APPLY_FILES_MAX: usize = 2_000;

/// Content of one artifact, and of a file that an artifact replaces, in bytes. A6s 3.3; the replaced content is
/// kept for an undo.
pub const ARTIFACT_BYTES_MAX: usize = 8 << 20;

/// The longest diff that is shown, in bytes; of a longer one only the lines are counted. A6s 6.8.
pub const DIFF_BYTES_MAX: usize = 1 << 20;

/// Diffs of one preview together, in bytes; for further ones, only the lines are counted.
pub const DIFFS_BYTES_MAX: usize = 8 << 20;

/// The longest time that the diffs of one call may take to be computed, in milliseconds; a diff cut off then is
/// coarser, but correct.
pub const DIFF_MS_MAX: u64 = 3_000;

/// The number of times that an apply reads a file that keeps changing before it gives up on it.
pub const APPLY_TRIES_MAX: usize = 5;

/// Files that are examined or written at once, over all calls; each takes a thread meanwhile.
pub const APPLIERS_MAX: usize = 4;

/// Applies that can be undone; the oldest give way.
pub const APPLIES_MAX: usize = 200;

/// Old contents that all applies together keep, in bytes; the oldest give way.
pub const APPLIES_BYTES_MAX: u64 = 256 << 20;

/// The longest line of an apply's record, in bytes: paths, digests, and folders that were made on the way.
pub const APPLY_LINE_BYTES_MAX: usize = 64 << 10;

/// Applied files that one command reports. With no more at once, a reader of the timeline need not wait for the
/// last one.
pub const APPLIED_TOLD_AT_ONCE: usize = 32;

/// Files that are remembered because an apply wrote them, until the watch has seen them.
pub const APPLIED_REMEMBERED_MAX: usize = 2_000;

/// Bytes of the differences of an apply that an approver is shown. A person reads no more, and mail holds it.
pub const APPROVAL_DIFF_BYTES_MAX: usize = 16 << 10;
