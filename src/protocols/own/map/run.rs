//! The times of a task's run, and the changes of watched files.

use serde_json::Value;

use provost_api::wire;
use provost_domain::command::Status;
use provost_domain::{Task, TaskState, Watched, WatchedFile};

/// Returns when the run began: by the task's state, by the run's last report, or by the first progress that a polling worker reported.
pub(super) fn started_at(task: &Task, metadata: Option<&Value>) -> Option<String> {
    let reported = || metadata?.get("time_started")?.as_str().map(str::to_owned);
    let progress = || task.notes.iter().find(|it| &*it.said == Status::InProgress.as_str());
    match task.state {
        TaskState::Running { since, .. } => Some(since.rfc3339()),
        TaskState::Finished { .. } => reported().or_else(|| progress().map(|it| it.at.rfc3339())),
        TaskState::Awaiting { .. }
        | TaskState::Waiting
        | TaskState::Retrying { .. }
        | TaskState::Queued { .. }
        | TaskState::Assigned { .. } => None,
    }
}

/// Returns when the task ended.
pub(super) fn ended_at(task: &Task) -> Option<String> {
    match task.state {
        TaskState::Finished { at, .. } => Some(at.rfc3339()),
        TaskState::Awaiting { .. }
        | TaskState::Waiting
        | TaskState::Retrying { .. }
        | TaskState::Queued { .. }
        | TaskState::Assigned { .. }
        | TaskState::Running { .. } => None,
    }
}

/// Encodes the changes of the files that the asker wanted watched.
pub(super) fn files_changed(it: &Watched) -> wire::FilesChanged {
    let file = |it: &WatchedFile| wire::ChangedFile {
        path: it.path.to_string(),
        change: it.change.as_str().into(),
        from: it.from.as_ref().map(ToString::to_string),
    };
    wire::FilesChanged {
        files: it.files.iter().map(file).collect(),
        more: it.more,
        incomplete: it.incomplete.as_ref().map(ToString::to_string),
    }
}
