//! The step that changes the user's refs and files: the trunk moves from one commit to another, and the work trees
//! in which it is checked out follow.
//!
//! Once the trunk has moved, the branch is merged, even if its work trees cannot follow. A work tree that could not
//! follow keeps its lock; the next merge, or the next start, brings it to its branch.

use super::super::Provost;
use super::MergeError;
use provost_domain::command::MoveMerge;
use provost_domain::{MergeEntry, MergeState, Refusal};
use provost_workspace::git_objects::Objects;
use provost_workspace::git_refs::{BranchError, Person, WorkTree};
use provost_workspace::trunk::{CannotFollow, Follower, LeftAlone, marked_way};

/// How often following is tried in a work tree: if git was killed, the next try may succeed.
const TRIES: usize = 3;

/// The planned move of a trunk.
pub(super) struct TrunkMove<'a> {
    /// The name of the trunk.
    pub(super) branch: &'a str,
    /// The commit of the trunk before the move.
    pub(super) from: &'a str,
    /// The commit to which it goes.
    pub(super) to: &'a str,
}

/// The outcome of a move.
pub(super) enum Moved {
    /// The trunk is at the new commit.
    Yes(Followed),
    /// Another process has moved the trunk.
    No,
}

/// The state of the work trees that follow.
#[derive(Debug, Default)]
pub(super) struct Followed {
    left: LeftAlone,
    /// The work trees that have not followed yet, each with the reason.
    behind: Vec<String>,
}

impl Followed {
    /// Returns the text for a person about files and work trees that were left; empty if all have followed.
    pub(super) fn note(&self) -> String {
        let mut notes = Vec::new();
        let (yours, unwritten) = (self.left.yours.join(", "), self.left.unwritten.join(", "));
        if !yours.is_empty() {
            notes.push(format!(
                "these files had changes of yours when the work tree followed, and were left alone: {yours}; `git status` shows them"
            ));
        }
        if !unwritten.is_empty() {
            notes.push(format!(
                "these files could not be written, and are as they were: {unwritten}; `git status` shows them, and \
                 `git restore FILE` writes them when the reason is gone"
            ));
        }
        if !self.behind.is_empty() {
            notes.push(format!(
                "the trunk has moved, and a work tree has not followed: {}. Its index stays locked (index.lock) until the next \
                 merge or the next start of the daemon brings it there",
                self.behind.join("; ")
            ));
        }
        notes.join("\n")
    }
}

impl From<CannotFollow> for MergeError {
    fn from(why: CannotFollow) -> Self {
        match why {
            CannotFollow::Git(error) => Self::Git(error),
            why => Self::CannotFollow(why.to_string()),
        }
    }
}

fn checked_out(objects: &Objects, branch: &str) -> Result<Vec<WorkTree>, MergeError> {
    let all = objects.repository().work_trees()?;
    Ok(all.into_iter().filter(|it| it.branch.as_deref() == Some(branch)).collect())
}

impl Provost {
    /// Moves the trunk. The move is recorded before anything changes, so that a start can find out how far it came.
    pub(super) async fn move_trunk(
        &self,
        entry: &MergeEntry,
        way: &TrunkMove<'_>,
        by: &Person,
    ) -> Result<Moved, MergeError> {
        let held = self.work_trees().hold(way.branch).ok_or_else(|| run_works_on(way.branch))?;
        let branch = way.branch.to_owned();
        let trees = self
            .with_objects(move |objects| {
                settle_marked(objects, &[])?;
                checked_out(objects, &branch)
            })
            .await?;
        let tops = trees.iter().map(|it| it.top.to_string_lossy().into()).collect();
        let moving = MergeState::Moving { from: way.from.into(), to: way.to.into(), trees: tops };
        self.submit(self.system(), MoveMerge { number: entry.number, to: moving }).await?;
        let (branch, from, to) = (way.branch.to_owned(), way.from.to_owned(), way.to.to_owned());
        let (by, reason) = (by.clone(), format!("provost merge: {}", entry.branch));
        self.with_objects(move |objects| {
            // No run may begin in a work tree that holds files of both commits.
            let _held = held;
            let followers: Vec<Follower<'_>> =
                trees.iter().map(|tree| Follower::new(objects, tree, (&from, &to))).collect();
            for (at, follower) in followers.iter().enumerate() {
                if let Err(why) = follower.prepare() {
                    release(&followers[..at]);
                    return Err(why.into());
                }
            }
            let moved = objects.repository().move_branch(&branch, (&from, &to), (&by, &reason));
            if matches!(moved, Ok(true)) {
                return Ok(Moved::Yes(finish(&followers)));
            }
            // If git was killed, the branch shows whether it has moved.
            match is_there(objects, &branch, (&from, &to)) {
                Ok(true) => Ok(Moved::Yes(finish(&followers))),
                Ok(false) => {
                    release(&followers);
                    moved.map(|_| Moved::No).map_err(Into::into)
                }
                Err(error) => {
                    let why = format!("it cannot be told whether {branch} was moved: {error}");
                    Err(Refusal::Unavailable { why: why.into() }.into())
                }
            }
        })
        .await
    }

    /// Settles a move after a crash: if the trunk was moved, its work trees follow now; if not, they are unchanged,
    /// and the answer is `None`.
    pub(super) async fn settle_trunk(&self, way: &TrunkMove<'_>) -> Result<Option<Followed>, MergeError> {
        let (branch, from, to) = (way.branch.to_owned(), way.from.to_owned(), way.to.to_owned());
        self.with_objects(move |objects| {
            objects.repository().wait_for_turn().map_err(provost_workspace::GitError::from)?;
            let trees = objects.repository().work_trees()?;
            let followers: Vec<Follower<'_>> =
                trees.iter().map(|tree| Follower::new(objects, tree, (&from, &to))).collect();
            if is_there(objects, &branch, (&from, &to))? {
                return Ok(Some(finish(&followers)));
            }
            release(&followers);
            Ok(None)
        })
        .await
    }

    /// Brings work trees, at a start, to their branches if an earlier merge has left them with the daemon's lock. Those
    /// of a run that is still owed are left to that run.
    pub async fn settle_followers(&self) {
        let Ok(_turn) = self.0.merging.acquire().await else { return };
        let Ok(entries) = self.merges().await else { return };
        let of = |it: &MergeEntry| match &it.state {
            MergeState::Moving { from, to, .. } => Some((from.to_string(), to.to_string())),
            _ => None,
        };
        let owed: Vec<(String, String)> = entries.iter().filter_map(|it| of(it)).collect();
        let done = self.with_objects(move |objects| settle_marked(objects, &owed)).await;
        match done {
            Ok(()) | Err(MergeError::Git(provost_workspace::GitError::NoRepository(_))) => {}
            Err(error) => {
                tracing::warn!(%error, "it is not known whether a merge has left a work tree half-way")
            }
        }
    }
}

/// Returns the error for a trunk in whose work tree a run works.
pub(super) fn run_works_on(branch: &str) -> MergeError {
    MergeError::CannotFollow(format!(
        "a run works there: in the work tree of {branch}. Merge again when it has ended; `provost worktree list` names its task"
    ))
}

/// Checks whether a branch has reached its target commit, or a later one.
fn is_there(objects: &Objects, branch: &str, (from, to): (&str, &str)) -> Result<bool, MergeError> {
    match objects.repository().commit_of(branch) {
        Ok(now) => Ok(now != from && objects.is_ancestor(to, &now)?),
        Err(BranchError::Git(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

/// Settles each work tree whose index has the daemon's lock, except for these moves.
fn settle_marked(objects: &Objects, but_for: &[(String, String)]) -> Result<(), MergeError> {
    for tree in objects.repository().work_trees()? {
        let Some(way) = marked_way(objects, &tree).filter(|it| !but_for.contains(it)) else { continue };
        let (from, to) = (&*way.0, &*way.1);
        let follower = Follower::new(objects, &tree, (from, to));
        let Some(branch) = &tree.branch else { continue };
        if !is_there(objects, branch, (from, to))? {
            release(&[follower]);
            continue;
        }
        let note = finish(&[follower]).note();
        tracing::warn!(tree = %tree.top.display(), note, "a work tree that a merge had left half-way was brought to its branch");
    }
    Ok(())
}

/// Brings all work trees to the branch's commit, as far as possible.
fn finish(followers: &[Follower<'_>]) -> Followed {
    let mut all = Followed::default();
    for follower in followers {
        let mut done = follower.finish();
        for _ in 1..TRIES {
            if done.is_err() {
                done = follower.finish();
            }
        }
        match done {
            Ok(left) => {
                all.left.yours.extend(left.yours);
                all.left.unwritten.extend(left.unwritten);
            }
            Err(error) => all.behind.push(format!("{} ({error})", follower.top())),
        }
    }
    all
}

fn release(followers: &[Follower<'_>]) {
    for follower in followers {
        if let Err(error) = follower.release() {
            tracing::error!(%error, "the lock of an index that is ours was not removed");
        }
    }
}
