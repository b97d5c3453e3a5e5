//! Reads from git's own files which commit a work tree is at, and the repositories in it: a lease ends when its file is committed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::code::Base;
use provost_base::RepoPath;
use provost_base::limits::{GIT_REFS_BYTES_MAX, PATH_LEN_MAX, WIT_WORKTREES_MAX};
use provost_system as system;
use provost_workspace::quiet_git::QuietGit;

/// The commits that are current around some files of a work tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Commits {
    /// The commit of the work tree; `None` if it is not known.
    pub(super) of_tree: Option<Box<str>>,
    /// Folders that are repositories of their own, such as submodules, each with its commit.
    pub(super) nested: Vec<(RepoPath, Option<Box<str>>)>,
}

impl Commits {
    /// Reads the commits around some files.
    pub(super) async fn around(base: &Base, files: Vec<RepoPath>) -> Self {
        let top = base.root().place().path().to_owned();
        let found = tokio::task::spawn_blocking(move || {
            let folders: BTreeSet<RepoPath> =
                files.iter().filter_map(|it| nested_repository(&top, it)).collect();
            let nested = folders.into_iter().map(|it| {
                let commit = commit_of(&top.join(it.as_str()));
                (it, commit)
            });
            Self { of_tree: commit_of(&top), nested: nested.collect() }
        });
        found.await.unwrap_or_default()
    }

    /// Returns the branch that a work tree is on.
    pub(super) async fn branch(base: &Base) -> Option<Box<str>> {
        let top = base.root().place().path().to_owned();
        tokio::task::spawn_blocking(move || branch_of(&top)).await.ok().flatten()
    }

    /// Returns the commit of the repository around a single file.
    pub(super) fn innermost(self) -> Option<Box<str>> {
        match self.nested.into_iter().max_by_key(|it| it.0.as_str().len()) {
            Some((_, commit)) => commit,
            None => self.of_tree,
        }
    }
}

/// Returns the innermost folder around a file of a work tree that is a repository of its own. Blocking.
pub fn nested_repository(top: &Path, file: &RepoPath) -> Option<RepoPath> {
    let mut folder = file.as_str();
    while let Some((above, _)) = folder.rsplit_once('/') {
        folder = above;
        if top.join(folder).join(".git").symlink_metadata().is_ok() {
            return RepoPath::parse(folder).ok();
        }
    }
    None
}

/// Returns git's folder for a work tree, as the tree's `.git` says. Blocking.
pub fn git_dir_of(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    match short(&dot_git) {
        Some(pointer) => Some(top.join(pointer.strip_prefix("gitdir:")?.trim())),
        None => Some(dot_git),
    }
}

fn short(path: &Path) -> Option<String> {
    system::short_text(path, 2 * PATH_LEN_MAX as u64).ok()
}

/// Returns the branch that a work tree is on, by git's own files; `None` if it is on none or they cannot be read. Blocking.
fn branch_of(top: &Path) -> Option<Box<str>> {
    let head = short(&git_dir_of(top)?.join("HEAD"))?;
    let name = head.trim().strip_prefix("ref: refs/heads/")?;
    if name != ".invalid" {
        return Some(name.into());
    }
    // Git writes this name if its refs are in a table (reftable).
    let name = QuietGit::of(top, top).ok()?.line(&["symbolic-ref", "--short", "--quiet", "HEAD"]).ok()??;
    Some(name.into())
}

/// Returns the commit that a work tree is at, by git's own files; `None` if they do not say. Blocking.
pub fn commit_of(top: &Path) -> Option<Box<str>> {
    let git_dir = git_dir_of(top)?;
    let head = short(&git_dir.join("HEAD"))?;
    let common: PathBuf =
        short(&git_dir.join("commondir")).map_or(git_dir.clone(), |it| git_dir.join(it.trim()));
    let Some(name) = head.trim().strip_prefix("ref: ") else { return id_of(head.trim()) };
    // Git writes this name if its refs are in a table: then no file holds the commit.
    if name == "refs/heads/.invalid" {
        return in_tables(top, &git_dir, &common);
    }
    let is_name = name.starts_with("refs/") && !name.split('/').any(|it| it == "..");
    let loose = Some(name).filter(|_| is_name).and_then(|it| short(&common.join(it)));
    if let Some(id) = loose {
        return id_of(id.trim());
    }
    let packed = system::short_text(&common.join("packed-refs"), GIT_REFS_BYTES_MAX).unwrap_or_default();
    let found = packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').and_then(id_of));
    // A branch without a commit is a state like any other: the first commit ends it.
    found.or_else(|| is_name.then(|| "none".into()))
}

fn id_of(text: &str) -> Option<Box<str>> {
    let is_id = text.len() >= 40 && text.bytes().all(|it| it.is_ascii_hexdigit());
    is_id.then(|| text.into())
}

/// Git's answers for repositories with tables, by folder: the list of tables, and the commit.
static SAID: Mutex<BTreeMap<PathBuf, (String, Box<str>)>> = Mutex::new(BTreeMap::new());

/// Returns the commit if git's refs are in tables (reftable). The daemon runs git once for each change: every
/// change gives another list of tables.
fn in_tables(top: &Path, git_dir: &Path, common: &Path) -> Option<Box<str>> {
    let list = |folder: &Path| system::short_text(&folder.join("reftable/tables.list"), GIT_REFS_BYTES_MAX);
    let lists = format!("{}\n{}", list(git_dir).ok()?, list(common).unwrap_or_default());
    let said = || SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, commit)) = said().get(git_dir).filter(|it| it.0 == lists) {
        return Some(commit.clone());
    }
    let git = QuietGit::of(top, top).ok()?;
    let commit = match git.line(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).ok()? {
        Some(id) => id_of(&id)?,
        None => "none".into(),
    };
    let mut said = said();
    if said.len() > WIT_WORKTREES_MAX {
        said.clear();
    }
    said.insert(git_dir.to_owned(), (lists, commit.clone()));
    Some(commit)
}
