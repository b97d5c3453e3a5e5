//! Limits of the indexes that compilers write.

/// Names in a `.scip` index. A million lines of code have some ten million; in a project of that size, the
/// index is refused, and the calls are those that are found without it.
pub const SCIP_OCCURRENCES_MAX: usize = 4_000_000;

/// The size of a `.scip` index that is read, in bytes; it is held in memory meanwhile.
pub const SCIP_BYTES_MAX: usize = 64 << 20;

/// `.scip` indexes that are read: more than there are languages.
pub const SCIP_FILES_MAX: usize = 16;

/// The last column at which a name of an index is looked for: a line is gone through for each name in it.
pub const SCIP_COLUMN_MAX: u32 = 10_000;

/// The most entries of the root folder that are looked at for indexes.
pub const SCIP_ROOT_ENTRIES_MAX: usize = 20_000;

/// The most bytes from the beginning of a call to the called name.
pub const SCIP_CALL_BYTES_MAX: u32 = 4_096;

/// The most characters of the name of a program that has made an index.
pub const SCIP_TOOL_CHARS_MAX: usize = 100;

/// The most names of an index that stand for one another in a row: `a` of `exports = { a }`, which is `a` of `const { a } = require("b")`.
pub const SCIP_NAMES_MAX: usize = 8;
