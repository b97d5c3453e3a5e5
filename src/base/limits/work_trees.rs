//! Bounds of the work trees in which runs leave commits.

/// The longest name of a branch, in bytes. Git makes a file or folder of each part, and a file's name has at most
/// 255 bytes with git's own ending.
pub const BRANCH_LEN_MAX: usize = 200;

/// The longest time that git may take to make a work tree, in milliseconds: it writes every file of the repository.
pub const TREE_MADE_MS_MAX: u64 = 10 * 60 * 1000;

/// The longest time that any other command of git for a work tree may take, in milliseconds.
pub const TREE_GIT_MS_MAX: u64 = 60 * 1000;

/// The longest answer of such a command, in bytes: the names of all files of a large repository.
pub const TREE_ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Files left uncommitted that a work tree's record names; with more of them, the next run waits for a person.
pub const TREE_LEFT_MAX: usize = 1_000;

/// Uncommitted files that an error names.
pub const TREE_NAMED_MAX: usize = 5;

/// The longest record of a work tree, in bytes.
pub const TREE_RECORD_BYTES_MAX: u64 = 8 << 20;

/// The longest first line of a commit's message, in characters, as git's own lists show it.
pub const SUBJECT_CHARS_MAX: usize = 72;

/// Work trees that are listed.
pub const TREES_LISTED_MAX: usize = 1_000;

/// The longest part of a branch name that is made from an id, in bytes.
pub const BRANCH_PART_LEN_MAX: usize = 60;

/// The longest readable part of the name of a work tree's folder, in bytes.
pub const TREE_SLUG_LEN_MAX: usize = 40;
