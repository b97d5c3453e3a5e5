//! What stays read-only inside of a workspace that a worker may change, and what stands in for it where missing.
//!
//! Listed is what runs on the host without anybody meaning to run it: by opening the folder in an editor, by
//! entering it with a shell, by using git or an agent there. What somebody runs on purpose (a build, a test) is
//! a worker's business to change; the hand-off report names it.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use crate::base::RepoPath;

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

/// Git's files that name programs or lead to other files that do. `git` keeps working beside them.
pub(super) const GIT_GUARDS: [(&str, Missing); 6] = [
    (".git/hooks", Missing::Directory),
    (".git/config", Missing::File),
    (".git/config.worktree", Missing::File),
    (".git/commondir", Missing::FileSayingHere),
    (".git/modules", Missing::Directory),
    (".git/worktrees", Missing::Directory),
];

/// Settings that start programs on the host the next time someone works in the directory: of agents, of editors
/// and development environments, of shells, of hook managers. A missing file is stood in for by a directory too:
/// git does not see an empty one, and would commit an empty file.
pub const SETTINGS: [&str; 33] = [
    ".agents",
    ".aider.conf.yml",
    ".claude",
    ".clinerules",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".roo",
    ".windsurf",
    "opencode.json",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".exrc",
    ".fleet",
    ".helix",
    ".idea",
    ".nvim",
    ".nvim.lua",
    ".nvimrc",
    ".vim",
    ".vimrc",
    ".vscode",
    ".zed",
    ".envrc",
    ".mise.toml",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
];

/// Folders in which daemons meet their clients; a worker sees them empty.
pub(super) const MASKED: [&str; 5] = [".wit", ".devit", ".git-paw", ".agent-protocol", ".provost"];
