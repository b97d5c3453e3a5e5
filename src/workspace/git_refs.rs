//! The branches of the user's own repository: read, and moved by compare and swap. Blocking.
//!
//! A branch is always asked for by its whole name, so that no tag, no option and no other kind of ref is
//! taken for it. Nothing here runs a hook, and nothing writes but [`Repository::move_branch`].

use provost_base::limits::BRANCH_LEN_MAX;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::git_process::{self, GitError};
use provost_system as system;

/// Why a branch is not known. Safe to show.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// No branch can have this name.
    #[error("{0:?} is not a name that a branch can have")]
    NoName(String),
    /// There is none of this name.
    #[error("there is no branch {0:?}")]
    NoBranch(String),
    /// Git has not answered.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A work tree of the repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkTree {
    /// Its top.
    pub top: PathBuf,
    /// Its own folder of git's.
    pub git_dir: PathBuf,
    /// The branch that is checked out there; `None` where none is.
    pub branch: Option<String>,
}

/// A name and an address, as commits have them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

/// The user's repository.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The top of the workspace.
    pub(super) outer: PathBuf,
    /// The folder that all work trees share.
    pub(super) common: PathBuf,
    /// A folder of ours, outside of every repository.
    pub(super) scratch: PathBuf,
}

impl Repository {
    /// The repository of a workspace. `scratch` is a folder of ours alone, which is made where it is missing.
    ///
    /// # Errors
    /// [`GitError`], also where git is too old.
    pub fn open(outer: &Path, scratch: &Path) -> Result<Self, GitError> {
        system::make_private_folders(scratch)?;
        git_process::can_merge(outer, scratch)?;
        let mut repository =
            Self { outer: outer.to_owned(), common: PathBuf::new(), scratch: scratch.to_owned() };
        let asked = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let said = repository.ask(&asked).map_err(|error| match error {
            GitError::Failed { .. } => GitError::NoRepository(outer.display().to_string()),
            error => error,
        })?;
        repository.common = PathBuf::from(said.trim_end_matches(['\n', '\r']));
        Ok(repository)
    }

    fn git(&self) -> Result<Command, GitError> {
        git_process::git(&self.outer, &self.outer)
    }

    /// Git at one of its work trees, with another index.
    pub(super) fn git_at(&self, index: &Path, top: &Path) -> Result<Command, GitError> {
        let mut git = git_process::git(&self.outer, top)?;
        git.env("GIT_INDEX_FILE", index);
        Ok(git)
    }

    fn ask(&self, args: &[&str]) -> Result<String, GitError> {
        let (what, mut git) = (args.first().copied().unwrap_or_default(), self.git()?);
        git.args(args);
        let said = git_process::run(git, what, &self.scratch)?.good(what)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// The same where an exit status of one means that there is nothing.
    fn ask_whether(&self, args: &[&str]) -> Result<Option<String>, GitError> {
        let (what, mut git) = (args.first().copied().unwrap_or_default(), self.git()?);
        git.args(args);
        let answer = git_process::run(git, what, &self.scratch)?;
        match answer.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&answer.said).trim_end_matches(['\n', '\r']).into())),
            Some(1) => Ok(None),
            _ => Err(answer.failed(what)),
        }
    }

    /// The name of a branch as git has it, without `refs/heads/`.
    ///
    /// # Errors
    /// [`BranchError::NoName`].
    pub fn branch_name(&self, asked: &str) -> Result<String, BranchError> {
        let name = asked.strip_prefix("refs/heads/").unwrap_or(asked);
        let is_plain = !name.is_empty()
            && name.len() <= BRANCH_LEN_MAX
            && !name.starts_with('-')
            && name != "HEAD"
            && !name.chars().any(char::is_control);
        let full = format!("refs/heads/{name}");
        let is_ref = is_plain && self.ask_whether(&["check-ref-format", &full])?.is_some();
        if is_ref { Ok(name.to_owned()) } else { Err(BranchError::NoName(asked.to_owned())) }
    }

    /// The commit of a branch.
    ///
    /// # Errors
    /// [`BranchError`].
    pub fn commit_of(&self, branch: &str) -> Result<String, BranchError> {
        let name = self.branch_name(branch)?;
        let full = format!("refs/heads/{name}^{{commit}}");
        let found = self.ask_whether(&["rev-parse", "--verify", "--quiet", "--end-of-options", &full])?;
        found.ok_or(BranchError::NoBranch(name))
    }

    /// The branch that is checked out in the workspace.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn checked_out(&self) -> Result<Option<String>, GitError> {
        let head = self.ask_whether(&["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(head.and_then(|it| it.strip_prefix("refs/heads/").map(str::to_owned)))
    }

    /// The user, as commits name them; `None` where git's configuration does not say who that is.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn user(&self) -> Result<Option<Person>, GitError> {
        let of = |key| self.ask_whether(&["config", "--get", key]);
        let plain = |it: &String| !it.trim().is_empty() && !it.contains(['<', '>', '\n', '\0']);
        let (name, email) = (of("user.name")?.filter(plain), of("user.email")?.filter(plain));
        Ok(name.zip(email).map(|(name, email)| Person { name, email }))
    }

    /// The values of a key of the configuration, the last one first.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn setting(&self, key: &str) -> Result<Option<String>, GitError> {
        self.ask_whether(&["config", "--get", key])
    }

    /// The names of drivers of filters that the configuration has.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn filters(&self) -> Result<Vec<String>, GitError> {
        let found = self.ask_whether(&["config", "--name-only", "--get-regexp", "^filter\\."])?;
        let name = |key: &str| {
            let inner = key.strip_prefix("filter.")?;
            inner.rsplit_once('.').map(|(name, _)| name.to_owned())
        };
        Ok(found.unwrap_or_default().lines().filter_map(name).collect())
    }

    /// All work trees, the workspace's own first. A bare repository is none.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn work_trees(&self) -> Result<Vec<WorkTree>, GitError> {
        let said = self.ask(&["worktree", "list", "--porcelain", "-z"])?;
        let mut found = Vec::new();
        for block in said.split("\0\0") {
            let mut top = None;
            let (mut branch, mut skip) = (None, false);
            for line in block.split('\0') {
                match line.split_once(' ').unwrap_or((line, "")) {
                    ("worktree", path) => top = Some(PathBuf::from(path)),
                    ("branch", name) => branch = name.strip_prefix("refs/heads/").map(str::to_owned),
                    ("bare" | "prunable", _) => skip = true,
                    _ => {}
                }
            }
            let Some(top) = top.filter(|_| !skip) else { continue };
            // A work tree that is not there at present has nothing that could follow.
            let Ok(git_dir) = self.git_dir_of(&top) else { continue };
            let branch = branch.or_else(|| being_rebased(&git_dir));
            found.push(WorkTree { top, git_dir, branch });
        }
        Ok(found)
    }

    /// The folder of git's that belongs to one work tree.
    fn git_dir_of(&self, top: &Path) -> Result<PathBuf, GitError> {
        let mut git = git_process::git(&self.outer, top)?;
        git.args(["rev-parse", "--path-format=absolute", "--git-dir"]);
        let said = git_process::run(git, "rev-parse", &self.scratch)?.good("rev-parse")?;
        Ok(PathBuf::from(String::from_utf8_lossy(&said).trim_end_matches(['\n', '\r'])))
    }

    /// Moves a branch from one commit to another, unless it is elsewhere by now: then this says `false`.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn move_branch(
        &self,
        branch: &str,
        (from, to): (&str, &str),
        (by, reason): (&Person, &str),
    ) -> Result<bool, GitError> {
        let mut git = self.git()?;
        git.env("GIT_COMMITTER_NAME", &by.name).env("GIT_COMMITTER_EMAIL", &by.email);
        git.args(["update-ref", "-m", reason, "--end-of-options"]);
        git.arg(format!("refs/heads/{branch}")).args([to, from]);
        // As long as this git lives, the next start waits before it looks at the branch.
        git.stdin(Stdio::from(self.turn()?));
        let answer = git_process::run(git, "update-ref", &self.scratch)?;
        if answer.status.success() {
            return Ok(true);
        }
        let now = self.commit_of(branch);
        let has_moved = !matches!(&now, Ok(now) if now == from);
        if has_moved { Ok(matches!(now, Ok(now) if now == to)) } else { Err(answer.failed("update-ref")) }
    }

    /// A file that is locked as long as a process of this daemon's moves a branch.
    fn turn(&self) -> io::Result<File> {
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).read(true);
        let file = file.open(self.scratch.join("turn"))?;
        file.lock()?;
        Ok(file)
    }

    /// Waits until no git of an earlier daemon moves a branch.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait_for_turn(&self) -> io::Result<()> {
        self.turn().map(drop)
    }
}

/// The branch that is being rebased in a work tree, which `git worktree list` does not name.
fn being_rebased(git_dir: &Path) -> Option<String> {
    let names = ["rebase-merge/head-name", "rebase-apply/head-name"];
    let head = names.iter().find_map(|it| fs::read_to_string(git_dir.join(it)).ok())?;
    head.trim_end().strip_prefix("refs/heads/").map(str::to_owned)
}
