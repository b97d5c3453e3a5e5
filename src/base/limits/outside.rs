//! Bounds of the search for programs that run outside of every jail, and for files that are too large for a
//! copy.

/// Files that are named if a directory is too large for a copy.
pub const HEAVY_NAMED_MAX: usize = 5;

/// Questions to the file system about names in lines, scripts and settings, for one worker. A worker may have made
/// such files.
pub const NAMED_LOOKS_MAX: usize = 200_000;

/// The text that is parsed for this purpose, in bytes, with values of variables in it.
pub const NAMED_BYTES_MAX: usize = 16 << 20;

/// The longest time for this, in milliseconds.
pub const NAMED_MS_MAX: u64 = 10_000;

/// The most bytes of values that may be taken out of a settings file, in lengths of the file: nested values are
/// taken out repeatedly.
pub const VALUES_TIMES_MAX: usize = 16;

/// Folders in which the words of one text are searched. Each word is searched in each; a text that names more is
/// not examined completely, and keeps workers out.
pub const BASES_MAX: usize = 256;

/// Depth of nested shells that are followed in a command line; a line with more keeps workers out.
pub const LINE_DEPTH_MAX: usize = 8;

/// Words of one command line, or of one script, that are examined: twice as many as the longest scripts have that
/// are read. A text with more keeps workers out.
pub const LINE_WORDS_MAX: usize = 65_536;

/// The size of a file of settings that is read for the commands in it, in bytes; a larger one keeps workers out.
/// Some of editors have a mebibyte.
pub const SETTINGS_READ_BYTES_MAX: u64 = 2 << 20;

/// The size of a script that is read for the commands in it, in bytes. A longer shell script keeps workers out.
pub const SCRIPT_BYTES_MAX: u64 = 256 << 10;

/// Files of settings that are read for the commands in them; more of them keep workers out.
pub const SETTINGS_READ_MAX: usize = 10_000;

/// Programs and scripts that are read for the commands in them; more of them keep workers out.
pub const SCRIPTS_READ_MAX: usize = 1_024;

/// Ends of paths that are protected in every folder. Every path of a workspace is compared with each; more keep
/// workers out.
pub const ENDS_HELD_MAX: usize = 128;

/// Files that git's configuration includes under a condition that does not hold, and that
/// the daemon reads nevertheless.
pub const GIT_INCLUDES_MAX: usize = 64;

/// Other work trees of a repository in which the files that git's configuration names are searched.
pub const OTHER_TREES_MAX: usize = 16;

/// Words that one word of a command line may stand for: by a loop's variable, braces, or a default value. If there
/// are more, the folders count.
pub const WORD_CHOICES_MAX: usize = 64;

/// Patterns of files that are reported because a line runs them and their folder cannot be protected. Every path of
/// a workspace is compared with each; more keep workers out.
pub const PATTERNS_TOLD_MAX: usize = 64;

/// Signs after a brace of a command line within which its end is searched.
pub const BRACES_AHEAD_MAX: usize = 256;
