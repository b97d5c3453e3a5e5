//! Bounds of the search for programs that run outside of every jail, and for files that are too large for a
//! copy.

/// Files that are named where a directory is too large for a copy.
pub const HEAVY_NAMED_MAX: usize = 5;

/// Questions to the file system about what lines, scripts and settings name, for one worker. A worker can
/// have made such files.
pub const NAMED_LOOKS_MAX: usize = 200_000;

/// Text that is taken apart for the same, in bytes, with values of variables that stand in it.
pub const NAMED_BYTES_MAX: usize = 16 << 20;

/// How long the same may take, in milliseconds.
pub const NAMED_MS_MAX: u64 = 10_000;

/// How often the length of a settings file is taken out of it as values, at most: those that lie in others
/// come again.
pub const VALUES_TIMES_MAX: usize = 16;

/// Folders in which the words of one text are looked for. Each word is looked for in each; a text that names
/// more is not looked at whole, and keeps workers out.
pub const BASES_MAX: usize = 256;

/// Shells in shells that are followed in a command line; one that has more keeps workers out.
pub const LINE_DEPTH_MAX: usize = 8;

/// Words of one command line, or of one script, that are looked at: twice as many as the longest scripts have
/// that are read. One that has more keeps workers out.
pub const LINE_WORDS_MAX: usize = 65_536;

/// A file of settings that is read for what it runs, in bytes; a larger one keeps workers out. Editors keep
/// some of a mebibyte.
pub const SETTINGS_READ_BYTES_MAX: u64 = 2 << 20;

/// A script that is read for what it runs, in bytes. A longer script of a shell's keeps workers out.
pub const SCRIPT_BYTES_MAX: u64 = 256 << 10;

/// Files of settings that are read for what they run; more of them keep workers out.
pub const SETTINGS_READ_MAX: usize = 10_000;

/// Programs and scripts that are looked into for what they run; more of them keep workers out.
pub const SCRIPTS_READ_MAX: usize = 1_024;

/// Ends of paths that are held wherever they lie. Every path of a workspace is compared with each; more keep
/// workers out.
pub const ENDS_HELD_MAX: usize = 128;

/// Files that git's configuration includes under a condition that does not hold, and that
/// the daemon reads nevertheless.
pub const GIT_INCLUDES_MAX: usize = 64;

/// Other work trees of a repository in which it is looked for what git's configuration names.
pub const OTHER_TREES_MAX: usize = 16;

/// Words that one word of a command line stands for: of a loop's variable, of braces, of a default value. Of
/// more, the folders count.
pub const WORD_CHOICES_MAX: usize = 64;

/// Patterns of files that are reported because a line runs them and their folder cannot be held. Every path of
/// a workspace is compared with each; more keep workers out.
pub const PATTERNS_TOLD_MAX: usize = 64;

/// Signs behind a brace of a command line in which its end is looked for.
pub const BRACES_AHEAD_MAX: usize = 256;
