//! What stays read-only inside of a workspace that a worker may change, and what stands in for it where missing.
//!
//! This file lists what is git's. The table of [`later`](provost_base::later) has what else runs on the host
//! although no person means to run it: when a folder is opened in an editor, entered with a shell, or used by
//! an agent. A missing file of that table is stood in for by a directory: git does not see an empty one, and
//! would commit an empty file.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use provost_base::RepoPath;

/// Seconds of the time of modification of a placeholder: "provost" on the keys of a telephone.
pub const PLACEHOLDER_MTIME: i64 = 7_768_678;

/// What to do about a protected path that does not exist when the worker starts. If it stayed away, the worker
/// could create it, and the host would run what it says after the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Missing {
    /// Put an empty directory there for the time of the run.
    Directory,
    /// Put an empty file there for the time of the run.
    File,
    /// Put a file with the one line `.` there for the time of the run: git's word for "here".
    FileSayingHere,
    /// Leave it away; a path that does no harm unless something else names it.
    Leave,
}

/// A path beneath a writable directory that stays read-only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Guard {
    /// Relative to the writable directory.
    pub path: RepoPath,
    /// What to do when it is not there.
    pub missing: Missing,
}

/// What a worker may do with the repository whose files it changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Git {
    /// Read it. What is staged, ignored, hidden or replaced there decides what a person sees of a worker's
    /// changes, and which programs their next git command starts.
    #[default]
    Read,
    /// Commit to it: all of it but what names programs. For private copies, and where a rule says so by name.
    Write,
}

impl Git {
    /// The paths of a repository that stay read-only.
    pub(super) fn guards(self) -> &'static [(&'static str, Missing)] {
        match self {
            Git::Read => &[(".git", Missing::Directory)],
            Git::Write => &GIT_GUARDS,
        }
    }
}

/// Git's files that name programs or lead to other files that do. `git` keeps working beside them.
const GIT_GUARDS: [(&str, Missing); 6] = [
    (".git/hooks", Missing::Directory),
    (".git/config", Missing::File),
    (".git/config.worktree", Missing::File),
    (".git/commondir", Missing::FileSayingHere),
    (".git/modules", Missing::Directory),
    (".git/worktrees", Missing::Directory),
];

/// Folders in which daemons meet their clients; a worker sees them empty.
pub(super) const MASKED: [&str; 5] = [".wit", ".devit", ".git-paw", ".agent-protocol", ".provost"];
