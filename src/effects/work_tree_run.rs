//! A run in a git work tree on a branch of its own: its folder, and the commit of its changes.
//!
//! For the jail and the scans the work tree is the workspace: the same files stay read-only, and a repository that the run
//! makes there ends the run. Its `.git` file and the repository are read-only; the daemon commits when the run has ended, in every
//! case. Changes that an apply would withhold are not committed and stay in the work tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::prepare::jail_refused;
use super::reason::sentence;
use super::sockets::surroundings;
use super::worker::Workers;
use provost_base::limits::TREE_NAMED_MAX;
use provost_base::{AgentId, RepoPath, TaskId, merge_command};
use provost_domain::{Changeset, Directory, Failure, Task, Tier};
use provost_jail::{Draft, ResolvedPath, Root, find_place};
use provost_workspace::collect::{ChangesRoom, gather};
use provost_workspace::snapshot::Base;
use provost_workspace::work_trees::{Author, ChangedFile, NotCommitted, WorkTree, WorkTrees};

/// Returns the changes of a run that an apply would withhold, each with the reason, for the workspace at this path.
pub type Withhold = Arc<dyn Fn(&Path, &Changeset) -> Vec<NotCommitted> + Send + Sync>;

/// A work tree, and its files as they were when the run began.
pub(super) struct TreeRun {
    tree: WorkTree,
    base: Base,
    pub(super) root: Root,
    /// The folder of the repository, which the run may read but not write.
    pub(super) repository: ResolvedPath,
}

impl TreeRun {
    /// Makes the work tree that a task asks for, or takes the existing one; `None` for a task that asks for none.
    pub(super) fn of(trees: Option<&WorkTrees>, task: &Task, copies: &Path) -> Result<Option<Self>, Failure> {
        let Some(branch) = task.order.work_tree.as_deref() else { return Ok(None) };
        let trees = trees.ok_or_else(|| jail_refused("no work trees are made here"))?;
        let tree =
            trees.ready(branch, task.order.worker.as_str(), task.id().as_str()).map_err(jail_refused)?;
        let below = below_of(task);
        let base = tree.record(&below, copies).map_err(jail_refused)?;
        let root = Root::open(&tree.path).map_err(jail_refused)?;
        let repository = find_place(&tree.common).map_err(jail_refused)?;
        Ok(Some(Self { tree, base, root, repository }))
    }

    /// Covers local sockets in the folder of the repository, at which programs of the user listen, such as git's own monitor;
    /// and folders there that cannot be listed, in which there may be more sockets.
    pub(super) fn cover_sockets(&self, draft: &mut Draft, tier: Tier) -> Result<(), Failure> {
        let found = surroundings(&self.repository, self.root.place()).map_err(|why| {
            jail_refused(format!(
                "{why}, so it is not known to which local sockets of yours the worker could connect"
            ))
        })?;
        draft.sockets.extend(self.absolute(found.sockets)?);
        if tier == Tier::Ns {
            draft.hidden.extend(self.absolute(found.shut)?);
        }
        Ok(())
    }

    /// Returns the covered paths in the repository as absolute ones.
    fn absolute(&self, paths: Vec<Vec<u8>>) -> Result<Vec<PathBuf>, Failure> {
        let absolute = |path: Vec<u8>| {
            let path = String::from_utf8(path).map_err(|path| {
                let shown = String::from_utf8_lossy(path.as_bytes()).into_owned();
                jail_refused(format!(
                    "{shown:?} in the repository is a local socket, or a folder that cannot be listed, and its name is not \
                     text; remove it"
                ))
            })?;
            Ok(self.repository.path().join(path))
        };
        paths.into_iter().map(absolute).collect()
    }

    /// Returns the changes of the run.
    pub(super) fn gather(&self, task: &TaskId, room: ChangesRoom) -> Changeset {
        gather(&self.folder(), &self.base, task, room)
    }

    fn folder(&self) -> PathBuf {
        self.tree.path.join(self.base.below.as_str())
    }

    /// Commits the changes.
    pub(super) fn commit(&self, changes: &Changeset, by: &By<'_>, withhold: &Withhold) -> TreeOutcome {
        commit(&self.tree, changes, by, withhold)
    }
}

/// Returns the folder of a task, from the top of a checkout.
fn below_of(task: &Task) -> RepoPath {
    task.directory.as_ref().map(|it| it.relative.clone()).unwrap_or_default()
}

/// Resolves the folder of a task in its work tree. Its device and inode in the workspace do not matter here.
pub(super) fn directory(root: &Root, known: &Directory) -> Result<provost_jail::Resolved, Failure> {
    let found = root.resolve_dir(&known.relative);
    found.map_err(|err| Failure::Sandbox { why: format!("working_dir in the work tree: {err}").into() })
}

/// The author of the changes, for the commit.
pub(super) struct By<'a> {
    pub(super) task: &'a TaskId,
    pub(super) agent: &'a AgentId,
    pub(super) goal: &'a str,
    /// How the run has ended, if it has not ended well.
    pub(super) unfinished: Option<&'a str>,
}

impl<'a> By<'a> {
    /// Returns the author for a task: its worker.
    pub(super) fn of(task: &'a Task, unfinished: Option<&'a str>) -> Self {
        Self { task: task.id(), agent: &task.order.worker, goal: &task.order.goal, unfinished }
    }
}

/// The outcome of a run's changes in its work tree.
#[derive(Debug)]
pub(super) struct TreeOutcome {
    branch: String,
    path: PathBuf,
    commit: Option<String>,
    withheld: Vec<NotCommitted>,
    /// Files that git ignores by a rule that the run has made.
    ignored: Vec<String>,
    /// Whether the work tree and the branch were removed, since the run changed nothing.
    is_gone: bool,
    /// The reason why changes that should be committed are not.
    pub(super) failed: Option<String>,
}

impl TreeOutcome {
    /// Returns the outcome for the details of a task's result.
    pub(super) fn details(&self) -> Value {
        let withheld = self.withheld.iter().map(|(path, why)| json!({ "path": path, "why": why }));
        json!({
            "branch": self.branch,
            "path": self.path.to_string_lossy(),
            "commit": self.commit,
            "not_committed": withheld.collect::<Vec<_>>(),
            "ignored": self.ignored.iter().take(TREE_NAMED_MAX).collect::<Vec<_>>(),
            "ignored_more": self.ignored.len().saturating_sub(TREE_NAMED_MAX),
            "failed": self.failed,
            "removed": self.is_gone,
            "next": self.commit.as_ref().map(|_| merge_command(&self.branch)),
        })
    }
}

fn commit(tree: &WorkTree, changes: &Changeset, by: &By<'_>, withhold: &Withhold) -> TreeOutcome {
    let mut outcome = TreeOutcome {
        branch: tree.branch.clone(),
        path: tree.path.clone(),
        commit: None,
        withheld: Vec::new(),
        ignored: Vec::new(),
        is_gone: false,
        failed: None,
    };
    // A commit of a part would look like the whole work of the run.
    if changes.incomplete {
        let why = changes.beyond.as_deref().unwrap_or("not all that the run has changed could be read");
        outcome.failed =
            Some(format!("nothing is committed: {why}; all of it is still in {}", tree.path.display()));
    } else {
        let held = withhold(&tree.path, changes);
        let is_held = |path: &str| held.iter().any(|(it, _)| it == path);
        let files = changes.collected.iter().filter(|it| !is_held(&it.artifact.path)).filter_map(|it| {
            let content = match (&it.bytes, &*it.artifact.kind) {
                (_, "delete") => None,
                (Some(bytes), _) => Some(bytes.clone()),
                (None, _) => Some(it.artifact.content.as_bytes().to_vec()),
            };
            let program = it.artifact.mode.is_some_and(|mode| mode & 0o111 != 0);
            let path = RepoPath::as_is(&it.artifact.path)?;
            Some(ChangedFile { path, content, program })
        });
        let author = Author {
            agent: by.agent.as_str(),
            task: by.task.as_str(),
            goal: by.goal,
            unfinished: by.unfinished,
        };
        let committed = tree.commit(files.collect(), &author);
        outcome.withheld = held;
        match committed {
            Ok(done) => {
                outcome.commit = done.commit;
                outcome.withheld.extend(done.withheld);
            }
            Err(why) => outcome.failed = Some(format!("nothing is committed: {why}")),
        }
    }
    outcome.ignored = tree.hidden_since(&tree.start).unwrap_or_else(|why| {
        tracing::warn!(why, tree = %tree.path.display(), "it is not known what a run's own rules hide from git");
        Vec::new()
    });
    let is_empty = changes.collected.is_empty() && changes.left_out.is_empty() && !changes.incomplete;
    // A work tree that says nothing new would only fill the list of work trees.
    if is_empty && outcome.failed.is_none() && outcome.commit.is_none() {
        match tree.let_go(by.agent.as_str(), by.task.as_str()) {
            Ok(false) => {}
            Ok(true) => {
                outcome.is_gone = true;
                return outcome;
            }
            Err(why) => {
                tracing::warn!(why, tree = %tree.path.display(), "an unchanged work tree was not removed")
            }
        }
    }
    if let Err(why) = tree.finish(outcome.failed.is_none()) {
        tracing::warn!(why, tree = %tree.path.display(), "the end of a run is not on its work tree's record");
    }
    outcome
}

/// Keeps and commits the changes of a lost run in its work tree, compared with the commit at which the run began.
pub(super) async fn rescue(
    workers: &Arc<Workers>,
    task: &Arc<Task>,
) -> (Option<Changeset>, Option<TreeOutcome>) {
    let lost = |why: String| {
        let why = format!("what it had changed is not among the artifacts; it is in its work tree: {why}");
        Changeset { left_out: vec![why.into()], incomplete: true, ..Changeset::default() }
    };
    let turn = match workers.tree_turn(task).await {
        Ok(turn) => turn,
        Err(failure) => return (Some(lost(sentence(&failure))), None),
    };
    let (place, task, keep) = (workers.place.clone(), task.clone(), workers.keep.clone());
    let (room, withhold) = ((workers.room)(), workers.withhold.clone());
    let work = move || {
        let trees = place.trees.as_deref().ok_or("no work trees are made here")?;
        let Some((tree, changes)) = rescued(trees, &task, &place.copies, room)? else { return Ok(None) };
        keep((task.id(), task.attempt()), &changes, "")?;
        let outcome = commit_rescued(&tree, &changes, &task, &withhold);
        drop(turn);
        Ok(Some((changes, outcome)))
    };
    let done: Result<Result<_, String>, _> = tokio::task::spawn_blocking(work).await;
    match done.unwrap_or_else(|err| Err(err.to_string())) {
        Ok(Some((changes, outcome))) => (Some(changes), Some(outcome)),
        Ok(None) => (None, None),
        Err(why) => (Some(lost(why)), None),
    }
}

/// Returns the changes of a run whose end no daemon saw, and their work tree. Blocking.
fn rescued(
    trees: &WorkTrees,
    task: &Task,
    copies: &Path,
    room: ChangesRoom,
) -> Result<Option<(WorkTree, Changeset)>, String> {
    let Some(branch) = task.order.work_tree.as_deref() else { return Ok(None) };
    let Some(tree) = trees.interrupted(branch, task.id().as_str())? else { return Ok(None) };
    let base = tree.record_of_start(&below_of(task), copies)?;
    let changes = gather(&tree.path.join(base.below.as_str()), &base, task.id(), room);
    Ok(Some((tree, changes)))
}

/// Commits the changes of a lost run.
fn commit_rescued(tree: &WorkTree, changes: &Changeset, task: &Task, withhold: &Withhold) -> TreeOutcome {
    commit(tree, changes, &By::of(task, Some("the daemon ended while it went on")), withhold)
}
