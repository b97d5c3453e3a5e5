//! Storage of the state.
//!
//! A [`Store`] is the one writer: it stores all changes of a batch of commands or none, with the durability that
//! the batch demands. A [`Reader`] serves history beside it. Memory holds everything unfinished; finished tasks and
//! the event log live here, so that the time of a start depends on unfinished work alone, not on the history.
//!
//! The event log is a journal: a keyed chain that is written in the same commit as the rows ([`journal`]).
//!
//! The engine handles a failed commit; the daemon places the anchors.
#![forbid(unsafe_code)]

mod artifacts;
pub mod codec;
mod database;
mod decisions;
mod error;
mod files;
mod host_keys;
mod host_seals;
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "no store with several writers"))]
mod host_words;
mod intake;
mod job_logs;
pub mod journal;
mod key_file;

mod letters;
mod log;
mod marks;
mod migrations;
#[cfg(feature = "postgres")]
mod moving;
#[cfg(feature = "postgres")]
mod postgres;
mod retention;
mod said;
mod search;
mod shared;
mod shared_artifacts;
#[cfg(feature = "postgres")]
mod signed_together;
mod sqlite;
mod sums;
mod traces;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost_base::{AgentId, DaemonId, Digest, EntryNo, EventSeq, HostRole, JobId, Json, TaskId, Timestamp};
use provost_domain::post::Received;
use provost_domain::{AnsweredAway, Event, JobResult, Outbox, Owed, Settings, State, Status, Task};

pub use artifacts::{Artifacts, Keeping, RunElsewhere};
pub use database::{
    Database, Loss, Migrated, Moved, Password, Protection, ROLES, RootCommits, Roots, Site, accept_loss,
    hosts, join, loss, migrate, move_into_database, move_into_folder, protection, take_out, upgrade,
    why_no_invitation,
};
use database::{Ending, IN_DATABASE, in_database};
pub use decisions::{RecordedDecision, RecordedDecisions, newest_event, recorded_decisions};
pub use error::StoreError;
use error::WAYS_BACK;
pub use host_words::HostWords;
pub use intake::Intake;
pub use job_logs::{JobLogs, LogPart};
pub use journal::{Anchor, AnchorSink, JournalHead, Leap, Verdict, export};
pub use key_file::{Invite, Invited, RepositoryRoute, SealedKey, open_invitation, seal_key};
pub use letters::{Letters, StoredPost};
pub use log::{ENTRY_FORMAT, ENTRY_FORMAT_OLDEST, SealedEntry};
pub use retention::{Pruned, Retention};
pub use search::{Found, Hit, HitKind, SearchError, SearchQuery, SearchWords};
pub use shared::{
    Begun, Behind, CommitError, Head, HostBeat, HostRow, HostState, Hosts, Indexed, Joined, ServerAt,
    TakenOut, Upgraded,
};
pub use shared_artifacts::SharedArtifacts;
pub use sqlite::{ForeignEvent, Restore, Restored, SqliteStore, backup, foreign_events, restore};
pub use sums::{CountedRow, UsageBy, UsageQuery, UsageRow};
pub use traces::name_of_traces;

/// The database in the state folder.
pub const DATABASE: &str = "provost.db";
/// The key of the journal's chain, in the same folder.
pub const JOURNAL_KEY: &str = "journal.key";
/// The file that the writing daemon holds locked; it contains its process id.
pub const LEASE: &str = "daemon.lock";

/// Opens a reader. Fails if the store cannot be opened once more.
pub type OpensReader = Box<dyn FnOnce() -> Result<Box<dyn Reader>, StoreError> + Send>;

/// The writer. There is one for each state folder, and one for each daemon where several share a store.
///
/// ```text
///   [out of turn] --begin--> [in turn] --commit, let_go, or an error--> [out of turn]
/// ```
/// A store with one writer is always in turn: the default methods are for it.
pub trait Store: Send {
    /// Reads everything needed to go on, and checks the journal from its last checkpoint on. The first call is a
    /// start: it notes that a daemon runs now. Later calls, after a failed commit, only read.
    ///
    /// # Errors
    /// [`StoreError::Tampered`] and [`StoreError::Damaged`] if the stored state cannot be trusted.
    fn load(&mut self, settings: Settings) -> Result<Loaded, StoreError>;

    /// Checks whether other daemons write here, too. Then a batch is decided only between [`Store::begin`] and
    /// [`Store::commit`], every commit waits for the disk, and there is no intake.
    fn is_shared(&self) -> bool {
        false
    }

    /// Has `wake` called, from any thread, when another daemon may have committed an entry.
    fn wake_by(&mut self, _wake: Box<dyn Fn() + Send + Sync>) {}

    /// Takes the turn, and returns the entries that others have committed after `head`. No other daemon commits until this one commits or
    /// lets go. After a commit whose outcome is unknown, `head` is the one from before it: if the batch is stored, it is the first entry.
    ///
    /// # Errors
    /// Any; then the turn is not taken.
    fn begin(&mut self, _head: Head) -> Result<Begun, StoreError> {
        Ok(Begun::default())
    }

    /// Gives the turn up without a commit. Does nothing out of turn.
    ///
    /// # Errors
    /// If the store does not answer; the turn is given up nevertheless.
    fn let_go(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns how long the store keeps a turn that it has begun together with the last commit, for a command that comes soon; ends that turn if
    /// its time is over. A store begins such turns only after the first call, since nothing else would end them.
    ///
    /// # Errors
    /// If the store does not answer; the turn is ended nevertheless.
    fn stays_begun(&mut self) -> Result<Option<Duration>, StoreError> {
        Ok(None)
    }

    /// Returns the effects that a daemon owes, and earlier daemons on its host. In turn only.
    ///
    /// # Errors
    /// If the store does not answer or a row cannot be read.
    fn owed_by(&mut self, _daemon: DaemonId) -> Result<Vec<Owed>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns the role with which this host has joined, once [`Store::load`] has returned.
    fn role(&self) -> HostRole {
        HostRole::Full
    }

    /// Remembers an entry that does not prove its content: no later start goes past it.
    fn distrust(&mut self, _n: EntryNo, _what: &str) {}

    /// Checks whether entries after `head` have to be judged one by one, so that the rows must not be loaded instead.
    ///
    /// # Errors
    /// If the store does not answer.
    fn has_to_judge(&mut self, _head: Head) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns the entries committed after `head`, without taking the turn.
    ///
    /// # Errors
    /// If the store does not answer.
    fn catch_up(&mut self, _head: Head) -> Result<Behind, StoreError> {
        Ok(Behind::Nothing)
    }

    /// Writes a batch, all of it or none, and returns the end of the log. When this returns, the batch is as safe
    /// as `batch.durability` asks, and the turn is over.
    ///
    /// # Errors
    /// [`CommitError`] says whether none of it is stored, or whether that is unknown.
    fn commit(&mut self, batch: &Outbox) -> Result<Head, CommitError>;

    /// Writes a batch that includes all messages that were kept up to `seal`, which [`Intake::turn`] has returned.
    /// A start still finds the messages that were kept after that seal.
    ///
    /// # Errors
    /// As for [`Store::commit`].
    fn commit_kept(&mut self, batch: &Outbox, seal: &Digest) -> Result<Head, CommitError>;

    /// Checks whether every batch waits for the disk, even one that asks for less durability.
    fn waits_for_disk(&self) -> bool {
        false
    }

    /// Returns a finished task. Unfinished tasks are in memory.
    ///
    /// # Errors
    /// If the store does not answer or the row cannot be read.
    fn past_task(&mut self, id: &TaskId) -> Result<Option<Arc<Task>>, StoreError>;

    /// Returns the end of the journal.
    fn journal_head(&self) -> JournalHead;

    /// Removes one bounded portion of the history beyond `keep`, by age or number: at most `most` (at least one)
    /// finished tasks and the bodies of as many events. Counts and chain stay.
    ///
    /// # Errors
    /// Any; then no rows were removed.
    fn prune(&mut self, now: Timestamp, keep: &Retention, most: u32) -> Result<Pruned, StoreError>;

    /// Indexes one bounded portion of the searchable rows that are not in the index yet: at most `most` events,
    /// with their tasks.
    ///
    /// # Errors
    /// Any; then none of them is in the index.
    fn index(&mut self, most: u32) -> Result<Indexed, StoreError>;

    /// Checks whether the words of an event are missing in the index.
    fn lacks_index(&self) -> bool;

    /// Returns what opens a new reader, on the thread that uses it: a server may take long to answer.
    ///
    /// # Errors
    /// If the store must not be opened once more.
    fn opens_reader(&self) -> Result<OpensReader, StoreError>;

    /// Commits without a meaningful change, to see whether writing works again.
    ///
    /// # Errors
    /// If writing does not work.
    fn probe(&mut self) -> Result<(), StoreError>;

    /// Checks that the open files are still those at their paths, and that no other program has written to them.
    ///
    /// # Errors
    /// [`StoreError::Swapped`] if they are not.
    fn look(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns a problem that a person should know though the store still takes every write; `None` if all is well.
    fn note(&self) -> Option<Box<str>> {
        None
    }

    /// Returns the server that has the state; `None` if the state folder has it, and while there is no connection.
    fn server(&self) -> Option<ServerAt> {
        None
    }

    /// Notes that this stop was clean. No write is possible afterwards.
    ///
    /// # Errors
    /// If that could not be written; the next start then counts as one after a crash.
    fn close(&mut self) -> Result<(), StoreError>;
}

/// Read-only, beside the writer, on a thread that may block.
pub trait Reader: Send {
    /// Returns finished tasks, newest first, and whether there are more. At most `limit`, and at most `bytes_max`
    /// bytes as stored; the first one always comes, so that paging moves on.
    ///
    /// # Errors
    /// If the store does not answer or a row cannot be read.
    fn finished(
        &mut self,
        filter: FinishedFilter,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Task>, bool), StoreError>;

    /// Returns the finished task with this id, if it is kept.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, StoreError>;

    /// Returns events after `seq`, oldest first, at most `limit`, and fewer if they are large; it is empty only if
    /// there are none.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn events_after(&mut self, seq: EventSeq, limit: u16) -> Result<Vec<StoredEvent>, StoreError>;

    /// Returns messages between agents, oldest first unless the choice says otherwise: at most `bytes_max` bytes as stored, but always one.
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

    /// Passes the messages on one by one, until `each` has enough, so that they need not be in memory together.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn each_letter(
        &mut self,
        which: &Letters,
        bytes_max: usize,
        each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Returns a page of the timeline.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn timeline(&mut self, query: &TimelineQuery) -> Result<Vec<StoredEvent>, StoreError>;

    /// Returns which of these events of another daemon are, or were, on the timeline.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn imported(&mut self, ids: &[String]) -> Result<BTreeSet<String>, StoreError>;

    /// Returns the request of a job that is not over.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn job_order(&mut self, id: &JobId) -> Result<Option<Json>, StoreError>;

    /// Returns the result of a job.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn job_result(&mut self, id: &JobId) -> Result<Option<JobResult>, StoreError>;

    /// Returns sums of the usage that runs report: those of days and tasks newest first, others by cost, highest
    /// first.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn usage(&mut self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError>;

    /// Returns sums of the daemon's own counts, a row for each model: for tasks the newest, for others all, within a bound.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn counted(&mut self, query: &UsageQuery) -> Result<Vec<CountedRow>, StoreError>;

    /// Returns the counts of one task, a row for each model.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn counted_of(&mut self, task: &TaskId) -> Result<Vec<CountedRow>, StoreError>;

    /// Returns tasks, messages and events that have all the words of a query.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn search(&mut self, query: &SearchQuery) -> Result<Found, StoreError>;

    /// Returns how the database protects acknowledged writes; `None` if the state folder has the state.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn protection(&mut self) -> Result<Option<Protection>, StoreError> {
        Ok(None)
    }

    /// Checks the whole journal; against `anchor`, too, if one is given.
    ///
    /// # Errors
    /// If the store does not answer. Defects of the journal are in the [`Verdict`].
    fn verify(&mut self, anchor: Option<Anchor>) -> Result<Verdict, StoreError> {
        self.verify_with(anchor, &mut |_| true)
    }

    /// Checks the journal, and shows each intact event to `see`, in order; a `false` ends the check.
    ///
    /// # Errors
    /// As for [`Reader::verify`].
    fn verify_with(&mut self, anchor: Option<Anchor>, see: &mut See<'_>) -> Result<Verdict, StoreError>;
}

/// Sees each intact event of a check, and returns whether the check goes on.
pub type See<'a> = dyn FnMut(&StoredEvent) -> bool + 'a;

/// The state and the owed effects with which a start begins.
#[derive(Debug)]
pub struct Loaded {
    /// The whole state, without history.
    pub state: State,
    /// Effects that are owed, oldest first.
    pub owed: Vec<Owed>,
    /// The last entry of the shared log that the state includes.
    pub head: Head,
    /// This daemon, as the others know it.
    pub daemon: DaemonId,
    /// Whether the last daemon stopped cleanly. Also true for a new store.
    pub clean: bool,
    /// The time of the newest event; the epoch if there is none.
    pub until: Timestamp,
    /// When a person has last gone on without a part of the history, by a restore or after a loss of a database.
    pub broke_off: Option<Timestamp>,
    /// Messages that were acknowledged and are not in the journal, in their order. At a start only.
    pub received: Vec<Received>,
    /// The intake that keeps messages from now on; `None` if each commit waits for the disk. At a start only.
    pub intake: Option<Box<dyn Intake>>,
}

/// A choice of finished tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FinishedFilter {
    /// Only tasks that ended with this status.
    pub status: Option<Status>,
    /// Only tasks that finished before this one, the last of the page before. If that task is gone, there are none.
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
    /// Whether signs of life are included.
    pub beats: bool,
    /// The order in which they are read.
    pub order: TimelineOrder,
    /// The highest number of events.
    pub limit: usize,
    /// The highest number of bytes, as stored; the first event always comes, so that paging moves on.
    pub bytes_max: usize,
}

/// The order in which the timeline is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimelineOrder {
    /// By time, and by number if times are equal.
    NewestFirst,
    /// By number, the smallest first.
    OldestFirst,
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
    /// The task that the event is about.
    pub task: Option<TaskId>,
    /// The event's exact text, as hashed; `None` if it was pruned.
    pub body: Option<Box<str>>,
    /// SHA-256 of the body, kept even if the body is gone.
    pub hash: Digest,
    /// The event's link of the chain.
    pub mac: Digest,
}

impl StoredEvent {
    /// Returns the event, if its body is still there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the body is not an event.
    pub fn event(&self) -> Result<Option<Event>, StoreError> {
        self.body.as_deref().map(codec::parse).transpose()
    }
}

/// The way in which a store is used.
#[derive(Default)]
pub struct Options {
    /// The database with the state, if it is not in the state folder.
    pub database: Option<Database>,
    /// Whether every commit waits for the disk, even if its batch asks for less.
    pub always_durable: bool,
    /// The places outside of the store in which the journal's head is recorded.
    pub anchors: Vec<Box<dyn AnchorSink>>,
    /// A file outside of the state folder that tells a start how far the journal had come.
    pub outside: Option<std::path::PathBuf>,
    /// The daemon's words to and from the daemons of other hosts.
    pub words: Option<HostWords>,
    /// Checks the answers that people gave at other hosts while this daemon was away.
    pub answers: Option<AnswerCheck>,
}

/// Checks whether answers from other hosts prove their content, by the journal and the state in the rows; otherwise
/// returns the event that does not, and the reason.
pub type AnswerCheck = Box<dyn Fn(&State, &AnsweredAway) -> Result<(), (EventSeq, Box<str>)> + Send>;

/// Opens the store of a state folder for writing, and makes what is missing.
///
/// # Errors
/// [`StoreError::InUse`] if another daemon writes there; [`StoreError::Unsafe`] if others could have changed its
/// files; [`StoreError::Newer`] and [`StoreError::Key`] as they say.
pub fn open(dir: &Path, mut options: Options) -> Result<Box<dyn Store>, StoreError> {
    match options.database.take() {
        Some(database) => in_database::open(dir, database, options),
        None => {
            must_be_here(dir)?;
            let store = SqliteStore::open(dir, options)?;
            // A file that is still there was left by a move that has ended except for its removal.
            files::forget(&dir.join(IN_DATABASE))?;
            Ok(Box::new(store))
        }
    }
}

/// Refuses a folder that remembers a database: an empty store beside it would issue the same numbers again.
fn must_be_here(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(IN_DATABASE);
    if path.symlink_metadata().is_err()
        || (files::has_database(dir) && database::ending(dir)? == Some(Ending::Out))
    {
        return Ok(());
    }
    Err(StoreError::Unsafe {
        path: path.display().to_string().into(),
        why: "says that the state of this repository is in PostgreSQL: write `[store] url` again, or move the state back with \
              `provost store move --to folder --from URL`"
            .into(),
    })
}

/// Checks whether the store of a state folder can be used; a store that does not exist yet can. Changes nothing.
/// All pages of a large store are checked only if `all` says so.
///
/// # Errors
/// The reason, with the next step.
pub fn look(dir: &Path, outside: Option<&Path>, all: bool) -> Result<(), StoreError> {
    must_be_here(dir).and_then(|()| sqlite::look(dir, outside, all))
}

/// Checks the store, if the state may be in a database.
///
/// # Errors
/// As for [`look`].
pub fn look_in(
    dir: &Path,
    database: Option<&Database>,
    outside: Option<&Path>,
    all: bool,
) -> Result<(), StoreError> {
    match database {
        Some(database) => in_database::look(dir, database, outside, all),
        None => look(dir, outside, all),
    }
}

/// Opens the store of a state folder for reading, whether or not a daemon runs.
///
/// # Errors
/// If there is no store, or as for [`open`].
pub fn open_reader(dir: &Path) -> Result<Box<dyn Reader>, StoreError> {
    must_be_here(dir).and_then(|()| sqlite::open_reader(dir))
}

/// Opens the store for reading, if the state may be in a database.
///
/// # Errors
/// As for [`open_reader`].
pub fn open_reader_in(dir: &Path, database: Option<&Database>) -> Result<Box<dyn Reader>, StoreError> {
    match database {
        Some(database) => in_database::open_reader(dir, database),
        None => open_reader(dir),
    }
}

/// Checks whether a state folder has its state in a database.
pub fn is_in_database(dir: &Path) -> bool {
    dir.join(IN_DATABASE).exists()
}

/// Checks whether a state folder has ever had a store, here or in a database.
pub fn is_begun(dir: &Path) -> bool {
    [DATABASE, IN_DATABASE].iter().any(|it| dir.join(it).exists())
}
