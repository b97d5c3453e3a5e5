//! The branches of the user's own repository: read, and moved by compare and swap. Blocking.
//!
//! A branch is always asked for by its full name, so that no tag, no option and no other kind of ref is
//! taken for it. Nothing here runs a hook, and only [`Repository::move_branch`] writes.

use provost_base::limits::BRANCH_LEN_MAX;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::git_process::{self, GitError};
use provost_system as system;

/// The reason why a branch is unknown. Safe to show.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// No branch can have this name.
    #[error("{0:?} is not a name that a branch can have")]
    NoName(String),
    /// No branch has this name.
    #[error("there is no branch {0:?}")]
    NoBranch(String),
    /// The name is a symbolic ref to another ref that is no branch.
    #[error("{0:?} is no branch, but another name of {1} (git symbolic-ref)")]
    NamesOther(String, String),
    /// Git has not answered.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A work tree of the repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkTree {
    /// The top folder of the work tree.
    pub top: PathBuf,
    /// Git's own folder for the work tree.
    pub git_dir: PathBuf,
    /// The branch that is checked out there; `None` if none is.
    pub branch: Option<String>,
}

/// A name and an address, as in commits.
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
    /// Git's folder, which all work trees share.
    pub(super) common: PathBuf,
    /// A folder of ours, outside of every repository.
    pub(super) scratch: PathBuf,
}

impl Repository {
    /// Opens the repository of a workspace. `scratch` is a folder of ours alone, which is made if it is missing.
    ///
    /// # Errors
    /// [`GitError`], also if git is too old.
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

    /// Returns git at one of its work trees, with another index.
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

    /// Asks git, with an exit status of one meaning that there is no value.
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

    /// Returns the name of a branch as git has it, without `refs/heads/`. For a symbolic ref to a branch, returns the name of
    /// that branch.
    ///
    /// # Errors
    /// [`BranchError::NoName`], and [`BranchError::NamesOther`].
    pub fn branch_name(&self, asked: &str) -> Result<String, BranchError> {
        let name = asked.strip_prefix("refs/heads/").unwrap_or(asked);
        let is_plain = !name.is_empty()
            && name.len() <= BRANCH_LEN_MAX
            && !name.starts_with('-')
            && name != "HEAD"
            && !name.chars().any(char::is_control);
        let full = format!("refs/heads/{name}");
        let is_ref = is_plain && self.ask_whether(&["check-ref-format", &full])?.is_some();
        if !is_ref {
            return Err(BranchError::NoName(asked.to_owned()));
        }
        match self.ask_whether(&["symbolic-ref", "--quiet", &full])? {
            None => Ok(name.to_owned()),
            Some(target) => match target.strip_prefix("refs/heads/") {
                Some(other) => Ok(other.to_owned()),
                None => Err(BranchError::NamesOther(name.to_owned(), target)),
            },
        }
    }

    /// Returns the commit of a branch.
    ///
    /// # Errors
    /// [`BranchError`].
    pub fn commit_of(&self, branch: &str) -> Result<String, BranchError> {
        let name = self.branch_name(branch)?;
        let full = format!("refs/heads/{name}^{{commit}}");
        let found = self.ask_whether(&["rev-parse", "--verify", "--quiet", "--end-of-options", &full])?;
        found.ok_or(BranchError::NoBranch(name))
    }

    /// Returns the branch that is checked out in the workspace.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn checked_out(&self) -> Result<Option<String>, GitError> {
        let head = self.ask_whether(&["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(head.and_then(|it| it.strip_prefix("refs/heads/").map(str::to_owned)))
    }

    /// Returns the user, as commits name their committer; `None` if git's configuration does not name the user.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn user(&self) -> Result<Option<Person>, GitError> {
        // Git would change a name that contains these signs.
        for key in ["committer.name", "committer.email", "user.name", "user.email"] {
            if self.setting(key)?.is_some_and(|it| it.contains(['<', '>', '\n', '\0'])) {
                return Ok(None);
            }
        }
        let mut git = self.git()?;
        git.args(["-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"]);
        let answer = git_process::run(git, "var", &self.scratch)?;
        if !answer.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&answer.said).into_owned();
        let found = said.split_once(" <").and_then(|(name, rest)| Some((name, rest.split_once('>')?.0)));
        let found = found.filter(|(name, email)| !name.trim().is_empty() && !email.trim().is_empty());
        Ok(found.map(|(name, email)| Person { name: name.into(), email: email.into() }))
    }

    /// Checks whether this clone has only a part of the history.
    pub fn is_shallow(&self) -> bool {
        self.common.join("shallow").exists()
    }

    /// Returns the value of a key of the configuration, the last one if there are several; `None` if there is none.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn setting(&self, key: &str) -> Result<Option<String>, GitError> {
        self.ask_whether(&["config", "--get", key])
    }

    /// Returns a switch of the configuration, as it is in one work tree.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn is_set_in(&self, tree: &WorkTree, key: &str) -> Result<bool, GitError> {
        let mut git = git_process::git(&self.outer, &tree.top)?;
        git.args(["config", "--type=bool", "--get", key]);
        let answer = git_process::run(git, "config", &self.scratch)?;
        match answer.status.code() {
            Some(0) => Ok(String::from_utf8_lossy(&answer.said).trim() == "true"),
            Some(1) => Ok(false),
            _ => Err(answer.failed("config")),
        }
    }

    /// Checks whether a work tree has a ref of its own, in any of git's formats.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn has_ref_in(&self, tree: &WorkTree, name: &str) -> Result<bool, GitError> {
        let mut git = git_process::git(&self.outer, &tree.top)?;
        git.args(["rev-parse", "--verify", "--quiet", name]);
        Ok(git_process::run(git, "rev-parse", &self.scratch)?.status.success())
    }

    /// Makes a copy of a work tree's index complete, if git keeps a part of it in another file.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn make_whole(&self, tree: &WorkTree, copy: &Path) -> Result<(), GitError> {
        let mut git = git_process::git(&self.outer, &tree.top)?;
        git.args(["rev-parse", "--shared-index-path"]);
        let other = git_process::run(git, "rev-parse", &self.scratch)?.good("rev-parse")?;
        if other.trim_ascii().is_empty() {
            return Ok(());
        }
        let mut git = git_process::git(&self.outer, &tree.top)?;
        git.env("GIT_INDEX_FILE", copy).args([
            "-c",
            "core.splitIndex=false",
            "update-index",
            "--no-split-index",
        ]);
        git_process::run(git, "update-index", &self.scratch)?.good("update-index").map(drop)
    }

    /// Returns the names of the configured filter drivers.
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

    /// Returns all work trees, the workspace's own first. A bare repository is none.
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
            // A work tree that does not exist at present cannot follow a branch, and the files in its place are
            // not ours to write.
            let Ok(git_dir) = self.git_dir_of(&top) else { continue };
            if !self.is_its_own(&top, &git_dir) {
                continue;
            }
            let branch = branch.or_else(|| being_rebased(&git_dir));
            found.push(WorkTree { top, git_dir, branch });
        }
        Ok(found)
    }

    /// Returns git's folder for one work tree.
    fn git_dir_of(&self, top: &Path) -> Result<PathBuf, GitError> {
        let mut git = git_process::git(&self.outer, top)?;
        git.args(["rev-parse", "--path-format=absolute", "--git-dir"]);
        let said = git_process::run(git, "rev-parse", &self.scratch)?.good("rev-parse")?;
        Ok(PathBuf::from(String::from_utf8_lossy(&said).trim_end_matches(['\n', '\r'])))
    }

    /// Checks whether folder and entry belong together, and to this repository: a folder that was deleted may be another
    /// repository by now, or the place of another work tree.
    fn is_its_own(&self, top: &Path, git_dir: &Path) -> bool {
        let real = |it: &Path| fs::canonicalize(it).ok();
        let Some((own, common)) = real(git_dir).zip(real(&self.common)) else { return false };
        if own == common {
            return true;
        }
        let Ok(back) = fs::read_to_string(own.join("gitdir")) else { return false };
        // The path may be relative to the entry.
        let back = real(&own.join(back.trim_end_matches(['\n', '\r'])));
        own.parent() == Some(&common.join("worktrees")) && back.is_some() && back == real(&top.join(".git"))
    }

    /// Moves a branch from one commit to another. Returns `false` if the branch is at another commit by now.
    ///
    /// # Errors
    /// [`GitError`]. If git was stopped, the branch may have been moved all the same.
    pub fn move_branch(
        &self,
        branch: &str,
        (from, to): (&str, &str),
        (by, reason): (&Person, &str),
    ) -> Result<bool, GitError> {
        let mut git = self.git()?;
        git.env("GIT_COMMITTER_NAME", &by.name).env("GIT_COMMITTER_EMAIL", &by.email);
        git.args(["update-ref", "--no-deref", "-m", reason, "--end-of-options"]);
        git.arg(format!("refs/heads/{branch}")).args([to, from]);
        // As long as this git lives, the next start waits before it reads the branch.
        git.stdin(Stdio::from(self.turn()?));
        let answer = git_process::run(git, "update-ref", &self.scratch)?;
        if answer.status.success() {
            return Ok(true);
        }
        match self.commit_of(branch) {
            Ok(now) if now != from => Ok(now == to),
            _ => Err(answer.failed("update-ref")),
        }
    }

    /// Opens and locks a file that stays locked while a process of this daemon moves a branch.
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
    /// The system's error.
    pub fn wait_for_turn(&self) -> io::Result<()> {
        self.turn().map(drop)
    }
}

/// Returns the branch that is being rebased in a work tree, which `git worktree list` does not name.
fn being_rebased(git_dir: &Path) -> Option<String> {
    let names = ["rebase-merge/head-name", "rebase-apply/head-name"];
    let head = names.iter().find_map(|it| fs::read_to_string(git_dir.join(it)).ok())?;
    head.trim_end().strip_prefix("refs/heads/").map(str::to_owned)
}
