//! Bounds of what is found out about programs that run outside of every jail, and about what is too large for a copy.

/// Files that are named where a directory is too large for a copy.
pub const HEAVY_NAMED_MAX: usize = 5;

/// Folders that wait to be looked at for what is too large: no more than their paths can be kept.
pub const HEAVY_FOLDERS_MAX: usize = 10_000;

/// Questions to the file system about what lines, scripts and settings name, for one worker. A worker can have made such files.
pub const NAMED_LOOKS_MAX: usize = 200_000;

/// Text that is taken apart for the same, in bytes, with values of variables that stand in it.
pub const NAMED_BYTES_MAX: usize = 16 << 20;

/// How long the same may take, in milliseconds.
pub const NAMED_MS_MAX: u64 = 10_000;

/// How often the length of a settings file is taken out of it as values, at most: those that lie in others come again.
pub const VALUES_TIMES_MAX: usize = 16;

/// Folders in which the words of one text are looked for.
pub const BASES_MAX: usize = 64;

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
