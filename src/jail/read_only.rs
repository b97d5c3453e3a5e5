//! The paths that stay read-only inside of a workspace that a worker may change, and the placeholders for missing ones.
//!
//! This file lists git's paths. The table of [`later`](provost_base::later) lists the other files that run on the host
//! although no person means to run them: when a folder is opened in an editor, entered with a shell, or used by
//! an agent. The placeholder for a missing file of that table is a directory: git ignores an empty one, and
//! would commit an empty file.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use provost_base::RepoPath;

/// The modification time of a placeholder, in seconds: "provost" on the keys of a telephone.
pub const PLACEHOLDER_MTIME: i64 = 7_768_678;

/// The treatment of a protected path that does not exist when the worker starts. Without a placeholder, the worker
/// could create it, and the host would obey it after the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Missing {
    /// Put an empty directory there for the time of the run.
    Directory,
    /// Put an empty file there for the time of the run.
    File,
    /// Put a file with the one line `.` there for the time of the run: git's word for "here".
    FileSayingHere,
    /// Leave the path missing; for a path that is harmless unless another file names it.
    Leave,
}

/// A path beneath a writable directory that stays read-only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ReadOnlyPath {
    /// Relative to the writable directory.
    pub path: RepoPath,
    /// The treatment of the path when it is missing.
    pub missing: Missing,
}

/// A worker's access to the repository whose files it changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Git {
    /// Read the repository. The index, the ignored, hidden and replaced files decide what a person sees of a worker's
    /// changes, and which programs the person's next git command starts.
    #[default]
    Read,
    /// Commit to the repository: all of it except the files that name programs. For private copies, and if a rule says so by name.
    Write,
}

impl Git {
    /// Returns the paths of a repository that stay read-only.
    pub(super) fn read_only(self) -> &'static [(&'static str, Missing)] {
        match self {
            Git::Read => &[(".git", Missing::Directory)],
            Git::Write => &GIT_READ_ONLY,
        }
    }
}

/// Git's files that name programs or lead to other files that do. `git` keeps working beside them.
const GIT_READ_ONLY: [(&str, Missing); 6] = [
    (".git/hooks", Missing::Directory),
    (".git/config", Missing::File),
    (".git/config.worktree", Missing::File),
    (".git/commondir", Missing::FileSayingHere),
    (".git/modules", Missing::Directory),
    (".git/worktrees", Missing::Directory),
];

/// Folders in which daemons meet their clients; a worker sees them empty.
pub(super) const MASKED: [&str; 5] = [".wit", ".devit", ".git-paw", ".agent-protocol", ".provost"];
