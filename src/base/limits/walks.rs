//! Bounds of walks through trees of folders.

/// Memory for the names of the folders that a walk is in, in bytes: a worker may fill a folder with long names.
pub const WALK_NAMES_BYTES_MAX: usize = 256 << 20;

/// The deepest directory that is examined; one descriptor is open for each level.
pub const SURVEY_DEPTH_MAX: usize = 128;

/// Names that are listed for a private copy, including those that git ignores and the copy leaves out.
pub const SNAPSHOT_ENTRIES_MAX: u64 = 2_000_000;
