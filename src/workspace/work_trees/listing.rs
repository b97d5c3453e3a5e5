//! The list of work trees for people, and the removal of work trees.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::{Record, Shelf, shelves};
use super::{WorkTree, WorkTrees, common_of};
use crate::quiet_git::{Input, QuietGit};
use provost_base::limits::{TREE_NAMED_MAX, TREES_LISTED_MAX};
use provost_base::{shell_word, visible_name};

/// A work tree of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The branch that is checked out in the work tree.
    pub branch: String,
    /// The folder of the work tree.
    pub path: PathBuf,
    /// The agent of the last run in the work tree.
    pub agent: String,
    /// The task of that run.
    pub task: String,
    /// The number of commits of the branch that the workspace's checked-out commit lacks; `None` if the branch is gone.
    pub ahead: Option<u64>,
    /// The number of files that are not committed.
    pub uncommitted: usize,
    /// Whether a run works in the work tree.
    pub running: bool,
    /// The reason why the work tree cannot be used: it was deleted or changed by hand.
    pub stale: Option<String>,
}

/// The outcome of a removal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// The branch that was checked out in the removed work tree.
    pub branch: String,
    /// The folder where the work tree was.
    pub path: PathBuf,
    /// Whether the branch was deleted, too.
    pub branch_deleted: bool,
}

impl WorkTrees {
    /// Returns all work trees of runs.
    ///
    /// # Errors
    /// A sentence if git cannot be asked.
    pub fn list(&self) -> Result<Vec<Listed>, String> {
        let shelves = shelves(&self.folder);
        if shelves.is_empty() {
            return Ok(Vec::new());
        }
        let git = self.git()?;
        let common = common_of(&git)?;
        let one = |shelf: Shelf| {
            let record = shelf.record().ok().flatten()?;
            let tree = at(&git, &common, shelf, &record);
            let looked = tree.is_whole().and_then(|()| tree.uncommitted());
            let ahead =
                git.line(&["rev-list", "--count", &format!("HEAD..refs/heads/{}", record.branch), "--"]);
            Some(Listed {
                path: tree.path,
                ahead: ahead.ok().flatten().and_then(|it| it.parse().ok()),
                uncommitted: looked.as_ref().map_or(0, Vec::len),
                stale: looked.err(),
                running: self.is_held(&record.branch),
                branch: record.branch,
                agent: record.agent,
                task: record.task,
            })
        };
        Ok(shelves.into_iter().take(TREES_LISTED_MAX).filter_map(one).collect())
    }

    /// Removes a work tree, named by its branch or its folder; with `branch`, its branch as well.
    ///
    /// # Errors
    /// A sentence with the next step; nothing has changed then, unless the disk has refused a step.
    pub fn remove(self: &Arc<Self>, which: &str, force: bool, branch: bool) -> Result<Removed, String> {
        let shelf = self.meant(which)?;
        let record = shelf.record().map_err(|err| self.unusable(&err))?;
        let record =
            record.ok_or_else(|| format!("no work tree of a run is called {}", shell_word(which)))?;
        let word = shell_word(&record.branch);
        let Some(_held) = self.hold(&record.branch) else {
            return Err(format!(
                "a run works in the work tree of {word}; `provost worktree list` names its task, and `provost task cancel` ends it"
            ));
        };
        let _lock = shelf.lock().map_err(|err| self.unusable(&err))?;
        let git = self.git()?;
        let tree = at(&git, &common_of(&git)?, shelf, &record);
        if !force && tree.path.is_dir() {
            is_spared(&tree, &git)?;
        }
        let reference = format!("refs/heads/{}", record.branch);
        if branch {
            let next = format!("`provost worktree remove {word}` leaves the branch");
            self.is_nowhere_else(&git, &record.branch, &next)?;
        }
        let tip = git.line(&["rev-parse", "--verify", "--quiet", &reference])?;
        if branch && !force && tip.is_some() {
            let ahead = git.line(&["rev-list", "--count", &format!("HEAD..{reference}"), "--"])?;
            if ahead.as_deref() != Some("0") {
                return Err(format!(
                    "branch {word} has commits that what is checked out in the workspace does not have; merge it (`provost merge \
                     {word}`), or delete it with --force"
                ));
            }
        }
        tree.shelf.clear(&git)?;
        tree.shelf.drop_record().map_err(|err| self.unusable(&err))?;
        let mut branch_deleted = false;
        if let Some(tip) = tip.filter(|_| branch) {
            git.must(&["update-ref", "--no-deref", "-d", &reference, &tip], Input::Nothing)?;
            branch_deleted = true;
        }
        Ok(Removed { branch: record.branch, path: tree.path, branch_deleted })
    }

    /// Returns the work tree that a branch or a folder names.
    fn meant(&self, which: &str) -> Result<Shelf, String> {
        let path = fs::canonicalize(which).unwrap_or_else(|_| PathBuf::from(which));
        let is_it = |shelf: &Shelf| {
            let branch = shelf.record().ok().flatten().is_some_and(|it| it.branch == which);
            branch || (Path::new(which).is_absolute() && shelf.tree() == path)
        };
        let found = shelves(&self.folder).into_iter().find(is_it);
        found.ok_or_else(|| {
            let shown = visible_name(which, 200);
            format!("no work tree of a run is {shown:?}; `provost worktree list` lists them")
        })
    }
}

/// Makes the work tree of a record, without checking that it exists.
pub(super) fn at(git: &QuietGit, common: &Path, shelf: Shelf, record: &Record) -> WorkTree {
    WorkTree {
        branch: record.branch.clone(),
        path: shelf.tree(),
        entry: record.entry.clone(),
        common: common.to_path_buf(),
        start: record.began.clone().unwrap_or_default(),
        git: git.in_tree(&shelf.tree(), &record.entry),
        repository: git.clone(),
        shelf,
    }
}

/// Checks that removing a work tree loses nothing.
fn is_spared(tree: &WorkTree, repository: &QuietGit) -> Result<(), String> {
    let (path, word) = (tree.path.display(), shell_word(&tree.branch));
    let forced = format!("`provost worktree remove {word} --force` removes it nevertheless");
    let unknown = |why: String| format!("what is in {path} cannot be told: {why}; {forced}");
    let changed = tree.is_whole().and_then(|()| tree.uncommitted()).map_err(unknown)?;
    if !changed.is_empty() {
        let named = some_of(&changed);
        return Err(format!(
            "{path} has changes that are not committed: {named}; commit them there, or {forced}"
        ));
    }
    // The ignore rules are those checked out in the workspace, since those of the work tree may be its worker's.
    let head = repository.line(&["rev-parse", "--verify", "--quiet", "HEAD"])?.unwrap_or_default();
    let hidden = tree.hidden_since(&head).map_err(unknown)?;
    match hidden.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{path} has files that git ignores by a rule which what is checked out in the workspace does not have: {}; copy \
             what you want to keep, or {forced}",
            some_of(&hidden)
        )),
    }
}

/// Names the first of some files, and the number of the others.
fn some_of(files: &[String]) -> String {
    let named: Vec<String> = files.iter().take(TREE_NAMED_MAX).map(|it| visible_name(it, 200)).collect();
    let more = files.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
