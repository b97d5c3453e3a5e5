//! The differences between an agent's run and a worker's: its private copy, the variables that it gets beside the prompt, and
//! its kept changes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::heavy::no_copy;
use super::prepare::{RunEnvironment, jail_refused, worker_failed};
use super::result::Output;
use super::shared_checkout::{CheckoutLease, SharedCheckout};
use super::work_tree_run::TreeRun;
use provost_base::limits::SCHEMA_BYTES_MAX;
use provost_base::{RepoPath, TaskId};
use provost_domain::{Changeset, Failure, JobContext, Task, TaskState};
use provost_jail::{Copies, Draft, Git, Limits, Profile, Reader, Resolved, Root, Transcript, find_place};
use provost_system::find_program;
use provost_workspace::collect::{ChangesRoom, gather};
use provost_workspace::copy::{Copied, NoCopy};
use provost_workspace::orphaned_copies::{self, Mark};
use provost_workspace::quiet_git::{Input, QuietGit};
use provost_workspace::size_quota::Size;
use provost_workspace::snapshot::{self, Snapshot};

/// Stores the changes of a task's attempt, by its number, and its answer, on the disk.
pub type Keep = Arc<dyn Fn((&TaskId, u32), &Changeset, &str) -> Result<(), String> + Send + Sync>;

/// Writes the files of a commit into an empty folder.
pub type WriteTree = Arc<dyn Fn(&str, &Path) -> Result<(), String> + Send + Sync>;

/// The folders that a run has for itself. The run's own copies are removed when this is dropped.
#[derive(Default)]
pub(super) struct RunFolders {
    folder: Folder,
    /// A folder with files that the run may read.
    given: Option<Copied>,
    /// The mark that says whose run works there, so that a later daemon can find out.
    _mark: Option<Mark>,
}

/// The folder in which a run works.
#[derive(Default)]
enum Folder {
    /// The workspace itself, for workers without a copy.
    #[default]
    There,
    /// A copy whose changes are thrown away.
    Copy(Copied),
    /// A copy of the run's own.
    Own(Snapshot),
    /// The copy of the run's job.
    Jobs(CheckoutLease),
    /// A git work tree, which stays after the run.
    Tree(Box<TreeRun>),
}

impl From<TreeRun> for RunFolders {
    fn from(tree: TreeRun) -> Self {
        Self { folder: Folder::Tree(Box::new(tree)), given: None, _mark: None }
    }
}

/// Checks whether a run works in a copy, so that its changes can be found and kept.
pub(super) fn is_apart(task: &Task, profile: &Profile) -> bool {
    let asked = |errand: &JobContext| errand.harvest || errand.copy.is_some();
    // A worker that usually works in work trees gets a copy for a task that names none, such as an editor's.
    let copies = matches!(profile.copies, Copies::Kept | Copies::WorkTree) && task.order.work_tree.is_none();
    let is_of_commit = task.order.errand.as_deref().is_some_and(|it| it.commit.is_some());
    !is_of_commit && (copies || task.order.errand.as_deref().is_some_and(asked))
}

impl RunFolders {
    /// Makes the copy that a task works in, if it works in one. From a job's second run on, the job's copy exists already.
    pub(super) fn of(
        place: &RunEnvironment,
        task: &Task,
        profile: &Profile,
        directory: &Resolved,
        lent: Option<CheckoutLease>,
    ) -> Result<Self, Failure> {
        if is_resumed(task) {
            return Self::again(place, task);
        }
        let below = task.directory.as_ref().map(|it| it.relative.clone()).unwrap_or_default();
        let refused = |why: NoCopy| no_copy(&why, place.root.place().path(), directory.place().path());
        let of_commit = task.order.errand.as_deref().and_then(|it| it.commit.as_deref());
        let away = task.commit_away().filter(|_| profile.copies != Copies::No).map(|it| checkout(place, it));
        let away = away.transpose()?;
        // The source of the copy: the workspace, or the files of a commit for another host's task.
        let inside = away.as_ref().map(|it| it.folder(&below)).transpose()?;
        let apart = || match away.as_ref().zip(inside.as_ref()) {
            Some((commit, folder)) => commit.copy(&place.root, folder, &below, &place.copies),
            None => {
                let copy = snapshot::copy(place.root.handle(), directory.handle(), &below, &place.copies);
                copy.map_err(refused)
            }
        };
        let folder = match (of_commit, lent) {
            (Some(commit), _) => {
                let copied = Copied::empty(&place.copies).map_err(refused)?;
                let written = (place.commits)(commit, copied.path());
                written.map_err(|why| jail_refused(format!("the files of its commit: {why}")))?;
                Folder::Copy(copied)
            }
            (None, Some(lent)) => Folder::Jobs(fill(lent, &below, apart)?),
            (None, None) if is_apart(task, profile) => {
                let mut own = apart()?;
                as_before(&mut own.copied, task, &place.copies)?;
                Folder::Own(own)
            }
            (None, None) if profile.copies == Copies::Thrown => {
                let folder = inside.as_ref().unwrap_or(directory);
                let mut copied = Copied::of(folder.handle(), &place.copies).map_err(refused)?;
                as_before(&mut copied, task, &place.copies)?;
                Folder::Copy(copied)
            }
            (None, None) => Folder::There,
        };
        Self::marked(folder, task)
    }

    fn marked(folder: Folder, task: &Task) -> Result<Self, Failure> {
        let mut private = Self { folder, given: None, _mark: None };
        if let Some(apart) = private.apart() {
            private._mark = Some(Mark::beside(apart.copied.path(), task.id()).map_err(jail_refused)?);
        }
        Ok(private)
    }

    /// Takes up the copy of a run whose agent or daemon has died.
    fn again(place: &RunEnvironment, task: &Task) -> Result<Self, Failure> {
        let gone = || jail_refused("its private copy, or what was written down of it, is not there any more");
        let session = task.talk.as_ref().and_then(|it| it.session.as_ref()).ok_or_else(gone)?;
        let sessions = place.sessions.as_ref().ok_or_else(gone)?;
        let base = sessions.base_of(session.kept.as_ref().ok_or_else(gone)?);
        let left =
            orphaned_copies::of(&place.copies, task.id()).filter(|_| base.is_file()).ok_or_else(gone)?;
        let name = Path::new(&*session.folder).file_name().and_then(|it| it.to_str()).ok_or_else(gone)?;
        let mut copied = Copied::left_at(left);
        if let Err(err) = copied.rename(name) {
            copied.leave();
            return Err(jail_refused(format!("its private copy cannot be reopened: {err}")));
        }
        let taken_up = snapshot::take_up(place.root.handle(), copied, &base, &place.copies);
        Self::marked(Folder::Own(taken_up.map_err(|why| jail_refused(why.to_string()))?), task)
    }

    /// Writes down the state from which the copy was made, so that a later daemon can go on in it.
    pub(super) fn write_down(&self, file: &Path) {
        let Folder::Own(own) = &self.folder else { return };
        if let Err(err) = snapshot::write_down(&own.base, file) {
            tracing::warn!(%err, "what a copy was made of is not written down: its run cannot be resumed");
        }
    }

    /// Leaves the run's own copy for a run that goes on in it. `false` if the run has none, or if the copy is lost.
    pub(super) fn leave(self, copies: &Path, task: &TaskId) -> bool {
        let Folder::Own(own) = self.folder else { return false };
        let left = orphaned_copies::leave(copies, own.copied, task);
        left.inspect_err(|err| tracing::warn!(%err, %task, "the copy of a run is lost")).is_ok()
    }

    /// Checks whether the run has a copy of its own.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.folder, Folder::Own(_))
    }

    /// Makes room for a later run of the same session, which works at the same path.
    pub(super) fn step_aside(&mut self) {
        let copied = match &mut self.folder {
            Folder::Copy(copied) => copied,
            Folder::Own(own) => &mut own.copied,
            Folder::There | Folder::Jobs(_) | Folder::Tree(_) => return,
        };
        if let Err(err) = copied.rename(&uuid::Uuid::new_v4().simple().to_string()) {
            tracing::warn!(%err, "a copy keeps its name until it is removed");
        }
    }

    /// Returns the copy; `None` for a run that works in the workspace.
    pub(super) fn copy(&self) -> Option<&Path> {
        match &self.folder {
            Folder::There | Folder::Tree(_) => None,
            Folder::Copy(copied) => Some(copied.path()),
            Folder::Own(_) | Folder::Jobs(_) => self.apart().map(|it| it.copied.path()),
        }
    }

    fn apart(&self) -> Option<&Snapshot> {
        match &self.folder {
            Folder::There | Folder::Copy(_) | Folder::Tree(_) => None,
            Folder::Own(apart) => Some(apart),
            Folder::Jobs(lent) => lent.as_ref().map(|it| &it.apart),
        }
    }

    /// Returns the work tree; `None` for every other run.
    pub(super) fn tree(&self) -> Option<&TreeRun> {
        if let Folder::Tree(tree) = &self.folder { Some(tree) } else { None }
    }

    /// Sets the access to the repository: a copy has its own one, which can be written; that of a work tree can only be read.
    pub(super) fn open_repository(&self, draft: &mut Draft, profile: &Profile) {
        draft.is_copy = self.copy().is_some();
        draft.git = if draft.is_copy { Git::Write } else { profile.git };
        if let Some(tree) = self.tree() {
            draft.git = Git::Read;
            draft.read_only.push(tree.repository.clone());
        }
    }

    /// Subtracts the growth of the job's copy in earlier runs from this run's limits of growth.
    pub(super) fn narrow(&self, limits: &mut Limits) -> Result<(), Failure> {
        let Folder::Jobs(lent) = &self.folder else { return Ok(()) };
        let Some(shared) = &**lent else { return Ok(()) };
        let unseen =
            |error| jail_refused(format!("how large its job's copy is cannot be found out: {error}"));
        let grown = Size::of(shared.apart.copied.path()).map_err(unseen)?.beyond(shared.began);
        limits.growth_bytes = limits.growth_bytes.saturating_sub(grown.bytes);
        limits.growth_entries = limits.growth_entries.saturating_sub(grown.entries);
        if limits.growth_bytes == 0 || limits.growth_entries == 0 {
            return Err(jail_refused(format!(
                "the runs of its job have left {} bytes and {} files more in their copy than there were, which is as \
                 much as `growth` and `growth_files` of its worker let them",
                grown.bytes, grown.entries
            )));
        }
        Ok(())
    }

    /// Sets the variables that name the job of this run to the worker, and gives it the schema of the answer.
    pub(super) fn tell(
        &mut self,
        draft: &mut Draft,
        task: &Task,
        place: &RunEnvironment,
    ) -> Result<(), Failure> {
        let Some(errand) = &task.order.errand else { return Ok(()) };
        let words = [
            ("PROVOST_METHOD", &errand.method),
            ("PROVOST_JOB_ID", &errand.job),
            ("PROVOST_PHASE", &errand.phase),
        ];
        for (name, value) in words {
            draft.environment.set(name, value).map_err(jail_refused)?;
        }
        let Some(schema) = &errand.schema else { return Ok(()) };
        if schema.as_str().len() > SCHEMA_BYTES_MAX {
            return Err(jail_refused(format!("its schema has more than {SCHEMA_BYTES_MAX} bytes")));
        }
        let given = Copied::empty(&place.copies).map_err(jail_refused)?;
        let file = given.path().join("schema.json");
        fs::write(&file, schema.as_str()).map_err(jail_refused)?;
        draft.read_only.push(find_place(given.path()).map_err(jail_refused)?);
        let file =
            file.to_str().ok_or_else(|| jail_refused("the copies' folder has a name that is no text"))?;
        draft.environment.set("PROVOST_SCHEMA", file).map_err(jail_refused)?;
        self.given = Some(given);
        Ok(())
    }
}

/// The files of a commit, from which a copy is made. They are removed when this is dropped.
struct Checkout {
    commit: Box<str>,
    top: Root,
    _copied: Copied,
}

fn checkout(place: &RunEnvironment, commit: &str) -> Result<Checkout, Failure> {
    let copied = Copied::empty(&place.copies).map_err(jail_refused)?;
    let written = (place.commits)(commit, copied.path());
    written.map_err(|why| jail_refused(format!("the files of the commit {commit}: {why}")))?;
    let top = Root::open(copied.path()).map_err(jail_refused)?;
    Ok(Checkout { commit: commit.into(), top, _copied: copied })
}

impl Checkout {
    fn folder(&self, below: &RepoPath) -> Result<Resolved, Failure> {
        let found = self.top.resolve_dir(below);
        found.map_err(|err| jail_refused(format!("the commit of the task has no folder '{below}': {err}")))
    }

    /// Copies a folder of the checkout. If that is the whole checkout, the copy gets the workspace's repository at this commit.
    fn copy(
        &self,
        workspace: &Root,
        folder: &Resolved,
        below: &RepoPath,
        copies: &Path,
    ) -> Result<Snapshot, Failure> {
        let from = (self.top.handle(), folder.handle());
        let copy = snapshot::copy_of_commit(workspace.handle(), from, below, copies).map_err(jail_refused)?;
        let path = copy.copied.path();
        if path.join(".git").is_dir() {
            let git = QuietGit::of(path, path).map_err(jail_refused)?;
            let moves =
                ["-c", "core.logAllRefUpdates=false", "update-ref", "--no-deref", "HEAD", &*self.commit];
            git.must(&moves, Input::Nothing).map_err(jail_refused)?;
            git.must(&["read-tree", "HEAD"], Input::Nothing).map_err(jail_refused)?;
        }
        Ok(copy)
    }
}

/// Checks whether this run resumes a run whose agent or daemon has died in the middle of a turn.
pub(super) fn is_resumed(task: &Task) -> bool {
    let has_session = task.talk.as_ref().is_some_and(|it| it.session.is_some());
    has_session && matches!(task.state, TaskState::Running { .. })
}

/// Puts the copy of a run that goes on with a session at the path that the session's agent knows.
fn as_before(copied: &mut Copied, task: &Task, copies: &Path) -> Result<(), Failure> {
    let session = task.order.continues.as_ref().and_then(|it| it.session.as_ref());
    let known = session.map(|it| Path::new(&*it.folder)).filter(|it| it.parent() == Some(copies));
    let Some(name) = known.and_then(|it| it.file_name()?.to_str()) else { return Ok(()) };
    copied
        .rename(name)
        .map_err(|err| jail_refused(format!("its copy cannot be where its session knows it: {err}")))
}

/// Makes the job's copy if there is none yet, and checks that it is a copy of the wanted folder.
fn fill(
    mut lent: CheckoutLease,
    below: &RepoPath,
    make: impl FnOnce() -> Result<Snapshot, Failure>,
) -> Result<CheckoutLease, Failure> {
    match &*lent {
        Some(shared) if shared.apart.base.below != *below => {
            let is = &shared.apart.base.below;
            return Err(jail_refused(format!(
                "its job's copy is of the folder '{is}', and not of '{below}'"
            )));
        }
        Some(_) => {}
        None => {
            let apart = make()?;
            let began = Size::of(apart.copied.path()).map_err(jail_refused)?;
            *lent = Some(SharedCheckout { apart, began });
        }
    }
    Ok(lent)
}

/// Returns the worker as this task runs it: with another command, if the job context names one.
pub(super) fn in_its_place(task: &Task, profile: Arc<Profile>) -> Result<Arc<Profile>, Failure> {
    let Some(command) = task.order.command() else { return Ok(profile) };
    let name = command.first().ok_or_else(|| worker_failed("the command to run is empty"))?;
    let program =
        find_program(name).ok_or_else(|| worker_failed(format!("there is no executable '{name}'")))?;
    Ok(Arc::new(profile.instead(program)))
}

/// Returns the arguments of that command.
pub(super) fn its_arguments(task: &Task) -> Option<Vec<String>> {
    Some(task.order.command()?.iter().skip(1).map(ToString::to_string).collect())
}

/// Returns the text that an agent reads on its standard input.
pub(super) fn input(task: &Task, profile: &Profile) -> Option<Vec<u8>> {
    profile.reads_its_goal().then(|| task.order.goal.as_bytes().to_vec())
}

/// The plan of what is kept of a run.
pub(super) struct CollectionPlan {
    task: TaskId,
    attempt: u32,
    reader: Reader,
    gathers: bool,
}

impl CollectionPlan {
    /// Makes the plan; `None` for a worker whose changes are not kept.
    pub(super) fn of(task: &Task, profile: &Profile) -> Option<Self> {
        let errand = task.order.errand.as_ref();
        // A worker that is no agent of the configuration always has its changes kept.
        let usual = profile.agent.is_none_or(|agent| agent.edits);
        let is_kept = is_apart(task, profile) || task.order.work_tree.is_some();
        is_kept.then(|| Self {
            task: task.id().clone(),
            attempt: task.attempt(),
            reader: profile.agent.map_or(Reader::Lines, |agent| agent.reader),
            gathers: errand.map_or(usual, |errand| errand.harvest),
        })
    }

    /// Keeps the changes and the answer, and returns the changes. Blocking.
    ///
    /// # Errors
    /// The reason why the changes and the answer are lost.
    pub(super) fn keep(
        &self,
        private: &RunFolders,
        output: &Output,
        (keep, room): (&Keep, ChangesRoom),
    ) -> Result<Changeset, String> {
        let harvest = match (private.apart(), private.tree()) {
            (_, Some(tree)) => tree.gather(&self.task, room),
            (Some(apart), None) if self.gathers => gather(apart.copied.path(), &apart.base, &self.task, room),
            _ => Changeset::default(),
        };
        let answer = Transcript::of(self.reader, &output.stdout);
        keep((&self.task, self.attempt), &harvest, answer.answer())?;
        Ok(harvest)
    }
}
