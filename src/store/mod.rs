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
mod said;
mod search;
mod shared;
mod shared_artifacts;
mod sqlite;
mod sums;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost_base::{AgentId, DaemonId, Digest, EntryNo, EventSeq, HostRole, JobId, Json, TaskId, Timestamp};
use provost_domain::post::Received;
use provost_domain::{AnsweredAway, Event, JobResult, Outbox, Owed, Settings, State, Status, Task};

pub use artifacts::{Artifacts, Keeping};
pub use database::{
    Database, Loss, Migrated, Moved, Protection, ROLES, RootCommits, Roots, Site, accept_loss, hosts, join,
    loss, migrate, move_into_database, move_into_folder, protection, take_out, upgrade,
};
use database::{Ending, IN_DATABASE, in_database};
pub use decisions::{RecordedDecision, RecordedDecisions, newest_event, recorded_decisions};
pub use error::StoreError;
use error::WAYS_BACK;
pub use host_words::HostWords;
pub use intake::Intake;
pub use job_logs::{JobLogs, LogPart};
pub use journal::{Anchor, AnchorSink, JournalHead, Leap, Verdict, export};
pub use key_file::{Invite, Invited, SealedKey, Way, open_invitation, seal_key};
pub use letters::{Letters, StoredPost};
pub use log::{ENTRY_FORMAT, ENTRY_FORMAT_OLDEST, SealedEntry};
pub use search::{Found, Hit, HitKind, SearchError, SearchQuery, SearchWords};
pub use shared::{
    Begun, Behind, CommitError, Head, HostBeat, HostRow, HostState, Joined, ServerAt, TakenOut, Upgraded,
};
pub use shared_artifacts::SharedArtifacts;
pub use sqlite::{ForeignEvent, Restore, Restored, SqliteStore, backup, foreign_events, restore};
pub use sums::{CountedRow, UsageBy, UsageQuery, UsageRow};

/// The database in the state folder.
pub const DATABASE: &str = "provost.db";
/// The key of the journal's chain, beside it.
pub const JOURNAL_KEY: &str = "journal.key";
/// Held locked by the daemon that writes; has its process id inside.
pub const LEASE: &str = "daemon.lock";

/// The writer. There is one for each state folder, and one for each daemon where several share a store.
///
/// ```text
///   [out of turn] --begin--> [in turn] --commit, let_go, or an error--> [out of turn]
/// ```
/// A store of one writer is always in turn: the default methods are its own.
pub trait Store: Send {
    /// Reads everything needed to go on, and checks the journal from its last checkpoint on. The first call
    /// is a start: it notes that a daemon runs now. Later ones, after a commit has failed, only read.
    ///
    /// # Errors
    /// [`StoreError::Tampered`] and [`StoreError::Damaged`] when what is stored cannot be trusted.
    fn load(&mut self, settings: Settings) -> Result<Loaded, StoreError>;

    /// Whether other daemons write here, too. Then a batch is decided between [`Store::begin`] and [`Store::commit`] alone, every
    /// commit waits for the disk, and there is no intake.
    fn is_shared(&self) -> bool {
        false
    }

    /// Has `wake` called, from any thread, when another daemon may have committed something.
    fn wake_by(&mut self, _wake: Box<dyn Fn() + Send + Sync>) {}

    /// Takes the turn, and says what others have committed after `head`. No other daemon commits before this one does or lets go.
    /// After a commit whose outcome is unknown, `head` is the one from before it: if the batch is stored, it is the first entry.
    ///
    /// # Errors
    /// Any; then the turn is not taken.
    fn begin(&mut self, _head: Head) -> Result<Begun, StoreError> {
        Ok(Begun::default())
    }

    /// Gives the turn up without a commit. Does nothing out of turn.
    ///
    /// # Errors
    /// When the store does not answer; the turn is given up nevertheless.
    fn let_go(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// What a daemon owes, and daemons before it on its host. In turn alone.
    ///
    /// # Errors
    /// When the store does not answer or a row cannot be read.
    fn owed_by(&mut self, _daemon: DaemonId) -> Result<Vec<Owed>, StoreError> {
        Ok(Vec::new())
    }

    /// What this host has joined for, once [`Store::load`] has returned.
    fn role(&self) -> HostRole {
        HostRole::Full
    }

    /// Remembers that an entry does not prove what it says: no later start goes on behind it.
    fn distrust(&mut self, _n: EntryNo, _what: &str) {}

    /// What is committed after `head`, without taking the turn.
    ///
    /// # Errors
    /// When the store does not answer.
    fn catch_up(&mut self, _head: Head) -> Result<Behind, StoreError> {
        Ok(Behind::Nothing)
    }

    /// Writes a batch: all of it or none, and says where the log ends then. When this returns, it is as safe as
    /// `batch.durability` asks, and the turn is over.
    ///
    /// # Errors
    /// [`CommitError`] says whether nothing of it is stored, or that is not known.
    fn commit(&mut self, batch: &Outbox) -> Result<Head, CommitError>;

    /// The same for a batch that has all messages that were kept up to `seal`, which [`Intake::turn`] has
    /// given. A start finds the messages that were kept after that seal as before.
    ///
    /// # Errors
    /// As for [`Store::commit`].
    fn commit_kept(&mut self, batch: &Outbox, seal: &Digest) -> Result<Head, CommitError>;

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

    /// The server that has the state; `None` where the state folder has it, and while there is no connection.
    fn server(&self) -> Option<ServerAt> {
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

    /// What the database promises of what is acknowledged; `None` where the state folder has the state.
    ///
    /// # Errors
    /// As for [`Reader::finished`].
    fn protection(&mut self) -> Result<Option<Protection>, StoreError> {
        Ok(None)
    }

    /// Checks the whole journal, and against `anchor` if one is given.
    ///
    /// # Errors
    /// When the store does not answer. What is wrong with the journal is the [`Verdict`]'s to say.
    fn verify(&mut self, anchor: Option<Anchor>) -> Result<Verdict, StoreError> {
        self.verify_with(anchor, &mut |_| true)
    }

    /// The same, and shows each event that holds, in order; a `false` ends the check.
    ///
    /// # Errors
    /// As for [`Reader::verify`].
    fn verify_with(&mut self, anchor: Option<Anchor>, see: &mut See<'_>) -> Result<Verdict, StoreError>;
}

/// Sees each event of a check that holds, and says whether the check goes on.
pub type See<'a> = dyn FnMut(&StoredEvent) -> bool + 'a;

/// The state and the debts with which a start begins.
#[derive(Debug)]
pub struct Loaded {
    /// Everything that is not history.
    pub state: State,
    /// Effects that are owed, oldest first.
    pub owed: Vec<Owed>,
    /// The last entry of the shared log that the state has.
    pub head: Head,
    /// This daemon, as the other ones know it.
    pub daemon: DaemonId,
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
    /// Where the state is, if not in the state folder.
    pub database: Option<Database>,
    /// Whether every commit waits for the disk, whatever its batch asks.
    pub always_durable: bool,
    /// The places outside of the store in which the journal's head is recorded.
    pub anchors: Vec<Box<dyn AnchorSink>>,
    /// A file outside of the state folder, in which a start finds how far the journal had come.
    pub outside: Option<std::path::PathBuf>,
    /// What the daemon says to those of other hosts, and hears of them.
    pub words: Option<HostWords>,
    /// Looks at what people have answered at other hosts while this daemon did not look.
    pub answers: Option<AnswerCheck>,
}

/// Looks whether what was answered at other hosts proves what it says, by the journal and the state as the rows have it; otherwise says which
/// event does not, and why.
pub type AnswerCheck = Box<dyn Fn(&State, &AnsweredAway) -> Result<(), (EventSeq, Box<str>)> + Send>;

/// Opens the store of a state folder for writing, and makes what is missing.
///
/// # Errors
/// [`StoreError::InUse`] when another daemon writes there; [`StoreError::Unsafe`] when others could have
/// changed its files; [`StoreError::Newer`] and [`StoreError::Key`] as they say.
pub fn open(dir: &Path, mut options: Options) -> Result<Box<dyn Store>, StoreError> {
    match options.database.take() {
        Some(database) => in_database::open(dir, database, options),
        None => {
            must_be_here(dir)?;
            let store = SqliteStore::open(dir, options)?;
            // What is still there was left by a move that has ended in all but this.
            files::forget(&dir.join(IN_DATABASE))?;
            Ok(Box::new(store))
        }
    }
}

/// A folder that remembers a database has its state there: an empty store beside it would give the same numbers again.
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

/// Looks whether the store of a state folder can be gone on with; one that is not there yet can. Changes
/// nothing. All pages of a large store are looked through only where `all` says so.
///
/// # Errors
/// Why not, with what to do.
pub fn look(dir: &Path, outside: Option<&Path>, all: bool) -> Result<(), StoreError> {
    must_be_here(dir).and_then(|()| sqlite::look(dir, outside, all))
}

/// The same, where the state may be in a database.
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
/// When there is none, or as for [`open`].
pub fn open_reader(dir: &Path) -> Result<Box<dyn Reader>, StoreError> {
    must_be_here(dir).and_then(|()| sqlite::open_reader(dir))
}

/// The same, where the state may be in a database.
///
/// # Errors
/// As for [`open_reader`].
pub fn open_reader_in(dir: &Path, database: Option<&Database>) -> Result<Box<dyn Reader>, StoreError> {
    match database {
        Some(database) => in_database::open_reader(dir, database),
        None => open_reader(dir),
    }
}

/// Whether a state folder has its state in a database.
pub fn is_in_database(dir: &Path) -> bool {
    dir.join(IN_DATABASE).exists()
}

/// Whether a state folder has had a store, here or in a database.
pub fn is_begun(dir: &Path) -> bool {
    [DATABASE, IN_DATABASE].iter().any(|it| dir.join(it).exists())
}
