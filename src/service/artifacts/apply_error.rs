//! Why an apply, a preview or a discard has done nothing at all.

use std::io;

use provost_base::{ApplyId, TaskId};
use provost_domain::Refusal;

/// Why nothing was done at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApplyError {
    /// The core says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// More artifacts than one call may have.
    #[error("{0} artifacts are more than the {1} of one call (`changes.files_per_call`)")]
    TooMany(usize, usize),
    /// No apply of that number is kept.
    #[error("there is no apply {0} to be undone: it is too old, or never was")]
    NoSuchApply(ApplyId),
    /// The task has left no changes, or they are too old.
    #[error("nothing is kept of what task {0} has changed")]
    NothingKept(TaskId),
    /// What the task has changed is too old by now, or too much has followed it.
    #[error(
        "what task {task} has changed is not kept any more: the changes of the newest {runs} runs are, for {days} days"
    )]
    NotKeptAnyMore {
        /// The task whose changes are meant.
        task: TaskId,
        /// Runs whose changes are kept.
        runs: usize,
        /// How long they are.
        days: u64,
    },
    /// They are on the host that ran it: they were too large for the database, or could not be left there.
    #[error("what task {task} has changed is on host {host} alone; ask there")]
    OnAnotherHost {
        /// The task whose changes are meant.
        task: TaskId,
        /// The host, by the first digits of its id.
        host: String,
    },
    /// Its run goes on.
    #[error("the run of {task} has not ended ({state}), so it is not known yet what it changes")]
    NotEnded {
        /// The task, or the job, whose changes are meant.
        task: TaskId,
        /// Its state, in a word.
        state: &'static str,
    },
    /// A path that was asked for is none of the task's changes.
    #[error("{path} is not among the changes of task {task}{more}")]
    NotAmong {
        /// The path, as it can be shown.
        path: String,
        /// The task whose changes are meant.
        task: TaskId,
        /// What is known of it, or paths that are near it; begins with a mark, or is empty.
        more: String,
    },
    /// It goes on at this moment.
    #[error("apply {0} is not over yet")]
    NotOver(ApplyId),
    /// Another apply than the one that a person was shown.
    #[error("what would be written is not what was shown: a file, a lock or a rule has changed since")]
    Changed,
    /// The daemon's own folder.
    #[error("the records of applies cannot be read: {0}")]
    Unreadable(Box<str>),
}

impl From<io::Error> for ApplyError {
    fn from(err: io::Error) -> Self {
        Self::Unreadable(err.to_string().into())
    }
}
