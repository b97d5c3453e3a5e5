//! The properties of a command that the decision needs.

use super::Command;
use provost_base::TaskId;

impl Command {
    /// Returns the task whose finished record the core needs for its decision, if the task is not unfinished.
    pub fn names_task(&self) -> Option<&TaskId> {
        match self {
            Command::Delegate(it) => Some(&it.task),
            Command::TakeScreenshot(it) => Some(&it.task),
            Command::ReportTask(it) => Some(&it.task),
            Command::AckTask(it) => Some(&it.task),
            Command::CancelTask(it) => Some(&it.task),
            Command::SayToTask(it) => Some(&it.task),
            Command::NoteFiles(it) => Some(&it.task),
            Command::EndRun(it) => Some(&it.task),
            Command::NoteCalls(it) => Some(&it.task),
            Command::ApplyFiles(it) => it.of.as_ref(),
            Command::TellApplied(it) => it.takes.as_ref().map(|it| &it.task),
            Command::DiscardChanges(it) => Some(&it.task),
            Command::NoteMerged(it) => Some(&it.task),
            _ => None,
        }
    }

    /// Returns the tasks whose finished records the core needs as well: those that a delegation waits for.
    pub fn waits_for(&self) -> &[TaskId] {
        match self {
            Command::Delegate(it) => it.after(),
            _ => &[],
        }
    }

    /// Checks whether the command only ends something of the caller, and begins nothing.
    pub fn gives_back(&self) -> bool {
        matches!(
            self,
            Command::ReleaseLock(_)
                | Command::ReleaseFile(_)
                | Command::LeaveQueue(_)
                | Command::Leave(_)
                | Command::LeaveCrew(_)
                | Command::WithdrawPermission(_)
        )
    }
}
