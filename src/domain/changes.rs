//! The changes of a run in its private copy: kept, taken into the workspace file by file, or discarded.
//!
//! ```text
//!   [kept] --applied--> [partly taken in] --applied--> [taken in]
//!     |   <--undone---         |          <--undone---     |
//!     +------------------------+---------------------------+--> [discarded]
//!     +---- the branch with its commit is merged ----------+--> [merged] --> [discarded]
//! ```
//! The contents are files of the store, which the daemon removes after some days. The task records the state of the changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{ChangesDiscarded, DiscardChanges, MergedNoted, NoteMerged};
use super::{
    AppliedFile, Change, Command, Effect, EventKind, Failure, Outbox, Parked, Principal, Refusal, Scope,
    State, Task,
};
use provost_base::{ApplyId, RepoPath, TaskId, Timestamp};

/// The changes of a run, and their state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskChanges {
    /// Files that were kept.
    pub files: u32,
    /// Lines that are new in these files, compared with the state at the beginning of the run.
    pub added: u64,
    /// Lines that were removed from these files.
    pub removed: u64,
    /// Files that are written into the workspace, each with the apply that wrote it; no undone ones.
    pub taken: BTreeMap<RepoPath, ApplyId>,
    /// The branch into which the commit with all of these changes was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Box<str>>,
    /// When the changes were discarded.
    pub discarded: Option<Timestamp>,
}

/// The state of the changes of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangesState {
    /// No file of the changes is in the workspace.
    Kept,
    /// Some of the files are in the workspace.
    PartlyTaken,
    /// All files are in the workspace.
    Taken,
    /// The commit with all changes is in a branch of the user.
    Merged,
    /// The changes are gone for good.
    Discarded,
}

impl ChangesState {
    /// Returns the word for this state.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangesState::Kept => "kept",
            ChangesState::PartlyTaken => "partly_taken_in",
            ChangesState::Taken => "taken_in",
            ChangesState::Merged => "merged",
            ChangesState::Discarded => "discarded",
        }
    }
}

impl TaskChanges {
    /// Returns the state of the changes.
    pub fn state(&self) -> ChangesState {
        match self.taken.len() {
            _ if self.discarded.is_some() => ChangesState::Discarded,
            _ if self.merged.is_some() => ChangesState::Merged,
            0 => ChangesState::Kept,
            some if some < self.files as usize => ChangesState::PartlyTaken,
            _ => ChangesState::Taken,
        }
    }
}

/// The effect of an apply on the changes of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Taking {
    /// The task whose run made the changes.
    pub task: TaskId,
    /// Whether the apply takes the changes out of the workspace again, as an undo does.
    pub back: bool,
}

impl Task {
    /// Checks whether the run may still go on although the task is over, as after a cancellation it does for a moment.
    pub fn may_still_run(&self) -> bool {
        let ended = |it: &provost_base::Json| {
            let value = it.value();
            value["run_ended"].is_string() || value["exit_reason"].is_string()
        };
        let is_over = self.state.is_finished() && self.kind == super::WorkerKind::Cli;
        let was_never_begun = self.failure.as_ref().is_some_and(Failure::is_without_a_run);
        is_over
            && !was_never_begun
            && !self.notes.iter().any(|it| it.report.metadata.as_ref().is_some_and(ended))
    }
}

impl State {
    /// Forgets the changes of a run for good. The asker and the operator may do this, but no model that left out its name.
    pub(super) fn discard_changes(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &DiscardChanges,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<ChangesDiscarded, Refusal> {
        let task = self.tasks.get(&verb.task).or(past).ok_or(Refusal::TaskNotFound)?;
        match who.may(Scope::Operate) {
            true if who.is_of_agents() => return Err(Refusal::OutOfScope { needs: Scope::Operate }),
            false if task.asked_by != *who.agent() => {
                return Err(Refusal::TaskNotYours { owner: task.asked_by.clone() });
            }
            _ => {}
        }
        if !task.state.is_finished() {
            return Err(Refusal::TaskCannot { from: task.state });
        }
        let mut changes = task.changes.clone().unwrap_or_default();
        if changes.discarded.is_some() {
            return Ok(ChangesDiscarded { files: changes.files, already: true });
        }
        // A run of an earlier version has its files on the disk, but no count of them on record.
        changes.files = changes.files.max(verb.files);
        if changes.files == 0 {
            return Err(Refusal::NoChanges);
        }
        if let Some(apply) = self.owing.apply_of(&verb.task) {
            return Err(Refusal::ChangesInUse { apply });
        }
        changes.discarded = Some(now);
        let files = changes.files;
        out.append_event(EventKind::ChangesDiscarded { task: verb.task.clone(), files });
        out.owe_at(task.daemon, Effect::DropChanges { task: verb.task.clone() });
        self.withdraw_applies_of(&verb.task, out);
        let task = Task { changes: Some(changes), updated_at: now, ..Task::clone(task) };
        out.put(Change::AmendTask(Arc::new(task)));
        Ok(ChangesDiscarded { files, already: false })
    }

    /// Withdraws questions about applies of a task, since none of its changes is left to write. Undos keep their sense.
    fn withdraw_applies_of(&self, task: &TaskId, out: &mut Outbox) {
        let is_moot = |it: &&Arc<Parked>| match &it.command {
            Command::ApplyFiles(verb) => verb.of.as_ref() == Some(task) && verb.undoes.is_none(),
            _ => false,
        };
        for parked in self.approvals.iter().filter(is_moot) {
            out.append_event(EventKind::ApprovalExpired { approval: parked.id });
            self.drop_approval(parked.id, out);
        }
    }

    /// Records that a run's commit is merged. Nothing happens for a task that is not known any more, or not over.
    pub(super) fn note_merged(
        &self,
        now: Timestamp,
        verb: &NoteMerged,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> Result<MergedNoted, Refusal> {
        let task = self.tasks.get(&verb.task).or(past).filter(|it| it.state.is_finished());
        let Some((task, changes)) = task.and_then(|it| Some((it, it.changes.as_ref()?))) else {
            return Ok(MergedNoted);
        };
        if changes.merged.is_some() || changes.discarded.is_some() {
            return Ok(MergedNoted);
        }
        let into = verb.into.clone();
        out.append_event(EventKind::ChangesMerged { task: verb.task.clone(), into: into.clone() });
        let changes = TaskChanges { merged: Some(into), ..changes.clone() };
        let task = Task { changes: Some(changes), updated_at: now, ..Task::clone(task) };
        out.put(Change::AmendTask(Arc::new(task)));
        Ok(MergedNoted)
    }

    /// Checks that the changes of a task that an apply wants can still be taken.
    pub(super) fn can_be_taken(
        &self,
        task: Option<&TaskId>,
        past: Option<&Arc<Task>>,
    ) -> Result<(), Refusal> {
        let task = task.and_then(|id| self.tasks.get(id).or(past));
        let discarded = task.and_then(|it| it.changes.as_ref()?.discarded);
        if discarded.is_some() { Err(Refusal::ChangesGone) } else { Ok(()) }
    }

    /// Records that files of a task are in the workspace from now on, or that an undo has taken them out.
    pub(super) fn take_in(
        &self,
        (now, apply): (Timestamp, ApplyId),
        taking: &Taking,
        files: &[AppliedFile],
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) {
        let Some(task) = self.tasks.get(&taking.task).or(past).filter(|it| it.state.is_finished()) else {
            return;
        };
        let mut task = Task::clone(task);
        let changes = task.changes.get_or_insert_default();
        for file in files {
            match taking.back {
                true => drop(changes.taken.remove(&file.path)),
                false => drop(changes.taken.insert(file.path.clone(), apply)),
            }
        }
        // An earlier version has not recorded how many files it kept.
        changes.files = changes.files.max(u32::try_from(changes.taken.len()).unwrap_or(u32::MAX));
        if changes.state() == ChangesState::Taken {
            self.withdraw_applies_of(&taking.task, out);
        }
        task.updated_at = now;
        out.put(Change::AmendTask(Arc::new(task)));
    }
}
