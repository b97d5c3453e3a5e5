//! The reasons why an apply, a preview or a discard has done nothing at all.

use std::io;

use provost_base::{ApplyId, TaskId};
use provost_domain::Refusal;

/// The reason why nothing was done at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApplyError {
    /// The core has refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The call has more artifacts than one call may have.
    #[error("{0} artifacts are more than the {1} of one call (`changes.files_per_call`)")]
    TooMany(usize, usize),
    /// No apply with that number is on record.
    #[error("there is no apply {0} to be undone: it is too old, or never was")]
    NoSuchApply(ApplyId),
    /// The task has left no changes, or they are too old.
    #[error("nothing is kept of what task {0} has changed")]
    NothingKept(TaskId),
    /// The task's changes have been removed because of their age, or because of too many later runs.
    #[error(
        "what task {task} has changed is not kept any more: the changes of the newest {runs} runs are, for {days} days"
    )]
    NotKeptAnyMore {
        /// The task whose changes are meant.
        task: TaskId,
        /// The number of runs whose changes are kept.
        runs: usize,
        /// How long changes are kept, in days.
        days: u64,
    },
    /// The changes are on the host that ran the task: they were too large for the database, or could not be stored there.
    #[error("what task {task} has changed is on host {host} alone; ask there")]
    OnAnotherHost {
        /// The task whose changes are meant.
        task: TaskId,
        /// The host, by the first digits of its id.
        host: String,
    },
    /// The run was lost, and no daemon has recorded what it had changed.
    #[error("the run of task {task} was lost{}, so no daemon has recorded what it had changed", .host.as_ref().map(|it| format!(" with host {it}")).unwrap_or_default())]
    LostRun {
        /// The task whose changes are meant.
        task: TaskId,
        /// The other host that ran it, by the first digits of its id; `None` if this one did.
        host: Option<String>,
    },
    /// The task's run goes on.
    #[error("the run of {task} has not ended ({state}), so it is not known yet what it changes")]
    NotEnded {
        /// The task, or the job, whose changes are meant.
        task: TaskId,
        /// Its state, in a word.
        state: &'static str,
    },
    /// A path that the caller named is none of the task's changes.
    #[error("{path} is not among the changes of task {task}{more}")]
    NotAmong {
        /// The path, in a form that is safe to show.
        path: String,
        /// The task whose changes are meant.
        task: TaskId,
        /// The state of the path, or paths near it; begins with a punctuation mark, or is empty.
        more: String,
    },
    /// The apply goes on at this moment.
    #[error("apply {0} is not over yet")]
    NotOver(ApplyId),
    /// This is not the apply that the person was shown.
    #[error("what would be written is not what was shown: a file, a lock or a rule has changed since")]
    Changed,
    /// The daemon's own folder cannot be read.
    #[error("the records of applies cannot be read: {0}")]
    Unreadable(Box<str>),
}

impl From<io::Error> for ApplyError {
    fn from(err: io::Error) -> Self {
        Self::Unreadable(err.to_string().into())
    }
}
