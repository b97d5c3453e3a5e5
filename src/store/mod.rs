//! Storage of the state.
//!
//! A [`Store`] is the one writer: it stores all changes of a batch of commands or none, with the durability
//! that the batch demands. A [`Reader`] serves history beside it. Memory holds what is unfinished; finished
//! tasks and the event log live here, so that a start takes as long as there is unfinished work, whatever the
//! history.
//!
//! The event log is a journal: a keyed chain that is written in the same commit as the rows ([`journal`]).
//!
//! The engine handles a failed commit; the daemon places the anchors.
#![forbid(unsafe_code)]

mod artifacts;
pub mod codec;
mod files;
mod intake;
mod job_logs;
pub mod journal;
mod letters;
mod marks;
mod migrations;
mod search;
mod sqlite;
mod sums;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost_base::limits::BACKUP_WAIT_MS_MAX;
use provost_base::{AgentId, Digest, EventSeq, JobId, Json, TaskId, Timestamp};
use provost_domain::post::Received;
use provost_domain::{Event, JobResult, Outbox, Owed, Settings, State, Status, Task};

pub use artifacts::{Artifacts, Keeping};
pub use intake::Intake;
pub use job_logs::{JobLogs, LogPart};
pub use journal::{Anchor, AnchorSink, JournalHead, Leap, Verdict, export};
pub use letters::{Letters, StoredPost};
pub use search::{Found, Hit, HitKind, SearchError, SearchQuery, SearchWords};
pub use sqlite::{ForeignEvent, Restore, Restored, SqliteStore, backup, foreign_events, restore};
pub use sums::{CountedRow, UsageBy, UsageQuery, UsageRow};

/// The database in the state folder.
pub const DATABASE: &str = "provost.db";
/// The key of the journal's chain, beside it.
pub const JOURNAL_KEY: &str = "journal.key";
/// Held locked by the daemon that writes; has its process id inside.
pub const LEASE: &str = "daemon.lock";

/// The writer. There is one for each state folder.
pub trait Store: Send {
    /// Reads everything needed to go on, and checks the journal from its last checkpoint on. The first call
    /// is a start: it notes that a daemon runs now. Later ones, after a commit has failed, only read.
    ///
    /// # Errors
    /// [`StoreError::Tampered`] and [`StoreError::Damaged`] when what is stored cannot be trusted.
    fn load(&mut self, settings: Settings) -> Result<Loaded, StoreError>;

    /// Writes a batch: all of it or none. When this returns, it is as safe as `batch.durability` asks.
    ///
    /// # Errors
    /// Any; then nothing of it is stored.
    fn commit(&mut self, batch: &Outbox) -> Result<(), StoreError>;

    /// The same for a batch that has all messages that were kept up to `seal`, which [`Intake::turn`] has
    /// given. A start finds the messages that were kept after that seal as before.
    ///
    /// # Errors
    /// Any; then nothing of it is stored.
    fn commit_kept(&mut self, batch: &Outbox, seal: &Digest) -> Result<(), StoreError>;

    /// Whether every batch waits for the disk, whatever it asks.
    fn waits_for_disk(&self) -> bool {
        false
    }

    /// A finished task. Those that are not finished are in memory.
    ///
    /// # Errors
    /// When the store does not answer or the row cannot be read.
    fn past_task(&mut self, id: &TaskId) -> Result<Option<Arc<Task>>, StoreError>;

    /// Where the journal ends.
    fn journal_head(&self) -> JournalHead;

    /// Takes one bounded bite of what is beyond `keep`, by age or number: at most `most` (at least one)
    /// finished tasks and the bodies of as many events. Counts and chain stay.
    ///
    /// # Errors
    /// Any; then nothing was removed.
    fn prune(&mut self, now: Timestamp, keep: &Retention, most: u32) -> Result<Pruned, StoreError>;

    /// Takes one bounded bite of what can be searched and is not in the index yet: at most `most` events, with their tasks.
    /// `true` where there is more.
    ///
    /// # Errors
    /// Any; then nothing of it is in the index.
    fn index(&mut self, most: u32) -> Result<bool, StoreError>;

    /// Whether there is an event whose words are not in the index.
    fn lacks_index(&self) -> bool;

    /// A reader of its own, for another thread.
    ///
    /// # Errors
    /// When the store cannot be opened once more.
    fn reader(&self) -> Result<Box<dyn Reader>, StoreError>;

    /// A commit that changes nothing of meaning, to see whether writing works again.
    ///
    /// # Errors
    /// When it does not.
    fn probe(&mut self) -> Result<(), StoreError>;

    /// Whether the open files are still those at their paths, and no other program has written in them.
    ///
    /// # Errors
    /// [`StoreError::Swapped`] when it is not.
    fn look(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// A problem that a person should know though the store still takes every write; `None`
    /// where all is well.
    fn note(&self) -> Option<Box<str>> {
        None
    }

    /// Notes that this stop was clean. Nothing can be written afterwards.
    ///
    /// # Errors
    /// When that could not be written; the next start then counts as one after a crash.
    fn close(&mut self) -> Result<(), StoreError>;
}

/// Read-only, beside the writer, on a thread that may block.
pub trait Reader: Send {
    /// Finished tasks, newest first, and whether there are more. At most `limit`, and no more than
    /// `bytes_max` bytes as stored; the first one always comes, so that paging moves on.
    ///
    /// # Errors
    /// When the store does not answer or a row cannot be read.
    fn finished(
        &mut self,
        filter: FinishedFilter,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Task>, bool), StoreError>;

    /// The finished task of this id, if it is kept.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, StoreError>;

    /// Events after `seq`, oldest first, at most `limit`, and fewer where they are large; none only where
    /// there are none.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn events_after(&mut self, seq: EventSeq, limit: u16) -> Result<Vec<StoredEvent>, StoreError>;

    /// Messages between agents, oldest first unless the choice says otherwise: no more than `bytes_max` bytes as stored, but always one.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn letters(&mut self, which: &Letters, bytes_max: usize) -> Result<Vec<StoredPost>, StoreError> {
        let mut found = Vec::new();
        self.each_letter(which, bytes_max, &mut |it| {
            found.push(it);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The same one by one, until `each` has enough, so that they need not be in memory together.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn each_letter(
        &mut self,
        which: &Letters,
        bytes_max: usize,
        each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// A page of the timeline.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn timeline(&mut self, query: &TimelineQuery) -> Result<Vec<StoredEvent>, StoreError>;

    /// Which of these events of another daemon are on the timeline, or were.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn imported(&mut self, ids: &[String]) -> Result<BTreeSet<String>, StoreError>;

    /// The request of a job that is not over.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn job_order(&mut self, id: &JobId) -> Result<Option<Json>, StoreError>;

    /// The result of a job.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn job_result(&mut self, id: &JobId) -> Result<Option<JobResult>, StoreError>;

    /// Sums of what runs say that they have used: of days and tasks the newest first, of others the dearest
    /// first.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn usage(&mut self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError>;

    /// Sums of what the daemon has counted itself, a row for each model: of tasks the newest, of others all, within a bound.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn counted(&mut self, query: &UsageQuery) -> Result<Vec<CountedRow>, StoreError>;

    /// What was counted of one task, a row for each model.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn counted_of(&mut self, task: &TaskId) -> Result<Vec<CountedRow>, StoreError>;

    /// Tasks, messages and events that have all the words of a query.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn search(&mut self, query: &SearchQuery) -> Result<Found, StoreError>;

    /// Checks the whole journal, and against `anchor` if one is given.
    ///
    /// # Errors
    /// When the store does not answer. What is wrong with the journal is the [`Verdict`]'s to say.
    fn verify(&mut self, anchor: Option<Anchor>) -> Result<Verdict, StoreError>;
}

/// The state and the debts with which a start begins.
#[derive(Debug)]
pub struct Loaded {
    /// Everything that is not history.
    pub state: State,
    /// Effects that are owed, oldest first.
    pub owed: Vec<Owed>,
    /// Whether the last daemon stopped cleanly. Also true for a store that is new.
    pub clean: bool,
    /// When the newest event was; the epoch where there is none.
    pub until: Timestamp,
    /// Messages that were acknowledged and are not in the journal, in their order. At a start alone.
    pub received: Vec<Received>,
    /// Where messages are kept from now on; none where each commit waits for the disk. At a start alone.
    pub intake: Option<Box<dyn Intake>>,
}

/// A choice of finished tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FinishedFilter {
    /// Only those that ended like this.
    pub status: Option<Status>,
    /// Only those that finished before this one: the last one of the page before. A task that is not there
    /// any more has none before it.
    pub before: Option<TaskId>,
}

/// A choice of events on the timeline. A member that is `None` excludes none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimelineQuery {
    /// Only events of this agent.
    pub agent: Option<Box<str>>,
    /// Only events of this kind, in the word of the timeline.
    pub word: Option<Box<str>>,
    /// Only events about this file, in its one spelling.
    pub file: Option<Box<str>>,
    /// Only events from this moment on.
    pub since: Option<Timestamp>,
    /// Only events with a larger number.
    pub after: Option<EventSeq>,
    /// Only events with a smaller number.
    pub before: Option<EventSeq>,
    /// Signs of life, too.
    pub beats: bool,
    /// The order in which they are read.
    pub order: TimelineOrder,
    /// How many at most.
    pub limit: usize,
    /// How many bytes at most, as stored; the first one always comes, so that paging moves on.
    pub bytes_max: usize,
}

/// The order in which the timeline is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimelineOrder {
    /// By time, and by number where times are the same.
    NewestFirst,
    /// By number, the smallest first.
    OldestFirst,
}

/// How long history is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Finished tasks. Afterwards their ids are free again.
    pub tasks: Duration,
    /// How many finished tasks at most; the oldest go first.
    pub tasks_most: u32,
    /// How long the bodies of events are kept. Their links of the chain are kept for ever.
    pub events: Duration,
}

/// The rows that one bite of [`Store::prune`] removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Finished tasks that were removed.
    pub tasks: u32,
    /// Events whose bodies were removed; their links stay in the chain.
    pub events: u32,
    /// Whether there is more to take.
    pub more: bool,
}

/// An event as the journal keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEvent {
    /// Its number, which is its place in the chain.
    pub seq: EventSeq,
    /// When the engine decided it.
    pub at: Timestamp,
    /// The agent that caused it.
    pub actor: AgentId,
    /// The kind of event, as in [`provost_domain::EventKind::name`].
    pub kind: Box<str>,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// The event to the letter, as hashed; `None` where it was pruned.
    pub body: Option<Box<str>>,
    /// SHA-256 of the body, also where that is gone.
    pub hash: Digest,
    /// The event's link of the chain.
    pub mac: Digest,
}

impl StoredEvent {
    /// The event, where its body is still there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the body is not an event.
    pub fn event(&self) -> Result<Option<Event>, StoreError> {
        self.body.as_deref().map(codec::parse).transpose()
    }
}

/// How a store is used.
#[derive(Default)]
pub struct Options {
    /// Whether every commit waits for the disk, whatever its batch asks.
    pub always_durable: bool,
    /// The places outside of the store in which the journal's head is recorded.
    pub anchors: Vec<Box<dyn AnchorSink>>,
    /// A file outside of the state folder, in which a start finds how far the journal had come.
    pub outside: Option<std::path::PathBuf>,
}

/// The next step for a store whose newest history is missing.
const WAYS_ON: &str = ". `provost store restore FILE` brings a backup back; `provost store restore --as-it-is` continues with the rest, and `provost store restore --empty` with an empty store, both with numbers that were never issued";

/// The next step for a store with an error in it, which cannot be used as it is.
const WAYS_BACK: &str = ". `provost store restore FILE` brings a backup back; `provost store restore --empty` continues with an empty store, with numbers that were never issued, and keeps the present files beside it";

/// Why something could not be stored or read. The texts are for the person who runs the daemon.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another daemon writes here.
    #[error("another daemon already uses this state folder{}", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    InUse {
        /// Its process id, where it has written it down already.
        pid: Option<u32>,
    },
    /// Written by a later Provost.
    #[error(
        "the store has schema {found} and this Provost knows {known} at most: use the newer Provost again"
    )]
    Newer {
        /// The schema of the store.
        found: u32,
        /// The newest one known here.
        known: u32,
    },
    /// A file that others could have changed, or that is not what it should be.
    #[error("{path} {why}")]
    Unsafe {
        /// The file that is unsafe.
        path: Box<str>,
        /// The mistake, and the next step.
        why: Box<str>,
    },
    /// The journal's key is missing or another one.
    #[error("{0}")]
    Key(Box<str>),
    /// Another program has changed the journal.
    #[error("the journal has been tampered with at event {seq}: {what}{WAYS_BACK}")]
    Tampered {
        /// The first event that is wrong.
        seq: EventSeq,
        /// The difference that was found, in words for people.
        what: Box<str>,
    },
    /// Another program has taken the newest events out.
    #[error(
        "the journal has been tampered with: it ends at event {head}, and its newest number is another one{WAYS_ON}"
    )]
    EndMissing {
        /// The last event that is there.
        head: EventSeq,
    },
    /// The database is not there, though it was.
    #[error("{path} is gone, and {what} shows that there was one{WAYS_BACK}")]
    Gone {
        /// The path of the database.
        path: Box<str>,
        /// The file that shows that there was one.
        what: &'static str,
    },
    /// The store ends before a point that it is known to have reached.
    #[error(
        "the newest history is missing: the journal ends at event {head}, and was at event {} once, or had given more \
         numbers; {at} says so{WAYS_ON}", .anchor.seq
    )]
    Behind {
        /// The point that the store had reached.
        anchor: Anchor,
        /// The last event that the store has.
        head: EventSeq,
        /// Where that is written.
        at: Box<str>,
    },
    /// A daemon was killed before it had put on record what it had acknowledged.
    #[error(
        "{messages} messages were acknowledged just before the daemon was ended, and the next start puts them on record: \
         run `provost up`, then this again"
    )]
    NotOnRecord {
        /// How many messages the intake has.
        messages: usize,
    },
    /// Another program does not let the store be read.
    #[error(
        "another program holds the database and has not let go of it within {} seconds; end it (a database browser, a \
         script), then do this again", BACKUP_WAIT_MS_MAX / 1_000
    )]
    Held,
    /// The database's pages are not what they should be.
    #[error("the database is malformed: {0}{WAYS_BACK}")]
    Malformed(Box<str>),
    /// A file was moved, removed or written while we have it open.
    #[error(
        "{path} was moved, removed or changed by another program while the daemon has it open, so nothing more is written; \
         put it back as it was, or stop the daemon{WAYS_ON}"
    )]
    Swapped {
        /// The file that was exchanged or written.
        path: Box<str>,
    },
    /// A stored value cannot be read.
    #[error("the store is damaged: {0}")]
    Damaged(Box<str>),
    /// What was given as a backup is none.
    #[error("{0} is no file that `provost store backup` has written")]
    NoBackup(Box<str>),
    /// A backup whose journal has another key than the one of this repository.
    #[error(
        "{path} is a backup of another journal: of another repository, or of this one on another machine"
    )]
    AnotherJournal {
        /// The file that was given.
        path: Box<str>,
    },
    /// The engine that owns the store has ended.
    #[error("{0}")]
    Stopped(Box<str>),
    /// A batch that does not follow the last one.
    #[error("the batch begins with event {got} where {expected} comes next")]
    OutOfStep {
        /// The number that was expected.
        expected: EventSeq,
        /// The number that came instead.
        got: EventSeq,
    },
    /// Not loaded yet, or closed already.
    #[error("the store is not open for writing")]
    NotRunning,
    /// No space is left.
    #[error("no space is left for the store")]
    Full(#[source] rusqlite::Error),
    /// Any other error of SQLite.
    #[error("the store does not answer: {0}")]
    Sqlite(#[source] rusqlite::Error),
    /// The system says no.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: Box<str>,
        /// The system's error.
        source: std::io::Error,
    },
    /// A test wanted it so.
    #[error("failure injected by a test")]
    Injected,
}

impl StoreError {
    pub(crate) fn damaged(what: impl std::fmt::Display) -> Self {
        StoreError::Damaged(what.to_string().into())
    }

    pub(crate) fn no_backup(path: &Path) -> Self {
        StoreError::NoBackup(path.display().to_string().into())
    }

    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.display().to_string().into();
        move |source| StoreError::Io { path, source }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> Self {
        match err.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full(err),
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                StoreError::Malformed(err.to_string().into())
            }
            _ => StoreError::Sqlite(err),
        }
    }
}

/// Opens the store of a state folder for writing, and makes what is missing.
///
/// # Errors
/// [`StoreError::InUse`] when another daemon writes there; [`StoreError::Unsafe`] when others could have
/// changed its files; [`StoreError::Newer`] and [`StoreError::Key`] as they say.
pub fn open(dir: &Path, options: Options) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(SqliteStore::open(dir, options)?))
}

/// Looks whether the store of a state folder can be gone on with; one that is not there yet can. Changes
/// nothing. All pages of a large store are looked through only where `all` says so.
///
/// # Errors
/// Why not, with what to do.
pub fn look(dir: &Path, outside: Option<&Path>, all: bool) -> Result<(), StoreError> {
    sqlite::look(dir, outside, all)
}

/// Opens the store of a state folder for reading, whether or not a daemon runs.
///
/// # Errors
/// When there is none, or as for [`open`].
pub fn open_reader(dir: &Path) -> Result<Box<dyn Reader>, StoreError> {
    sqlite::open_reader(dir)
}
