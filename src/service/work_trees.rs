//! Git work trees of runs: the branch of a delegation, the list, the removal, and the changes of a run that are not committed.

use std::path::Path;
use std::sync::Arc;

use super::Provost;
use provost_base::Json;
use provost_domain::command::Record;
use provost_domain::{Changeset, CollectedArtifact, Delegate, Principal, Refusal, Scope};
use provost_jail::{Copies, Profile};
use provost_workspace::work_trees::{Listed, NotCommitted, Removed, WorkTrees, named_after};

impl Provost {
    /// Returns the work trees of this repository's runs. Using them blocks.
    pub fn work_trees(&self) -> &Arc<WorkTrees> {
        &self.0.trees
    }

    /// Checks whether a delegation works in a work tree whose branch the daemon names after it.
    pub(super) fn names_no_branch(&self, verb: &Delegate) -> bool {
        let works_so = || self.profiles().get(&verb.worker).is_some_and(|it| it.copies == Copies::WorkTree);
        verb.work_tree.as_deref().map_or_else(works_so, str::is_empty)
    }

    /// Names the branch of a delegation that works in a work tree; returns the reason if it cannot. For a repeated
    /// request, the branch may exist already. Blocking.
    pub(super) fn settle_work_tree(
        &self,
        verb: &mut Delegate,
        (profile, is_repeat): (Option<&Profile>, bool),
    ) -> Option<Box<str>> {
        // Work that an editor requests is done in its job's copy.
        let by_itself = profile.is_some_and(|it| it.copies == Copies::WorkTree) && verb.errand.is_none();
        if verb.work_tree.is_none() && by_itself {
            verb.work_tree = Some("".into());
        }
        let branch = verb.work_tree.as_deref()?;
        if branch.is_empty() {
            let name = named_after(verb.worker.as_str(), verb.task.as_str());
            let refused = if is_repeat { Ok(()) } else { self.0.trees.check_unused(&name) };
            verb.work_tree = Some(name.into());
            if let Err(why) = refused {
                return Some(why.into());
            }
        }
        self.0.trees.check(verb.work_tree.as_deref()?).err().map(Into::into)
    }

    /// Returns the present work trees of runs.
    ///
    /// # Errors
    /// [`Refusal::WorkTreeCannot`], when git fails.
    pub async fn listed_work_trees(&self) -> Result<Vec<Listed>, Refusal> {
        let trees = self.0.trees.clone();
        blocking("the work trees cannot be listed", move || trees.list()).await
    }

    /// Removes a work tree, named by its branch or its folder, and its branch if the caller wants that.
    ///
    /// # Errors
    /// [`Refusal::WorkTreeCannot`] with the next step, or [`Refusal::OutOfScope`] for an agent.
    pub async fn remove_work_tree(
        &self,
        who: &Principal,
        which: &str,
        (force, branch): (bool, bool),
    ) -> Result<Removed, Refusal> {
        // Uncommitted changes are lost for good, so no model decides about it.
        if !who.operates() {
            return Err(Refusal::OutOfScope { needs: Scope::Operate });
        }
        let (trees, which) = (self.0.trees.clone(), which.to_owned());
        let removed =
            blocking("the work tree is not removed", move || trees.remove(&which, force, branch)).await?;
        let details = serde_json::json!({
            "by": who.agent(), "path": removed.path.to_string_lossy(), "branch_deleted": removed.branch_deleted,
        });
        let (what, subject) = ("work_tree.removed".into(), removed.branch.as_str().into());
        self.submit(&self.0.system, Record { what, subject, details: Json::from_value(&details) }).await?;
        Ok(removed)
    }

    /// Returns the changes of a run that an apply would withhold, in the work tree at this path, with the reasons. Blocking.
    pub fn withheld(&self, root: &Path, changes: &Changeset) -> Vec<NotCommitted> {
        let decided = self.not_to_be_written(root, &changes.collected);
        let one =
            |(it, why): (&CollectedArtifact, Option<String>)| Some((it.artifact.path.to_string(), why?));
        changes.collected.iter().zip(decided).filter_map(one).collect()
    }
}

async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| Refusal::Stopping)?;
    done.map_err(|why| Refusal::WorkTreeCannot { why: format!("{what}: {why}").into() })
}
