//! Limits of the indexes that compilers write.

/// Names in a `.scip` index. A million lines of code have some ten million; in a project of that size, the
/// guesses that the index would correct are not needed.
pub const SCIP_OCCURRENCES_MAX: usize = 4_000_000;

/// The size of a `.scip` index that is read, in bytes; it is held in memory meanwhile.
pub const SCIP_BYTES_MAX: usize = 64 << 20;

/// `.scip` indexes that are read: more than there are languages.
pub const SCIP_FILES_MAX: usize = 16;
