//! Git work trees in which runs work, each on a branch of its own, outside of the repository. Blocking.
//!
//! ```text
//!   [nothing] --making, on the disk--> [half made] --git has made it--> [there] --a run--> [a commit more]
//!                    a start undoes what is half made     removed --> [nothing], the branch stays
//! ```
//! Git is called by [`QuietGit`], which starts no other program. A run cannot write the `.git` file of its work tree nor
//! the repository; the daemon never reads from that file which repository it is, but from its own record.
#![forbid(unsafe_code)]

mod commit;
mod hidden;
mod listing;
mod names;
mod others_refs;
mod record;
mod rescue;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::copy;
use super::quiet_git::{Input, QuietGit, succeeded};
use provost_base::limits::{PATH_LEN_MAX, TREE_MADE_MS_MAX, TREE_NAMED_MAX};
use provost_base::{shell_word, visible_name};
use provost_system as system;
use record::{GONE, Made, Making, Record, Shelf, shelves};

pub use commit::{Author, ChangedFile, Committed, NotCommitted};
pub use listing::{Listed, Removed};
pub use names::{check_branch, named_after};

/// The work trees of one repository.
#[derive(Debug)]
pub struct WorkTrees {
    root: PathBuf,
    folder: PathBuf,
    /// Branches whose work trees are in use.
    held: Mutex<BTreeSet<String>>,
    /// Notified when one of them is free again.
    freed: Condvar,
}

/// A work tree, ready for a run.
#[derive(Clone, Debug)]
pub struct WorkTree {
    /// The branch that is checked out in it.
    pub branch: String,
    /// The folder of the work tree.
    pub path: PathBuf,
    /// Git's folder for the work tree, in the repository.
    pub entry: PathBuf,
    /// The folder of the repository.
    pub common: PathBuf,
    /// The commit at which the run begins.
    pub start: String,
    shelf: Shelf,
    git: QuietGit,
    /// Git for the repository itself, which also works when the work tree is gone.
    repository: QuietGit,
}

/// A work tree in use, for as long as this is held.
#[derive(Debug)]
pub struct Held {
    trees: Arc<WorkTrees>,
    branch: String,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.trees.held().remove(&self.branch);
        self.trees.freed.notify_all();
    }
}

impl WorkTrees {
    /// Returns the work trees of the repository at `root`, in a folder of the daemon's own.
    pub fn new(root: &Path, folder: &Path) -> Self {
        // The path must be the one that git writes down; a missing folder is made below an existing one.
        let (above, name) = (folder.parent().unwrap_or(folder), folder.file_name().unwrap_or_default());
        let known = fs::canonicalize(folder).or_else(|_| fs::canonicalize(above).map(|it| it.join(name)));
        let folder = known.unwrap_or_else(|_| folder.to_path_buf());
        Self { root: root.to_path_buf(), folder, held: Mutex::default(), freed: Condvar::new() }
    }

    /// Keeps others from using the work tree of a branch; `None` if it is in use.
    pub fn hold(self: &Arc<Self>, branch: &str) -> Option<Held> {
        let is_free = self.held().insert(branch.to_owned());
        is_free.then(|| Held { trees: self.clone(), branch: branch.to_owned() })
    }

    /// Keeps others from using the work tree of a branch, and waits while it is in use.
    pub fn hold_when_free(self: &Arc<Self>, branch: &str) -> Held {
        let mut held = self.held();
        while !held.insert(branch.to_owned()) {
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        Held { trees: self.clone(), branch: branch.to_owned() }
    }

    /// Checks whether a run works in the work tree of a branch, a removal is under way, or a merge brings it to its branch's commit.
    pub fn is_held(&self, branch: &str) -> bool {
        self.held().contains(branch)
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // Inserting and removing leave it valid at every moment.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn git(&self) -> Result<QuietGit, String> {
        QuietGit::of(&self.root, &self.folder)
    }

    fn shelf(&self, branch: &str) -> Shelf {
        Shelf { folder: self.folder.clone(), name: names::folder_of(branch) }
    }

    /// Checks that the branch that is named after a task can still be made for it.
    ///
    /// # Errors
    /// A sentence with the next step, if the branch exists: another run, or a person, has made it.
    pub fn check_unused(&self, branch: &str) -> Result<(), String> {
        let there =
            self.git()?.line(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")])?;
        let word = shell_word(branch);
        match there {
            None => Ok(()),
            Some(_) => Err(format!(
                "branch {word}, which the task would get, is there already; `--worktree {word}` works on it, and another name \
                 after --task or --worktree makes a new one"
            )),
        }
    }

    /// Checks whether a run can work on a branch, before a task is delegated.
    ///
    /// # Errors
    /// A sentence with the next step.
    pub fn check(&self, branch: &str) -> Result<(), String> {
        check_branch(branch).map_err(|why| format!("{:?} {why}", visible_name(branch, 80)))?;
        self.folder_fits()?;
        let git = self.git()?;
        self.base_of(&git, branch)?;
        let who = git.run(&["var", "GIT_COMMITTER_IDENT"], Input::Nothing)?;
        match who.success {
            true => Ok(()),
            false => Err(
                "git does not know who commits here; run `git config user.name NAME` and `git config user.email ADDRESS`"
                    .into(),
            ),
        }
    }

    /// Checks that the folder of work trees lies outside of the repository, where no commit and no scan finds it.
    fn folder_fits(&self) -> Result<(), String> {
        let folder = self.folder.display();
        if self.folder.starts_with(&self.root) || self.root.starts_with(&self.folder) {
            return Err(format!(
                "{folder} and the repository lie in each other; set `folder` in [worktrees] to a folder of its own outside"
            ));
        }
        system::make_private_folders(&self.folder).map_err(|err| self.unusable(&err))?;
        let close = system::CLOSE_FOR_WRITING;
        system::trusted(&self.folder)
            .map_err(|why| format!("{folder}: {why}, who could change what is committed; run {close}"))
    }

    /// Returns the start of a run on a branch: the branch's commit, or for a new branch the commit checked out in the workspace.
    fn base_of(&self, git: &QuietGit, branch: &str) -> Result<Base, String> {
        let reference = format!("refs/heads/{branch}");
        let at = |name: &str| git.line(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]);
        self.is_nowhere_else(git, branch, "name another branch with --worktree")?;
        Self::is_a_runs(git, branch)?;
        let Some(commit) = at(&reference)? else {
            let head =
                at("HEAD")?.ok_or("the repository has no commit yet; commit once, and delegate again")?;
            self.has_room(git, branch)?;
            Self::hides_nothing(git, branch)?;
            return Ok(Base { commit: head, is_new: true });
        };
        Ok(Base { commit, is_new: false })
    }

    /// Checks that no other branch is in the way: git keeps a branch as a file, so none can lie below another.
    fn has_room(&self, git: &QuietGit, branch: &str) -> Result<(), String> {
        let above = branch.match_indices('/').map(|(end, _)| format!("refs/heads/{}", &branch[..end]));
        for above in above {
            if git.line(&["rev-parse", "--verify", "--quiet", &above])?.is_some() {
                let other = above.trim_start_matches("refs/heads/");
                return Err(format!(
                    "branch {} is there, so git keeps no branch {}; name another branch with --worktree",
                    shell_word(other),
                    shell_word(branch)
                ));
            }
        }
        let below = format!("refs/heads/{branch}/");
        let below = git.line(&["for-each-ref", "--count=1", "--format=%(refname:strip=2)", &below])?;
        match below.filter(|it| !it.is_empty()) {
            Some(other) => Err(format!(
                "branch {} is there, so git keeps no branch {}; name another branch with --worktree",
                shell_word(&other),
                shell_word(branch)
            )),
            None => Ok(()),
        }
    }

    /// Returns the work trees in which a branch is checked out.
    fn users_of(&self, git: &QuietGit, branch: &str) -> Result<Vec<PathBuf>, String> {
        let listed = git.must(&["worktree", "list", "--porcelain", "-z"], Input::Nothing)?;
        let listed = String::from_utf8_lossy(&listed);
        let (mut place, mut found) = (None, Vec::new());
        let wanted = format!("branch refs/heads/{branch}");
        for line in listed.split('\0') {
            if let Some(path) = line.strip_prefix("worktree ") {
                place = Some(PathBuf::from(path));
            } else if line == wanted {
                found.extend(place.take());
            }
        }
        Ok(found)
    }

    /// Refuses a branch that is checked out in another work tree than its own.
    fn is_nowhere_else(&self, git: &QuietGit, branch: &str, next: &str) -> Result<(), String> {
        let own = self.shelf(branch).tree();
        match self.users_of(git, branch)?.into_iter().find(|it| *it != own) {
            None => Ok(()),
            Some(place) => {
                Err(format!("branch {} is checked out in {}; {next}", shell_word(branch), place.display()))
            }
        }
    }

    /// Makes the work tree of a branch, or checks the existing one, for a run of `agent`.
    ///
    /// # Errors
    /// A sentence with the next step; no file is left behind then.
    pub fn ready(&self, branch: &str, agent: &str, task: &str) -> Result<WorkTree, String> {
        check_branch(branch).map_err(|why| format!("{:?} {why}", visible_name(branch, 80)))?;
        self.folder_fits()?;
        let (git, shelf) = (self.git()?, self.shelf(branch));
        let lock = shelf.lock().map_err(|err| self.unusable(&err))?;
        if shelf.making().map_err(|err| self.unusable(&err))?.is_some() {
            shelf.undo(&git)?;
        }
        let known = shelf.record().map_err(|err| self.unusable(&err))?;
        let base = self.base_of(&git, branch)?;
        let record = match known.filter(|it| it.branch == branch && shelf.tree().is_dir()) {
            Some(_) if base.is_new => {
                let branch = shell_word(branch);
                return Err(format!(
                    "branch {branch} was deleted, and its work tree is still there; `provost worktree remove {branch} \
                     --force` removes it, or name another branch with --worktree"
                ));
            }
            Some(record) => record,
            None => self.make(&git, &shelf, (branch, &base, task), &lock)?,
        };
        let common = common_of(&git)?;
        let tree = WorkTree {
            branch: branch.to_owned(),
            path: shelf.tree(),
            entry: record.entry.clone(),
            common,
            start: base.commit,
            git: git.in_tree(&shelf.tree(), &record.entry),
            repository: git,
            shelf,
        };
        tree.is_whole()?;
        tree.is_clean(&record)?;
        let (agent, task, began) = (agent.to_owned(), task.to_owned(), Some(tree.start.clone()));
        tree.shelf.put_record(&Record { agent, task, began, ..record }).map_err(|err| self.unusable(&err))?;
        Ok(tree)
    }

    /// Makes git make a work tree. A note is written before, so that a start can undo what a killed daemon has begun.
    fn make(
        &self,
        git: &QuietGit,
        shelf: &Shelf,
        (branch, base, by): (&str, &Base, &str),
        lock: &fs::File,
    ) -> Result<Record, String> {
        let path = shelf.tree();
        let text = path.to_str().ok_or("the folder of work trees has a name that is no text")?;
        let made_at = base.is_new.then(|| base.commit.clone());
        let making = Making { branch: branch.to_owned(), made_at };
        shelf.put_making(&making).map_err(|err| self.unusable(&err))?;
        shelf.clear(git)?;
        let new = ["worktree", "add", "--quiet", "--no-track", "-b", branch, text, &base.commit];
        let old = ["worktree", "add", "--quiet", text, branch];
        let args: &[&str] = if base.is_new { &new } else { &old };
        let added = git.run_for(args, Input::Lock(lock), &[], TREE_MADE_MS_MAX);
        let made = added.and_then(|answer| succeeded(args, answer)).and_then(|_| entry_of(&path, git));
        let record = made.and_then(|entry| {
            let made = base.is_new.then(|| Made { task: by.to_owned(), at: base.commit.clone() });
            let (branch, agent, task) = (branch.to_owned(), String::new(), String::new());
            let record = Record { branch, entry, agent, task, began: None, left: Vec::new(), made };
            let put = shelf.put_record(&record).and_then(|()| shelf.drop_making());
            put.map(|()| record).map_err(|err| self.unusable(&err))
        });
        if record.is_err() {
            shelf.undo(git)?;
        }
        record
    }

    fn unusable(&self, err: &std::io::Error) -> String {
        format!("the folder of work trees, {}, cannot be used: {err}", self.folder.display())
    }

    /// Undoes the work trees that an earlier daemon has half made or half removed. Called at the start of a daemon.
    pub fn sweep(&self) {
        for shelf in shelves(&self.folder) {
            let swept = shelf.lock().map_err(|err| err.to_string()).and_then(|_lock| {
                let making = shelf.making().map_err(|err| err.to_string())?;
                if making.is_some() { shelf.undo(&self.git()?) } else { Ok(()) }
            });
            if let Err(why) = swept {
                tracing::warn!(why, tree = %shelf.tree().display(), "a half-made work tree was not taken back");
            }
        }
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_gone = entry.path().extension().is_some_and(|it| it == GONE);
            if is_gone && let Err(err) = copy::remove(&entry.path()) {
                tracing::warn!(%err, path = %entry.path().display(), "a removed work tree is still there");
            }
        }
    }
}

impl Shelf {
    /// Undoes a half-made work tree, with its branch if that was made for it and has no commit yet.
    fn undo(&self, git: &QuietGit) -> Result<(), String> {
        let making = self.making().map_err(|err| err.to_string())?;
        self.clear(git)?;
        self.drop_record().map_err(|err| err.to_string())?;
        if let Some((branch, at)) = making.and_then(|it| Some((it.branch, it.made_at?))) {
            // The branch may not exist yet, or a person may have moved it: then it stays.
            let reference = format!("refs/heads/{branch}");
            git.run(&["update-ref", "--no-deref", "-d", &reference, &at], Input::Nothing)?;
        }
        self.drop_making().map_err(|err| err.to_string())
    }

    /// Removes the folder of a work tree and git's entry for it.
    fn clear(&self, git: &QuietGit) -> Result<(), String> {
        let (tree, gone) = (self.tree(), self.beside(GONE));
        let failed = |err: std::io::Error| format!("{} cannot be removed: {err}", tree.display());
        if fs::symlink_metadata(&gone).is_ok() {
            copy::remove(&gone).map_err(failed)?;
        }
        if fs::symlink_metadata(&tree).is_ok() {
            fs::rename(&tree, &gone).map_err(failed)?;
            copy::remove(&gone).map_err(failed)?;
        }
        let entries = common_of(git)?.join("worktrees");
        let dot_git = tree.join(".git");
        for entry in fs::read_dir(&entries).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let digits = name.strip_prefix(&self.name).filter(|it| it.bytes().all(|c| c.is_ascii_digit()));
            let leads = fs::read_to_string(entry.path().join("gitdir"));
            // The name contains a digest of the branch, so no other work tree has it.
            let is_ours = leads.map_or(true, |it| Path::new(it.trim_end()) == dot_git);
            if digits.is_some() && is_ours {
                fs::remove_dir_all(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// The start of a run.
struct Base {
    commit: String,
    /// Whether the branch has to be made.
    is_new: bool,
}

/// Returns the folder of the repository that all work trees share.
fn common_of(git: &QuietGit) -> Result<PathBuf, String> {
    let common = git.line(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    let common = common.ok_or("git does not say where the repository is")?;
    fs::canonicalize(&common).map_err(|err| format!("{common}: {err}"))
}

/// Returns git's folder for a work tree that git has just made.
fn entry_of(tree: &Path, git: &QuietGit) -> Result<PathBuf, String> {
    let unknown = || format!("git has made no work tree in {}", tree.display());
    let text = fs::read_to_string(tree.join(".git")).map_err(|_| unknown())?;
    let entry = text.trim_end().strip_prefix("gitdir: ").ok_or_else(unknown)?;
    let entry = fs::canonicalize(tree.join(entry)).map_err(|_| unknown())?;
    match entry.parent() == Some(&common_of(git)?.join("worktrees")) {
        true => Ok(entry),
        false => Err(unknown()),
    }
}

impl WorkTree {
    /// Checks that folder, entry and branch still belong together.
    ///
    /// # Errors
    /// A sentence with the next step.
    fn is_whole(&self) -> Result<(), String> {
        let again = || {
            let branch = shell_word(&self.branch);
            format!("`provost worktree remove {branch} --force` removes it, and the next run makes it again")
        };
        let says = |path: PathBuf| {
            let text = system::short_text(&path, 2 * PATH_LEN_MAX as u64).unwrap_or_default();
            text.trim_end_matches('\n').to_owned()
        };
        let leads = says(self.path.join(".git"));
        let back = says(self.entry.join("gitdir"));
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|it| !it.is_dir());
        if is_link
            || leads.strip_prefix("gitdir: ").map(Path::new) != Some(&self.entry)
            || Path::new(&back) != self.path.join(".git")
        {
            return Err(format!(
                "{} is no work tree of the repository any more; {}",
                self.path.display(),
                again()
            ));
        }
        let head = self.git.line(&["symbolic-ref", "--quiet", "HEAD"])?;
        if head.as_deref() != Some(&*format!("refs/heads/{}", self.branch)) {
            let (branch, path) = (shell_word(&self.branch), shell_word(&self.path.to_string_lossy()));
            return Err(format!(
                "another branch than {branch} is checked out in {path}; `git -C {path} switch {branch}` goes back to it"
            ));
        }
        Ok(())
    }

    /// Removes the work tree and its branch after a run that has changed nothing, if both were made for that run alone, and
    /// the branch has not moved. Returns whether they were removed.
    ///
    /// # Errors
    /// The reason why the work tree and its branch still exist, or which of them does.
    pub fn let_go(&self, agent: &str, task: &str) -> Result<bool, String> {
        if self.branch != named_after(agent, task) || !self.uncommitted()?.is_empty() {
            return Ok(false);
        }
        let _lock = self.shelf.lock().map_err(|err| err.to_string())?;
        let record = self.shelf.record().map_err(|err| err.to_string())?;
        let made = record.and_then(|it| it.made).filter(|it| it.task == task && it.at == self.start);
        let Some(made) = made else { return Ok(false) };
        let reference = format!("refs/heads/{}", self.branch);
        let now = self.repository.line(&["rev-parse", "--verify", "--quiet", &reference])?;
        if now.as_deref() != Some(&made.at) || !self.hidden_since(&made.at)?.is_empty() {
            return Ok(false);
        }
        // This note lets a start undo the rest if the daemon is killed in the middle.
        let making = Making { branch: self.branch.clone(), made_at: Some(made.at) };
        self.shelf.put_making(&making).map_err(|err| err.to_string())?;
        self.shelf.undo(&self.repository).map(|()| true)
    }

    /// Checks that everything is committed, except for files that earlier runs have left.
    ///
    /// # Errors
    /// A sentence with the next step.
    fn is_clean(&self, record: &Record) -> Result<(), String> {
        let left: BTreeSet<&str> = record.left.iter().map(String::as_str).collect();
        let changed = self.uncommitted()?;
        let new: Vec<&String> = changed.iter().filter(|it| !left.contains(it.as_str())).collect();
        if new.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = new.iter().take(TREE_NAMED_MAX).map(|it| visible_name(it, 200)).collect();
        let more = new.len().saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let path = shell_word(&self.path.to_string_lossy());
        Err(format!(
            "the work tree of branch {} has changes that are not committed: {}{more}; commit them (`git -C {path} add -A && \
             git -C {path} commit`) or put them aside (`git -C {path} stash -u`), and delegate again",
            shell_word(&self.branch),
            named.join(", ")
        ))
    }

    /// Returns files that differ from the checked-out commit, from its top, and new ones that git does not ignore.
    fn uncommitted(&self) -> Result<Vec<String>, String> {
        let args = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=all",
        ];
        let answer = self.git.must(&args, Input::Nothing)?;
        let all = answer.split(|byte| *byte == 0).filter_map(|it| it.get(3..));
        Ok(all.map(|it| String::from_utf8_lossy(it).into_owned()).collect())
    }
}
