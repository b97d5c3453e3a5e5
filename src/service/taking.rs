//! Tasks of other hosts: reads the commit for a task from the asker's clone, and checks whether this host's clone has it.

use std::path::Path;
use std::sync::Arc;

use super::Provost;
use provost_base::Digest;
use provost_domain::command::TakeTask;
use provost_domain::{Delegate, Directory, Facts, MightTravel, Refusal, Task};
use provost_jail::{Copies, Profile};
use provost_workspace::quiet_git::{Input, QuietGit};

/// How many characters of a commit's id are shown.
const SHOWN_LEN: usize = 12;

impl Provost {
    /// Adds the commit on which a delegation works to its facts, if another host might run it.
    pub(super) async fn with_commit(&self, verb: &Delegate, facts: Facts) -> Facts {
        let asked = MightTravel { worker: verb.worker.clone(), placement: verb.placement.clone() };
        if !self.view(asked).await.unwrap_or_default() {
            return facts;
        }
        let root = self.root().place().path().to_owned();
        let found = tokio::task::spawn_blocking(move || clean_commit(&root)).await;
        match found.unwrap_or_else(|_| Err("it is shutting down".into())) {
            Ok(commit) => Facts { commit: Some(commit.into()), ..facts },
            Err(why) => Facts { commit_refused: Some(why.into()), ..facts },
        }
    }

    /// Lets this host take an open task, or records why it cannot; `home` says whether the task was requested on this host.
    ///
    /// # Errors
    /// A [`Refusal`]: another host has taken the task, or it is over.
    pub async fn take_open(&self, task: Arc<Task>, home: bool) -> Result<bool, Refusal> {
        let provost = self.clone();
        let id = task.id().clone();
        let found = tokio::task::spawn_blocking(move || provost.found_here(&task, home)).await;
        let found = found.map_err(|_| Refusal::Stopping)?;
        let verb = match found {
            Ok((directory, program)) => {
                TakeTask { task: id, directory: Some(directory), program, cannot: None }
            }
            Err(why) => TakeTask { task: id, directory: None, program: None, cannot: Some(why.into()) },
        };
        let ask = || self.engine().submit(self.system(), verb.clone());
        Ok(self.engine().insist(None, ask).await?.is_taken)
    }

    /// Returns the directory of a task in this clone, and the digest of its program.
    fn found_here(&self, task: &Task, home: bool) -> Result<(Directory, Option<Digest>), String> {
        let profiles = self.profiles();
        let profile = profiles.get(&task.order.worker).ok_or("its configuration has not got the worker")?;
        if let Some(travel) = task.travel.as_ref().filter(|_| !home) {
            must_have(self.root().place().path(), &travel.commit, profile)?;
        }
        // Absolute paths of the asker's machine have no meaning on this one.
        let working_dir = task.directory.as_ref().map(|it| it.relative.as_str().into());
        let order = Delegate { working_dir, ..task.order.clone() };
        let directory = self.directory(&order, Some(profile))?;
        Ok((directory, self.program(profile, None)))
    }
}

/// Returns the commit of a clone without uncommitted changes. Blocking.
fn clean_commit(root: &Path) -> Result<String, String> {
    let git = QuietGit::of(root, root)?;
    let commit = git.line(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])?;
    let commit = commit.ok_or("the repository has no commit yet")?;
    let changed = git.must(
        &["--no-optional-locks", "status", "--porcelain", "-z", "--untracked-files=normal"],
        Input::Nothing,
    )?;
    if changed.is_empty() {
        return Ok(commit);
    }
    Err("the clone has changes that are not committed; commit or stash them, and ask again".into())
}

/// Checks that this clone can give a run the files of a commit. Blocking.
fn must_have(root: &Path, commit: &str, profile: &Profile) -> Result<(), String> {
    let short = &commit[..commit.len().min(SHOWN_LEN)];
    let git = QuietGit::of(root, root)?;
    if !git.run(&["cat-file", "-e", &format!("{commit}^{{commit}}")], Input::Nothing)?.success {
        return Err(format!("its clone has not got the commit {short}; fetch it there (git fetch)"));
    }
    if profile.copies == Copies::No {
        // A run without a copy works on the files that are checked out.
        let here = clean_commit(root)?;
        if here != commit {
            let here = &here[..here.len().min(SHOWN_LEN)];
            return Err(format!("its clone is at {here}, and the task works on {short} without a copy"));
        }
    }
    Ok(())
}
