//! The store in PostgreSQL: the rows of several repositories in the same tables, each repository with one row that orders its writers.
//!
//! ```text
//!   [opened] --load--> [running] --close--> [closed]
//!                       |     ^
//!                     begin   commit, let_go, or an error
//!                       v     |
//!                      [in turn]: a transaction that has the repository's row
//! ```
//! A turn costs two round trips: one flush takes the row and reads the end of the log, another one writes all rows
//! and commits. A busy daemon without others sends the first one behind the commit before it, and waits for one. The reasons are in decisions
//! 0176, 0182 and 0231.
#![forbid(unsafe_code)]

mod address;
mod ahead;
mod answers;
mod artifact_store;
mod batch;
mod behind;
mod bounds;
mod enrolling;
mod entry;
mod gaps;
mod hosts;
mod keep;
mod load;
mod loss;
mod moving;
mod posts;
mod protection;
mod pruned;
mod reaching;
mod read;
mod remade;
mod remembered;
mod repo_row;
mod roots;
mod schema;
mod search;
mod session;
mod signing;
mod start;
mod sums;
mod taken_out;
mod tls;
mod trouble;
mod turn;
mod upgrade;
mod waker;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::database::{Ending, ending};
use super::files::{self, Lease};
use super::journal::Key;
use super::marks::{self, FoundMarks, Marks};
use super::{
    AnchorSink, AnswerCheck, Begun, Behind, CommitError, Database, Head, HostWords, Indexed, JournalHead,
    Loaded, OpensReader, Options, Pruned, Retention, RootCommits, ServerAt, Store, StoreError,
};
use provost_base::{DaemonId, Digest, EntryNo, EventSeq, HostId, HostRole, TaskId, Timestamp};
use provost_domain::{Counters, Outbox, Owed, Settings, Task};

pub(crate) use artifact_store::SharedArtifactStore;
pub(super) use hosts::{hosts, join, take_out, why_no_invitation};
pub(super) use loss::{accept_loss, loss};
pub(super) use moving::{move_into, move_out};
pub(super) use protection::protection;
pub(super) use schema::migrate;
pub(super) use upgrade::upgrade;

use reaching::Reaching;
pub(super) use read::{PostgresReader, look};
use remembered::{Newest, Remembered};
use session::{Place, Purpose, Session};
use signing::HostKeys;
use waker::Waker;

/// Returns the error for a value that does not have its column's type.
fn unreadable(err: tokio_postgres::Error) -> StoreError {
    StoreError::damaged(address::with_cause(&err))
}

/// The store of a repository in PostgreSQL.
pub(super) struct PostgresStore {
    session: Session,
    /// How the server is reached again, once it was given up.
    reaching: Reaching,
    dir: PathBuf,
    database: Database,
    key: Key,
    /// The keys of the hosts, and this one's own.
    keys: HostKeys,
    stage: Stage,
    /// The repository's number in the database; 0 before it is known.
    repo: i32,
    /// This host, which the state folder remembers.
    remembered: Remembered,
    incarnation: u64,
    /// The root commits of this folder, if they are needed.
    roots: RootCommits,
    /// Whether the daemon before this one stopped cleanly.
    clean: bool,
    written: Written,
    /// The transaction that has the repository's row.
    turn: Option<Turn>,
    /// When this daemon last had read everything, by the server's own clock.
    looked: Option<Timestamp>,
    /// Whether the last turn could not be taken, or said that the rows have to be loaded.
    refused: bool,
    /// When this process made its last checkpoint, and when it last told the database about this host.
    sealed: Option<Instant>,
    beat: Option<Instant>,
    anchors: Vec<Box<dyn AnchorSink>>,
    marks: Marks,
    known: FoundMarks,
    /// The listener for other daemons' commits.
    waker: Option<Waker>,
    words: HostWords,
    /// The check of the answers that people gave elsewhere meanwhile.
    answers: Option<AnswerCheck>,
    /// Whether the last turn has found another host that takes part, and so is told of this host's commits.
    is_heard: bool,
    /// Whether the caller asks when to end a turn that was begun ahead.
    is_asked_about_ahead: bool,
    /// The end of the log after which the turn comes that was begun ahead.
    ahead: Option<Head>,
    /// Since when each commit has begun the next turn.
    ahead_since: Option<Instant>,
    /// The version of the tables, as the last turn found it.
    tables: u32,
    /// Dropped last, when no other part can write any more.
    _lease: Lease,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Opened,
    Running,
    Closed,
}

/// A turn that is under way.
#[derive(Clone, Debug, Default)]
struct Turn {
    /// The time, by the database's clock.
    now: Timestamp,
    /// The format of entries, which belongs to the log and is not always the newest of this release.
    format: u32,
    /// The history that the commit notes as written: the present one only if the engine was told that it is
    /// another, since the engine skips numbers then.
    place: Place,
    /// The stored state. The engine may not have all of it in memory if the turn is not its own.
    at: Written,
    /// The numbers that were given last, as far as entries tell.
    counted: Counters,
    /// The ends of log and journal in the repository's row, and whether a host has sealed the row.
    ends: (i64, i64),
    is_sealed: bool,
}

/// The state after an entry of the log: the last entry that the engine has taken over, or in a turn the last one of all.
#[derive(Clone, Debug, Default)]
struct Written {
    /// The end of the journal.
    head: JournalHead,
    /// The end of the log.
    entry: Head,
    /// The number of entries that this daemon has written.
    own_n: u64,
    counters: Counters,
    /// The place of the last checkpoint.
    checkpoint: EventSeq,
    pruned_to: EventSeq,
    /// The last place given to a finished task.
    finished: i64,
    /// The last event whose words can be searched.
    indexed_to: EventSeq,
}

impl PostgresStore {
    /// Takes the lease of the state folder, and finds the journal's key, the host's id and the database.
    ///
    /// # Errors
    /// As for [`super::open`].
    pub(super) fn open(dir: &Path, database: Database, options: Options) -> Result<Self, StoreError> {
        let dir = files::state_dir(dir)?;
        let lease = Lease::take(&dir)?;
        must_have_no_other(&dir)?;
        let remembered = moving::ended(&dir, Remembered::of(&dir, &database.name)?)?;
        let servers = address::servers(&database, &format!("provost/{}", remembered.short()))?;
        let mut session = Session::new(servers, Purpose::Write)?;
        session.connect(&remembered.place)?;
        session::must_be_its_own(&mut session)?;
        schema::check(&mut session)?;
        let key = start::journal_key(&mut session, &dir, &database.name)?;
        let keys = HostKeys::of(&dir, &database.name, remembered.host, &key)?;
        let roots = roots::needed(&mut session, &database, remembered.host)?;
        session.hurry();
        let places = marks::places(&dir, options.outside.as_deref());
        let (known, marks) = (marks::read(&places, &key), Marks::open(&places));
        let words = options.words.unwrap_or_else(|| HostWords::of(&dir));
        Ok(Self {
            session,
            reaching: Reaching::default(),
            dir,
            database,
            key,
            keys,
            stage: Stage::Opened,
            repo: 0,
            remembered,
            incarnation: 0,
            roots,
            clean: true,
            written: Written::default(),
            turn: None,
            looked: None,
            refused: false,
            sealed: None,
            beat: None,
            anchors: options.anchors,
            marks,
            known,
            waker: None,
            words,
            answers: options.answers,
            is_heard: true,
            is_asked_about_ahead: false,
            ahead: None,
            ahead_since: None,
            tables: 0,
            _lease: lease,
        })
    }

    fn must_run(&self) -> Result<(), StoreError> {
        if self.stage == Stage::Running { Ok(()) } else { Err(StoreError::NotRunning) }
    }

    fn daemon(&self) -> DaemonId {
        DaemonId { host: self.remembered.host, incarnation: self.incarnation }
    }

    fn host(&self) -> HostId {
        self.remembered.host
    }

    fn publish(&mut self) {
        for sink in &mut self.anchors {
            sink.publish(&self.written.head);
        }
    }

    /// Connects, if necessary. A server with an older history than the known one is refused.
    fn connect(&mut self) -> Result<Place, StoreError> {
        // What comes later in the turn would be outside of its transaction.
        if self.turn.is_some() && !self.session.is_linked() {
            return Err(StoreError::Away("the connection was lost during the turn".into()));
        }
        if self.turn.is_none()
            && let Err(err) = self.session.end_ahead()
            && err.silent().is_some()
        {
            return Err(err);
        }
        let least = self.remembered.place.clone();
        self.session.connect(&least).cloned()
    }
}

/// Checks that a state folder has no other state: it has its state in one place.
fn must_have_no_other(dir: &Path) -> Result<(), StoreError> {
    if !files::has_database(dir) {
        return Ok(());
    }
    let why = match ending(dir)? {
        // The move into the database is complete except for the name of this file.
        Some(Ending::Into(_)) => return Ok(()),
        Some(Ending::Out) => {
            "has the state of this repository, which was moved out of PostgreSQL: take `[store] url` out of the configuration"
        }
        None => {
            "has the state of this repository: stop the daemon and move it into the database, with \
             `provost store move --to URL`, or take `[store] url` out of the configuration"
        }
    };
    Err(StoreError::Unsafe { path: dir.join(super::DATABASE).display().to_string().into(), why: why.into() })
}

impl Store for PostgresStore {
    fn load(&mut self, settings: Settings) -> Result<Loaded, StoreError> {
        self.start_or_reload(settings)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn wake_by(&mut self, wake: Box<dyn Fn() + Send + Sync>) {
        let servers = address::servers(&self.database, &format!("provost/{}/wakes", self.remembered.short()));
        let newest = Newest::of(&self.dir);
        let waker = servers
            .and_then(|it| Waker::start(it, newest, (self.repo, self.host()), self.words.clone(), wake));
        match waker {
            Ok(waker) => self.waker = Some(waker),
            Err(err) => tracing::warn!(%err, "what other hosts commit is seen some seconds later"),
        }
    }

    fn begin(&mut self, head: Head) -> Result<Begun, StoreError> {
        let begun = self.take_turn(head)?;
        let place = self.session.place()?.clone();
        if let Some(turn) = &mut self.turn {
            turn.place = place;
            // If the engine is too far behind, the rows are loaded first.
            if !matches!(begun.behind, Behind::TooFar) {
                self.written = Written { counters: turn.counted, ..turn.at.clone() };
            }
        }
        Ok(begun)
    }

    fn let_go(&mut self) -> Result<(), StoreError> {
        self.end_turn()
    }

    fn stays_begun(&mut self) -> Result<Option<Duration>, StoreError> {
        self.stays_ahead()
    }

    fn owed_by(&mut self, daemon: DaemonId) -> Result<Vec<Owed>, StoreError> {
        load::owed_by(&mut self.session, self.repo, daemon)
    }

    fn role(&self) -> HostRole {
        self.keys.known.get(self.host()).map(|it| it.role).unwrap_or_default()
    }

    fn distrust(&mut self, n: EntryNo, what: &str) {
        self.keys.distrust(n, what);
        self.remember_hosts();
    }

    fn has_to_judge(&mut self, head: Head) -> Result<bool, StoreError> {
        self.is_followed_by_work(head)
    }

    fn catch_up(&mut self, head: Head) -> Result<Behind, StoreError> {
        self.behind_now(head)
    }

    fn commit(&mut self, batch: &Outbox) -> Result<Head, CommitError> {
        self.write(batch)
    }

    fn commit_kept(&mut self, batch: &Outbox, _seal: &Digest) -> Result<Head, CommitError> {
        // There is no intake, and so no seal.
        self.write(batch)
    }

    fn waits_for_disk(&self) -> bool {
        true
    }

    fn past_task(&mut self, id: &TaskId) -> Result<Option<Arc<Task>>, StoreError> {
        self.must_run()?;
        self.connect()?;
        read::past_task(&mut self.session, self.repo, id).map(|it| it.map(Arc::new))
    }

    fn journal_head(&self) -> JournalHead {
        self.written.head
    }

    fn prune(&mut self, now: Timestamp, keep: &Retention, most: u32) -> Result<Pruned, StoreError> {
        self.prune_history(now, keep, most.max(1))
    }

    fn index(&mut self, most: u32) -> Result<Indexed, StoreError> {
        self.index_words(most.max(1))
    }

    fn lacks_index(&self) -> bool {
        self.written.indexed_to < self.written.head.seq
    }

    fn opens_reader(&self) -> Result<OpensReader, StoreError> {
        self.must_run()?;
        let (dir, database) = (self.dir.clone(), self.database.clone());
        Ok(Box::new(move || Ok(Box::new(PostgresReader::of_daemon(&dir, &database)?))))
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        self.must_be_reached()?;
        self.probe_writing()
    }

    fn note(&self) -> Option<Box<str>> {
        self.tables_note().or_else(|| self.marks.note())
    }

    fn server(&self) -> Option<ServerAt> {
        self.session.server()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.waker = None;
        self.stop()
    }
}
