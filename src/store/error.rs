//! The reasons why something could not be stored or read.

use std::path::Path;

use provost_base::limits::BACKUP_WAIT_MS_MAX;
use provost_base::{DaemonId, EntryNo, EventSeq};

use super::Anchor;

/// The next step for a store whose newest history is missing.
const WAYS_ON: &str = ". `provost store restore FILE` brings a backup back; `provost store restore --as-it-is` continues with the rest, and `provost store restore --empty` with an empty store, both with numbers that were never issued";

/// The next step for a store with an error in it that makes it unusable.
pub(super) const WAYS_BACK: &str = ". `provost store restore FILE` brings a backup back; `provost store restore --empty` continues with an empty store, with numbers that were never issued, and keeps the present files beside it";

/// The next step for a journal that may as well be in PostgreSQL.
const OR_IN_DATABASE: &str = ". Those are for a state in its folder; docs/hosts.md says what an administrator does about one in PostgreSQL";

/// The reason why something could not be stored or read. The texts are for the person who runs the daemon.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another daemon writes here.
    #[error("another daemon already uses this state folder{}", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    InUse {
        /// Its process id, if it has written it already.
        pid: Option<u32>,
    },
    /// A later Provost has written the store.
    #[error(
        "the store has schema {found} and this Provost knows {known} at most: use the newer Provost again"
    )]
    Newer {
        /// The schema of the store.
        found: u32,
        /// The newest schema known here.
        known: u32,
    },
    /// A file that others could have changed, or that has the wrong kind or mode.
    #[error("{path} {why}")]
    Unsafe {
        /// The file that is unsafe.
        path: Box<str>,
        /// The mistake, and the next step.
        why: Box<str>,
    },
    /// The journal's key is missing or is another one.
    #[error("{0}")]
    Key(Box<str>),
    /// Another program has changed the journal.
    #[error("the journal has been tampered with at event {seq}: {what}{WAYS_BACK}{OR_IN_DATABASE}")]
    Tampered {
        /// The first event that is wrong.
        seq: EventSeq,
        /// The difference that was found, in words for people.
        what: Box<str>,
    },
    /// Another program has removed the newest events.
    #[error(
        "the journal has been tampered with: it ends at event {head}, and its newest number is another one{WAYS_ON}{OR_IN_DATABASE}"
    )]
    EndMissing {
        /// The last event that the journal has.
        head: EventSeq,
    },
    /// Another program has changed the log that several hosts share, or its end was lost.
    #[error(
        "the shared log is broken at entry {n}: {what}; nothing is written any more, and `provost doctor` says what to do"
    )]
    BrokenLog {
        /// The first entry that is wrong.
        n: EntryNo,
        /// The difference that was found, in words for people.
        what: Box<str>,
    },
    /// A later Provost on another host has written an entry that this one cannot fold.
    #[error(
        "the shared log has entries of format {found} and this Provost reads {known} at most: install the Provost that the \
         other hosts have, then start the daemon again"
    )]
    NewerFormat {
        /// The format of the entry.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// An entry that this Provost cannot fold, though it has a format known here.
    #[error(
        "entry {n} of the shared log has a change that this release ({own}) does not know ({what}). {} on the host {by} has written it. \
         Nothing of it is skipped, and nothing is written here any more: install that release, then start the daemon again",
        .version.as_deref().map_or_else(|| "A newer Provost".to_owned(), |it| format!("Provost {it}")), own = env!("CARGO_PKG_VERSION")
    )]
    UnknownChange {
        /// The number of the entry.
        n: EntryNo,
        /// The daemon that has written it.
        by: DaemonId,
        /// The mistake that was found when it was read.
        what: Box<str>,
        /// The version of that daemon's Provost, if it is known.
        version: Option<Box<str>>,
    },
    /// The database is missing, though it existed.
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
        /// The place where the point is recorded.
        at: Box<str>,
    },
    /// A daemon was killed before it had recorded acknowledged messages.
    #[error(
        "{messages} messages were acknowledged just before the daemon was ended, and the next start puts them on record: \
         run `provost up`, then this again"
    )]
    NotOnRecord {
        /// The number of messages in the intake.
        messages: usize,
    },
    /// Another program keeps the store from being read.
    #[error(
        "another program holds the database and has not let go of it within {} seconds; end it (a database browser, a \
         script), then do this again", BACKUP_WAIT_MS_MAX / 1_000
    )]
    Held,
    /// The database's pages are malformed.
    #[error("the database is malformed: {0}{WAYS_BACK}")]
    Malformed(Box<str>),
    /// A file was moved, removed or written while the daemon had it open.
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
    /// The file that was given is not a backup.
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
    /// The batch does not follow the last one.
    #[error("the batch begins with event {got} where {expected} comes next")]
    OutOfStep {
        /// The number that was expected.
        expected: EventSeq,
        /// The number that came instead.
        got: EventSeq,
    },
    /// The store is not loaded yet, or closed already.
    #[error("the store is not open for writing")]
    NotRunning,
    /// The disk has no space left.
    #[error("no space is left for the store")]
    Full(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Any other error of SQLite.
    #[error("the store does not answer: {0}")]
    Sqlite(#[source] rusqlite::Error),
    /// The database server has answered with an error.
    #[error("the database says: {0}")]
    Database(Box<str>),
    /// The database server cannot be reached at the moment, or takes no writes.
    #[error("the database does not answer: {0}")]
    Away(Box<str>),
    /// The database has fewer events than this daemon knows it to have had.
    #[error(
        "the database went back: it ends at event {is}, and was at event {was} once, so that what was acknowledged is lost there. Nothing is \
         written: start the server again that has it, and take the other one out of `[store] url`; where it is lost for good, stop the \
         daemon, and go on without it: `provost store accept-loss`"
    )]
    WentBack {
        /// The last event that it had.
        was: EventSeq,
        /// The last event that it has now.
        is: EventSeq,
    },
    /// A person has continued without what the database has lost, on another host.
    #[error(
        "a person has gone on without what the database had lost (`provost store accept-loss`), and this daemon still has some of that"
    )]
    LossAccepted,
    /// A setting of the store cannot be used.
    #[error("[store] {0}")]
    Setting(Box<str>),
    /// The system has returned an error.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: Box<str>,
        /// The system's error.
        source: std::io::Error,
    },
    /// A test has demanded the error.
    #[error("failure injected by a test")]
    Injected,
}

/// The words for a server without an answer.
const SILENCE: &str = "it has not answered within";

/// The words for a server that can be read, and takes no writes.
pub(crate) const READ_ONLY: &str = "it is a standby, or read-only";

impl StoreError {
    /// Checks whether the database has refused it to this role, so that another role may do it.
    pub fn is_of_rights(&self) -> bool {
        matches!(self, StoreError::Database(says) if says.contains("(42501)"))
    }

    /// Checks whether the database can be read, and takes no writes.
    pub fn is_read_only(&self) -> bool {
        matches!(self, StoreError::Away(says) if says.contains(READ_ONLY))
    }

    /// Returns the error for a server that has not answered within this time.
    #[cfg(feature = "postgres")]
    pub(crate) fn silence(limit: std::time::Duration) -> Self {
        StoreError::Away(format!("{SILENCE} {} ms", limit.as_millis()).into())
    }

    /// Returns what is said of a server that is silent, so that each further question would wait for it, too. A connection that was closed or
    /// refused costs no time, and a standby among several servers can be read.
    pub fn silent(&self) -> Option<&str> {
        match self {
            StoreError::Away(says) if says.contains(SILENCE) && !says.contains(READ_ONLY) => Some(says),
            _ => None,
        }
    }

    /// Returns whether the database has no connection left for this daemon.
    pub fn is_of_connections(&self) -> bool {
        matches!(self, StoreError::Away(says) if says.contains("(53300)"))
    }

    pub(crate) fn damaged(what: impl std::fmt::Display) -> Self {
        StoreError::Damaged(what.to_string().into())
    }

    pub(crate) fn no_backup(path: &Path) -> Self {
        StoreError::NoBackup(path.display().to_string().into())
    }

    /// Returns the reason alone, for a list of attempts.
    #[cfg(feature = "postgres")]
    pub(crate) fn short(&self) -> String {
        match self {
            StoreError::Away(why) | StoreError::Database(why) => why.to_string(),
            err => err.to_string(),
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.display().to_string().into();
        move |source| StoreError::Io { path, source }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> Self {
        match err.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full(Box::new(err)),
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                StoreError::Malformed(err.to_string().into())
            }
            _ => StoreError::Sqlite(err),
        }
    }
}
