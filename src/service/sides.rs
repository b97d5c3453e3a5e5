//! Finds an agent's changes to one file, in the work tree in which the agent is known to work.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::merge::MergeError;
use super::{Difference, Provost};
use provost_base::limits::DIFF_BYTES_MAX;
use provost_base::{AgentId, RepoPath};
use provost_domain::Refusal;
use provost_domain::post::{slug, slug_of_branch};
use provost_domain::view::OwnHost;
use provost_jail::Root;
use provost_workspace::diff::{self, Budget};
use provost_workspace::file;
use provost_workspace::git_objects::Objects;
use provost_workspace::git_refs::WorkTree;

/// How long git's shortest difference is searched for.
const LOOKED_FOR: Duration = Duration::from_millis(500);

/// The changes of one agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedSide {
    /// The agent.
    pub agent: AgentId,
    /// The branch of its work tree, if known.
    pub branch: Option<String>,
    /// The changes, committed or not, since its branch left the one that is checked out in the workspace; or the
    /// reason why they are not known.
    pub changed: Result<Difference, String>,
}

impl Provost {
    /// Returns an agent's changes to a file. Its work tree is known from a file that it has written there, from a
    /// run of the agent in a work tree, or from a branch with the agent's name.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn changed_side(&self, agent: AgentId, file: RepoPath) -> Result<ChangedSide, Refusal> {
        let (locks, _) = self.locks(Some(agent.clone()), vec![file.clone()]).await?;
        // The work trees of other hosts are not on this machine.
        let here = self.view(OwnHost).await?;
        let written = locks.iter().filter_map(|it| it.it.writing.as_ref()).filter(|it| it.host == here);
        let mut tops: Vec<PathBuf> = written.map(|it| PathBuf::from(&*it.tree)).collect();
        // Without git there are no work trees of runs, and the reason is reported below.
        let runs = self.listed_work_trees().await.unwrap_or_default();
        let own = runs.into_iter().filter(|it| it.agent == agent.as_str());
        tops.extend(own.map(|it| it.path));
        let name = agent.clone();
        let found = self.with_objects(move |objects| Ok(side(objects, &name, &tops, &file))).await;
        let (branch, changed) = match found {
            Ok(found) => found,
            Err(MergeError::Refused(refusal)) => return Err(refusal),
            Err(err) => (None, Err(format!("git does not tell: {err}"))),
        };
        Ok(ChangedSide { agent, branch, changed })
    }
}

type Side = (Option<String>, Result<Difference, String>);

/// Finds the work tree of an agent, and compares the file in it. Blocking.
fn side(objects: &Objects, agent: &AgentId, tops: &[PathBuf], file: &RepoPath) -> Side {
    let trees = match objects.repository().work_trees() {
        Ok(trees) => trees,
        Err(err) => return (None, Err(format!("git does not list the work trees: {err}"))),
    };
    let is_named = |it: &&WorkTree| {
        it.branch.as_deref().and_then(slug_of_branch).is_some_and(|of| of == slug(agent.as_str()))
    };
    let known = tops.iter().find_map(|top| trees.iter().find(|it| is_same(&it.top, top)));
    let Some(tree) = known.or_else(|| trees.iter().find(is_named)) else {
        return (None, Err("the daemon knows no separate work tree of it".into()));
    };
    (tree.branch.clone(), changed(objects, tree, file))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |it: &Path| std::fs::canonicalize(it).ok();
    one == other || real(one).is_some_and(|it| real(other) == Some(it))
}

/// Returns the difference between the file where the branch began and the present file in the work tree.
fn changed(objects: &Objects, tree: &WorkTree, file: &RepoPath) -> Result<Difference, String> {
    let in_words = |err: &dyn std::fmt::Display| err.to_string();
    let repository = objects.repository();
    let branch = tree.branch.as_deref().ok_or("no branch is checked out in its work tree")?;
    let tip = repository.commit_of(branch).map_err(|err| in_words(&err))?;
    let trunk = repository.checked_out().map_err(|err| in_words(&err))?;
    let trunk = trunk.map(|it| repository.commit_of(&it)).transpose().map_err(|err| in_words(&err))?;
    let base = match trunk {
        Some(trunk) => objects.base_of(&trunk, &tip).map_err(|err| in_words(&err))?,
        None => None,
    };
    let files = objects.tree_of(base.as_deref().unwrap_or(&tip)).and_then(|it| objects.files(&it));
    let files = files.map_err(|err| in_words(&err))?;
    let old = match files.get(file.as_str()) {
        Some(it) if it.is_regular() => {
            let read = objects.contents(&[&it.object]).map_err(|err| in_words(&err))?;
            Some(read.into_iter().next().flatten().ok_or("the file is larger than files are read")?)
        }
        Some(_) => return Err("it is no regular file".into()),
        None => None,
    };
    let root = Root::open(&tree.top).map_err(|err| in_words(&err))?;
    let new = file::look(root.handle(), file).map_err(|err| in_words(&err))?.map(|it| it.bytes);
    let budget = Budget { until: Instant::now() + LOOKED_FOR, bytes: DIFF_BYTES_MAX };
    Ok(diff::difference(file.as_str(), None, old.as_deref(), new.as_deref(), budget))
}
