//! Merges branches into the trunk without a work tree: previews, orders and checks them, and takes them in one by
//! one.
//!
//! Git merges text; symbols and calls are read from git's objects; the core knows contracts and locks. The core has
//! the queue and records how far each entry is; `run` has the steps of a run, and those by which a start settles a
//! run that was cut short.

mod check;
mod compare;
mod merge_facts;
mod merge_order;
mod owner;
mod preview;
mod run;
mod settings;
mod study;
mod trunk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Provost;
use provost_base::{Fence, Ttl};
use provost_domain::command::{
    MergesBegun, MergesQueued, MergesRemoved, QueueMerges, RemoveMerges, RunMerges,
};
use provost_domain::view::AllMerges;
use provost_domain::{Answer, MergeEntry, MergePasses, Principal, Refusal, Scope};
use provost_workspace::GitError;
use provost_workspace::git_objects::Objects;
use provost_workspace::git_refs::{BranchError, Repository};

pub use compare::{ConflictKind, MergeConflict};
pub use owner::Owner;
pub use preview::{BranchPreview, MergePreview, PairPreview};

/// The settings of merges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeSettings {
    /// A folder of the daemon's own, for the files that git needs beside the objects.
    pub scratch: PathBuf,
    /// The checks of the merged tree: names of workers, or command lines for the worker `shell`.
    pub checks: Vec<Box<str>>,
    /// The most time that each check may take.
    pub check_timeout: Ttl,
}

/// A request to merge branches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MergeOrder {
    /// The branches, as the caller names them.
    pub branches: Vec<String>,
    /// The branch into which they are merged; `None` means the branch that is checked out in the workspace.
    pub into: Option<String>,
    /// The commits that the caller has seen, in the order of the branches; empty if the caller has seen none.
    pub commits: Vec<String>,
}

/// The reason why branches were not previewed or queued. Then nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The core has refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A branch is not known.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// Git has failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no trunk to merge into.
    #[error("no branch is checked out in the workspace; say into which one: --into BRANCH")]
    NoTrunk,
    /// A branch cannot be merged into itself.
    #[error("{0} is the branch into which the others are merged")]
    Itself(String),
    /// The branch is named twice.
    #[error("{0} is named twice")]
    Twice(String),
    /// A work tree in which the trunk is checked out cannot follow the trunk.
    #[error("{0}")]
    CannotFollow(String),
    /// The branch is no longer at the commit that the caller has seen.
    #[error("{branch} was at {seen} when you looked, and is at {now} now; look again")]
    HasMoved {
        /// The branch.
        branch: String,
        /// The commit that the caller has seen.
        seen: String,
        /// The commit that it names now.
        now: String,
    },
    /// The daemon cannot determine which files run outside of every jail.
    #[error("it is not known which of the files run outside of every jail: {0}")]
    Unknown(String),
    /// No branch was named.
    #[error("no branch is named")]
    Nothing,
}

/// Branches and the trunk, each with the commit that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Named {
    /// The name of the trunk, and its commit.
    pub(super) into: (String, String),
    /// Names of branches, and their commits.
    pub(super) branches: Vec<(String, String)>,
}

impl Provost {
    fn merge_settings(&self) -> Arc<MergeSettings> {
        self.configured().merges
    }

    /// Does work with the objects of the repository, on a thread that may block.
    pub(super) async fn with_objects<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Objects) -> Result<T, MergeError> + Send + 'static,
    ) -> Result<T, MergeError> {
        let (top, scratch) = (self.root().place().path().to_owned(), self.merge_settings().scratch.clone());
        let work = move || {
            let repository = Repository::open(&top, &scratch)?;
            work(&Objects::of(&repository)?)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(Refusal::Stopping.into()))
    }

    /// Writes the files of a commit into an empty folder. Blocking.
    ///
    /// # Errors
    /// [`MergeError`].
    pub fn write_commit(&self, commit: &str, folder: &Path) -> Result<(), MergeError> {
        let settings = self.merge_settings();
        let repository = Repository::open(self.root().place().path(), &settings.scratch)?;
        let objects = Objects::of(&repository)?;
        Ok(objects.write_all(&objects.tree_of(commit)?, folder)?)
    }

    /// Puts branches into the queue, at the commits that they name now.
    ///
    /// # Errors
    /// [`MergeError`].
    pub async fn queue_merges(
        &self,
        who: &Principal,
        order: MergeOrder,
        passes: MergePasses,
    ) -> Result<Answer<MergesQueued>, MergeError> {
        let (into, branches) = self.with_objects(move |objects| preview::asked(objects, &order)).await?;
        // This comes before a person is asked, since no answer would help.
        if passes != MergePasses::default() && !who.operates() {
            return Err(Refusal::OutOfScope { needs: Scope::Operate }.into());
        }
        Ok(self.submit_judged(who, QueueMerges { branches, into, passes }).await?)
    }

    /// Removes from the queue branches that wait to be merged into one branch: the named one, or the only one.
    ///
    /// # Errors
    /// [`Refusal::MergeCannot`], and [`Refusal::OutOfScope`] for entries of other agents.
    pub async fn remove_merges(
        &self,
        who: &Principal,
        (branches, into): (&[String], Option<&str>),
    ) -> Result<MergesRemoved, Refusal> {
        let all = self.merges().await?;
        let mut numbers = Vec::new();
        for branch in branches {
            let name = short(branch);
            let is_meant = |it: &&Arc<MergeEntry>| {
                &*it.branch == name && into.is_none_or(|into| *it.into == *short(into)) && !it.state.is_over()
            };
            let found: Vec<&Arc<MergeEntry>> = all.iter().filter(is_meant).collect();
            let trunks: Vec<&str> = found.iter().map(|it| &*it.into).collect();
            let why = match trunks.len() {
                0 => format!(
                    "the branch {name:?} does not wait in the queue of merges; `provost merge queue list` shows what does"
                ),
                1 => {
                    numbers.extend(found.iter().map(|it| it.number));
                    continue;
                }
                _ => format!(
                    "the branch {name:?} waits to be merged into {}; say which: --into BRANCH",
                    trunks.join(" and ")
                ),
            };
            return Err(Refusal::MergeCannot { why: why.into() });
        }
        self.submit(who, RemoveMerges { numbers }).await
    }

    /// Returns the queue, oldest entry first, with the entries that have lately left it.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn merges(&self) -> Result<Vec<Arc<MergeEntry>>, Refusal> {
        self.view(AllMerges).await
    }

    /// Starts a run that merges these entries of the queue; all waiting ones if none is named. The run is owed when this returns.
    ///
    /// # Errors
    /// [`Refusal::OutOfScope`], and [`Refusal::MergeCannot`].
    pub async fn run_merges(&self, who: &Principal, only: Vec<Fence>) -> Result<MergesBegun, Refusal> {
        self.submit(who, RunMerges { only }).await
    }
}

/// Returns the name of a branch without the prefix `refs/heads/`.
fn short(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}
