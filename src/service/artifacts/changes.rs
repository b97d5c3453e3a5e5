//! The changes that a task's run has made in its private copy: finding, showing, taking into the workspace, discarding.
//!
//! A job is carried out by several runs in one copy, so its changes are those of its last run that has kept any. An agent that
//! may read a task may see its changes; the rules decide who may have them written, and the core decides who may discard them.

use std::collections::BTreeSet;

use super::{
    Agreed, Answer, Applied, ApplyError, Artifact, Previewed, Principal, Provost, Refusal, RepoPath,
    SHOWN_CHARS,
};
use provost_base::{
    DaemonId, HostId, JobId, TaskId, WITH_BACKSLASH, is_absolute, nearest, shell_word, visible_name,
};
use provost_domain::command::DiscardChanges;
use provost_domain::view::OneJob;
use provost_domain::{Failure, HereIs, StoredChangeset, Task};

/// Paths near a wrong one that an error names.
const NEAR_MAX: usize = 3;

/// The longest path that is compared with each of the changes, in bytes.
const COMPARED_LEN_MAX: usize = 256;

/// The outcome of a discard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Discarded {
    /// The number of files that were kept.
    pub files: u32,
    /// Whether they had been discarded before this call.
    pub already: bool,
}

impl Provost {
    /// Returns the effects of taking in a task's changes now; all of them, or those at these paths and below them.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub async fn preview_task(
        &self,
        who: &Principal,
        task: &TaskId,
        paths: &[String],
    ) -> Result<Vec<Previewed>, ApplyError> {
        let changes = self.changes_of(task, paths).await?;
        self.compare_all(who, changes).await
    }

    /// Writes a task's changes into the workspace; all of them, or those at these paths and below them. Writes
    /// nothing if a person has agreed to other content.
    ///
    /// # Errors
    /// [`ApplyError`]; then nothing has changed.
    pub async fn apply_task(
        &self,
        who: &Principal,
        task: &TaskId,
        paths: &[String],
        agreed: Option<Agreed>,
    ) -> Result<Answer<Applied>, ApplyError> {
        let changes = self.changes_of(task, paths).await?;
        self.apply_all(who, changes, agreed).await
    }

    /// Forgets a task's changes for good; for a job, the changes of all its runs.
    ///
    /// # Errors
    /// [`ApplyError`]; then the changes of a task are unchanged, but some runs of a job may have lost theirs.
    pub async fn discard_task(&self, who: &Principal, task: &TaskId) -> Result<Discarded, ApplyError> {
        let mut done: Option<Discarded> = None;
        for run in self.runs_of(task).await? {
            let kept = self.kept_of(&run).await?.map_or(0, |it| it.artifacts.len());
            let files = u32::try_from(kept).unwrap_or(u32::MAX);
            match self.submit(who, DiscardChanges { task: run.clone(), files }).await {
                Ok(it) => {
                    // The runs of a job share one copy, so the last one has the files of all.
                    let before = done.is_none_or(|it: Discarded| it.already);
                    done = Some(Discarded { files: it.files, already: it.already && before });
                    self.drop_changes(&run).await?;
                }
                Err(Refusal::NoChanges) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        match done {
            Some(done) => Ok(done),
            None => Err(ApplyError::NothingKept(task.clone())),
        }
    }

    /// Removes the changes of a task from the disk, once the journal has their discard.
    ///
    /// # Errors
    /// [`Refusal::NotReady`] with the system's error.
    pub async fn drop_changes(&self, task: &TaskId) -> Result<(), Refusal> {
        let (artifacts, id) = (self.artifacts(), task.clone());
        let removed = tokio::task::spawn_blocking(move || artifacts.discard(&id)).await;
        removed.map_err(|_| Refusal::Stopping)?.map_err(|err| {
            tracing::error!(%err, %task, "discarded changes cannot be removed from the disk");
            Refusal::NotReady { why: err.to_string().into() }
        })
    }

    /// Returns those of these tasks whose changes are to be had, on the disk or from the other hosts.
    pub async fn with_changes<'a>(&self, tasks: impl Iterator<Item = &'a Task>) -> BTreeSet<TaskId> {
        let changed = tasks.filter(|it| it.changes.is_some());
        let changed: Vec<_> = changed.map(|it| (it.id().clone(), it.daemon.host)).collect();
        if changed.is_empty() {
            return BTreeSet::new();
        }
        let (artifacts, here) = (self.artifacts(), self.view(HereIs).await.ok().map(|it| it.host));
        let ran_here =
            move |host: HostId| host.is_alone() || here.is_none_or(|here| here.is_alone() || here == host);
        let there =
            move || artifacts.having(changed.into_iter().map(|(id, host)| (id, ran_here(host))).collect());
        tokio::task::spawn_blocking(there).await.unwrap_or_default()
    }

    /// Returns the kept changes of a task, or those at these paths.
    pub(super) async fn changes_of(
        &self,
        task: &TaskId,
        paths: &[String],
    ) -> Result<Vec<Artifact>, ApplyError> {
        let runs = self.runs_of(task).await?;
        for run in runs.iter().rev() {
            if !self.has_ended(run).await? {
                continue;
            }
            if let Some(kept) = self.kept_of(run).await?.filter(|it| !it.artifacts.is_empty()) {
                return self.chosen(task, kept, paths);
            }
        }
        Err(self.why_nothing(task, &runs).await)
    }

    /// Returns the tasks in whose copies the changes were made, in order: for a job its runs, else the task itself.
    /// The first run of a job has the job's id.
    async fn runs_of(&self, task: &TaskId) -> Result<Vec<TaskId>, ApplyError> {
        let job = task.as_str().strip_prefix("job_").and_then(|it| JobId::parse(it).ok());
        let job = match job {
            Some(job) => self.view(OneJob(job)).await?,
            None => None,
        };
        match job {
            Some(job) if !job.state.is_over() => {
                Err(ApplyError::NotEnded { task: task.clone(), state: job.state.as_str() })
            }
            Some(job) if !job.tasks.is_empty() => Ok(job.tasks.clone()),
            _ => Ok(vec![task.clone()]),
        }
    }

    /// Returns whether a task may have changes to take in; `false` if they were discarded.
    async fn has_ended(&self, task: &TaskId) -> Result<bool, ApplyError> {
        match self.task(task).await {
            Ok(it) if !it.state.is_finished() => {
                Err(ApplyError::NotEnded { task: task.clone(), state: it.state.as_str() })
            }
            Ok(it) => Ok(it.changes.as_ref().is_none_or(|it| it.discarded.is_none())),
            // The kept changes may outlive the record of the task.
            Err(Refusal::TaskNotFound) => Ok(true),
            Err(refusal) => Err(refusal.into()),
        }
    }

    async fn kept_of(&self, task: &TaskId) -> Result<Option<StoredChangeset>, ApplyError> {
        let (ran, here) = (self.task(task).await.ok(), self.view(HereIs).await.ok());
        // What is kept here is of an earlier attempt.
        if ran.as_ref().is_some_and(|it| it.tried > 0 && it.state.is_finished() && it.changes.is_none()) {
            return Ok(None);
        }
        // A store that has left the database has the tasks of then, and everything that this host ran.
        let here = here.filter(|here| !here.is_alone());
        let is_elsewhere =
            move |it: &Task| !it.daemon.is_alone() && here.is_some_and(|here| here.host != it.daemon.host);
        let (artifacts, id) = (self.artifacts(), task.clone());
        let find = move || match ran.as_deref() {
            Some(it) if is_elsewhere(it) && it.commit_away().is_some() => {
                artifacts.of_elsewhere(&id, (it.daemon.host, it.attempt()))
            }
            // A run at the host of its asker leaves nothing for the others.
            Some(it) if is_elsewhere(it) => Ok(None),
            Some(it) => artifacts.of_attempt(&id, it.attempt()),
            None => artifacts.of(&id),
        };
        let kept = tokio::task::spawn_blocking(find).await;
        let kept = kept.map_err(|err| ApplyError::Unreadable(err.to_string().into()))?;
        kept.map_err(|err| ApplyError::Unreadable(err.to_string().into()))
    }

    /// Finds out why a task has no changes.
    async fn why_nothing(&self, task: &TaskId, runs: &[TaskId]) -> ApplyError {
        let (mut is_known, mut were_kept, mut lost) = (false, false, None);
        let here = self.view(HereIs).await.ok().filter(|here| !here.is_alone());
        let is_elsewhere = |it: DaemonId| !it.is_alone() && here.is_some_and(|here| here.host != it.host);
        for run in runs {
            let Ok(it) = self.task(run).await else { continue };
            is_known = true;
            lost = (it.failure == Some(Failure::Lost))
                .then(|| is_elsewhere(it.daemon).then(|| it.daemon.host.short()));
            match &it.changes {
                Some(changes) if changes.discarded.is_some() => return Refusal::ChangesGone.into(),
                Some(changes) if changes.files > 0 && is_elsewhere(it.daemon) => {
                    return ApplyError::OnAnotherHost { task: task.clone(), host: it.daemon.host.short() };
                }
                Some(changes) => were_kept |= changes.files > 0,
                // Of a run that was lost, no daemon tells an end.
                None if lost.is_none() && it.may_still_run() => {
                    return ApplyError::NotEnded { task: task.clone(), state: "it is being ended" };
                }
                None => {}
            }
        }
        let keeping = self.artifacts().kept_for();
        match (is_known, were_kept) {
            (false, _) => Refusal::TaskNotFound.into(),
            (true, false) => match lost {
                Some(host) => ApplyError::LostRun { task: task.clone(), host },
                None => ApplyError::NothingKept(task.clone()),
            },
            (true, true) => {
                ApplyError::NotKeptAnyMore { task: task.clone(), runs: keeping.runs, days: keeping.days }
            }
        }
    }

    /// Selects the changes at these paths or below them; all changes if there are no paths.
    fn chosen(
        &self,
        task: &TaskId,
        kept: StoredChangeset,
        paths: &[String],
    ) -> Result<Vec<Artifact>, ApplyError> {
        let StoredChangeset { artifacts, left_out, .. } = kept;
        let (checkouts, mut wanted) = (self.checkouts(None), Vec::new());
        let not_among = |text: &str, more: String| {
            Err(ApplyError::NotAmong { path: visible_name(text, SHOWN_CHARS), task: task.clone(), more })
        };
        for text in paths {
            if cfg!(unix) && text.contains('\\') {
                let why = left_out_as(text, &left_out).unwrap_or_else(|| format!("; {WITH_BACKSLASH}"));
                return not_among(text, why);
            }
            let inside = checkouts.inside(text).into_owned();
            let inside = if is_absolute(&inside) { checkouts.folder_inside(text) } else { Some(inside) };
            let Some(path) = inside.filter(|_| !text.is_empty()).and_then(|it| RepoPath::parse(&it).ok())
            else {
                return not_among(text, "; it is no path in the workspace".into());
            };
            if !artifacts.iter().any(|it| is_at(&path, &it.path)) {
                return not_among(text, instead(&path, &artifacts, &left_out));
            }
            wanted.push(path);
        }
        let is_wanted = |it: &Artifact| wanted.is_empty() || wanted.iter().any(|path| is_at(path, &it.path));
        Ok(artifacts.into_iter().filter(is_wanted).collect())
    }
}

/// Returns whether a file is the one at this path, or below it.
fn is_at(path: &RepoPath, file: &str) -> bool {
    let rest = file.strip_prefix(path.as_str());
    path.is_root() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns why a path was left out of the changes, if it was.
fn left_out_as(path: &str, left_out: &[Box<str>]) -> Option<String> {
    let begins = |it: &&str| it.strip_prefix(path).is_some_and(|rest| rest.starts_with(": "));
    let why = left_out.iter().map(|it| &**it).find(begins)?;
    Some(format!(", since it was not kept: {}", visible_name(why, SHOWN_CHARS)))
}

/// Returns the end of the error for a path that is not among the changes.
fn instead(path: &RepoPath, artifacts: &[Artifact], left_out: &[Box<str>]) -> String {
    if let Some(why) = left_out_as(path.as_str(), left_out) {
        return why;
    }
    let all = || artifacts.iter().map(|it| &*it.path);
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let same_name = || all().filter(|it| name(it) == name(path.as_str()));
    let mut near: Vec<&str> = same_name().take(NEAR_MAX).collect();
    // A comparison takes time in proportion to the product of the two lengths.
    if path.as_str().len() <= COMPARED_LEN_MAX {
        near.extend(nearest(path.as_str(), all()).filter(|it| !near.contains(it)));
    }
    if near.is_empty() {
        near = all().take(NEAR_MAX).collect();
    }
    near.truncate(NEAR_MAX);
    // The paths as a shell accepts them: names may have spaces and hidden characters.
    let near: Vec<String> = near.into_iter().map(shell_word).collect();
    format!("; among them: {}", near.join(", "))
}
