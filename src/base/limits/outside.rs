//! Bounds of what is found out about programs that run outside of every jail, and about what is too large for a copy.

/// Files that are named where a directory is too large for a copy.
pub const HEAVY_NAMED_MAX: usize = 5;

/// Shells in shells that are followed in a command line.
pub const LINE_DEPTH_MAX: usize = 5;

/// Words of one command line, or of one script, that are looked at.
pub const LINE_WORDS_MAX: usize = 4_096;

/// A script or a file of settings that is read for what it runs, in bytes.
pub const SCRIPT_BYTES_MAX: u64 = 256 << 10;

/// Scripts that are read for what they run.
pub const SCRIPTS_READ_MAX: usize = 256;

/// Ends of paths that are held wherever they lie.
pub const ENDS_HELD_MAX: usize = 64;

/// Files that git's configuration includes under a condition that does not hold, and that are read all the same.
pub const GIT_INCLUDES_MAX: usize = 64;
