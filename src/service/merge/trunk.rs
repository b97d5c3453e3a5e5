//! The step that changes something of the user's: the trunk goes from one commit to another, and the work
//! trees in which it is checked out follow.

use super::super::Provost;
use super::MergeError;
use provost_domain::command::MoveMerge;
use provost_domain::{MergeEntry, MergeState};
use provost_workspace::git_objects::Objects;
use provost_workspace::git_refs::{Person, WorkTree};
use provost_workspace::trunk::{CannotFollow, Follower};

/// Where a trunk is to go.
pub(super) struct Way<'a> {
    /// The name of the trunk.
    pub(super) branch: &'a str,
    /// The commit at which it is.
    pub(super) from: &'a str,
    /// The commit to which it goes.
    pub(super) to: &'a str,
}

/// What became of it.
pub(super) enum Moved {
    /// It is there, and these files in work trees were left as they were.
    Yes(Vec<String>),
    /// It was moved by another process.
    No,
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
    /// Moves the trunk. It is on record before anything changes, so that a start finds out how far it came.
    pub(super) async fn move_trunk(
        &self,
        entry: &MergeEntry,
        way: &Way<'_>,
        by: &Person,
    ) -> Result<Moved, MergeError> {
        let branch = way.branch.to_owned();
        let trees = self.with_objects(move |objects| checked_out(objects, &branch)).await?;
        let tops = trees.iter().map(|it| it.top.to_string_lossy().into()).collect();
        let moving = MergeState::Moving { from: way.from.into(), to: way.to.into(), trees: tops };
        self.submit(self.system(), MoveMerge { number: entry.number, to: moving }).await?;
        let (branch, from, to) = (way.branch.to_owned(), way.from.to_owned(), way.to.to_owned());
        let (by, reason) = (by.clone(), format!("provost merge: {}", entry.branch));
        self.with_objects(move |objects| {
            let followers: Vec<Follower<'_>> =
                trees.iter().map(|tree| Follower::new(objects, tree, (&from, &to))).collect();
            for (at, follower) in followers.iter().enumerate() {
                if let Err(why) = follower.prepare() {
                    release(&followers[..at]);
                    return Err(why.into());
                }
            }
            match objects.repository().move_branch(&branch, (&from, &to), (&by, &reason)) {
                Ok(true) => Ok(Moved::Yes(finish(&followers)?)),
                Ok(false) => {
                    release(&followers);
                    Ok(Moved::No)
                }
                Err(error) => {
                    release(&followers);
                    Err(error.into())
                }
            }
        })
        .await
    }

    /// After a crash: where the trunk was moved, its work trees follow to the end, with what they have left
    /// alone; where it was not, they are as they were, and there is nothing to say.
    pub(super) async fn settle_trunk(&self, way: &Way<'_>) -> Result<Option<Vec<String>>, MergeError> {
        let (branch, from, to) = (way.branch.to_owned(), way.from.to_owned(), way.to.to_owned());
        self.with_objects(move |objects| {
            objects.repository().wait_for_turn().map_err(provost_workspace::GitError::from)?;
            let trees = objects.repository().work_trees()?;
            let followers: Vec<Follower<'_>> =
                trees.iter().map(|tree| Follower::new(objects, tree, (&from, &to))).collect();
            let now = objects.repository().commit_of(&branch);
            let is_there =
                now.is_ok_and(|now| now != from && objects.is_ancestor(&to, &now).unwrap_or(false));
            if is_there {
                return Ok(Some(finish(&followers)?));
            }
            release(&followers);
            Ok(None)
        })
        .await
    }
}

fn finish(followers: &[Follower<'_>]) -> Result<Vec<String>, MergeError> {
    let mut left = Vec::new();
    for follower in followers {
        left.extend(follower.finish()?);
    }
    Ok(left)
}

fn release(followers: &[Follower<'_>]) {
    for follower in followers {
        if let Err(error) = follower.release() {
            tracing::error!(%error, "the lock of an index that is ours was not removed");
        }
    }
}
