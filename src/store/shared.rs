//! What a store says that several daemons write: where its log ends, what the others have done, and who they are.

use std::sync::Arc;

use provost_base::{DaemonId, Digest, EntryNo, HostRole, Timestamp};
use provost_domain::LogEntry;

use super::StoreError;

/// Where the shared log ends for a daemon: the last entry that its memory has, and that entry's link of the chain. A store of
/// one writer has no log, and its head is always the default one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// The last entry; zero before the first.
    pub n: EntryNo,
    /// Its link of the chain.
    pub mac: Digest,
}

/// What a daemon learns when its turn to write begins.
#[derive(Debug, Default)]
pub struct Begun {
    /// The time by the store's clock, which all its daemons go by; `None` where the engine's own clock is the one.
    pub now: Option<Timestamp>,
    /// What the others have committed since.
    pub behind: Behind,
    /// The other hosts and this one, as the store has them.
    pub hosts: Vec<HostBeat>,
    /// Whether the server writes another history than the last commit has seen, as after a failover. Numbers may have been lost
    /// with the first, so this turn passes some over.
    pub moved: bool,
}

/// What has been committed after a daemon's head.
#[derive(Debug, Default)]
pub enum Behind {
    /// Nothing.
    #[default]
    Nothing,
    /// These entries, in order and without a gap, all of whose links hold.
    Entries(Vec<LogEntry>),
    /// More than the log still has, or than can be given at once: memory has to be loaded again.
    TooFar,
}

/// The server of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerAt {
    /// Its host and port, or its socket.
    pub name: Arc<str>,
    /// The version of PostgreSQL.
    pub version: Arc<str>,
    /// The timeline that it writes.
    pub timeline: u64,
}

/// A host as the store has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostBeat {
    /// The host, and its present incarnation.
    pub daemon: DaemonId,
    /// What it may do.
    pub state: HostState,
    /// When it last said that it lives, by the store's clock.
    pub beat: Timestamp,
    /// The oldest format of the log that it reads, and the newest that it writes.
    pub formats: (u32, u32),
}

/// How far a host is on its way in or out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostState {
    /// It has asked to join, and a person has to admit it.
    Waiting,
    /// It takes part.
    Live,
    /// It takes no new tasks, and is removed after its last run.
    Draining,
    /// It was silent for too long; it comes back with its next incarnation.
    Down,
    /// A person has removed it, and what it held has still to be freed.
    Removing,
    /// It takes part no more, for ever.
    Removed,
}

impl HostState {
    /// The word for it, the same in the database and for people.
    pub fn as_str(self) -> &'static str {
        match self {
            HostState::Waiting => "waiting",
            HostState::Live => "live",
            HostState::Draining => "draining",
            HostState::Down => "down",
            HostState::Removing => "removing",
            HostState::Removed => "removed",
        }
    }

    /// The state of this word.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for any other word.
    pub fn parse(word: &str) -> Result<Self, StoreError> {
        let all = [Self::Waiting, Self::Live, Self::Draining, Self::Down, Self::Removing, Self::Removed];
        let found = all.into_iter().find(|it| it.as_str() == word);
        found.ok_or_else(|| StoreError::damaged(format!("an unknown state of a host, `{word}`")))
    }
}

/// What a raise of the log's format has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upgraded {
    /// The format in which the log was written.
    pub from: u32,
    /// The one in which it is written from now on.
    pub to: u32,
    /// The newest one of this release.
    pub newest: u32,
    /// Hosts that cannot read that one, and so keep the log in the old one.
    pub behind: Vec<HostRow>,
    /// Hosts that can, and have another release than this one.
    pub others: Vec<HostRow>,
}

/// A host, to be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRow {
    /// The host, and its present or last incarnation.
    pub daemon: DaemonId,
    /// The machine's name.
    pub name: String,
    /// The version of its Provost.
    pub version: String,
    /// How far it is on its way in or out.
    pub state: HostState,
    /// Whether it is down since its daemon was stopped in order.
    pub is_stopped: bool,
    /// How long ago its last sign of life was, in milliseconds, by the database's clock.
    pub silent_ms: u64,
    /// How many entries of the log it had not read then.
    pub behind: u64,
    /// The oldest and the newest format of entries that its release reads.
    pub formats: (u32, u32),
    /// The fingerprint of the key with which it signs; none where it has none yet.
    pub key: Option<String>,
    /// What it has joined for.
    pub role: HostRole,
    /// Whether it is the host of the state folder from which this was asked.
    pub is_here: bool,
}

/// How a host is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenOut {
    /// At once: what it held is freed, and its runs are lost.
    AtOnce,
    /// It takes no new tasks, and leaves after its last run.
    Drained,
}

/// What a host finds that joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// The hosts that are there already.
    pub hosts: Vec<HostRow>,
}

/// Why a batch is not known to be stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing of it is stored.
    #[error(transparent)]
    Failed(#[from] StoreError),
    /// The store did not answer: all of it is stored, or nothing. The next [`super::Store::begin`] tells which.
    #[error("it is not known whether the batch is stored: {0}")]
    Unknown(#[source] StoreError),
}

impl From<CommitError> for StoreError {
    fn from(err: CommitError) -> Self {
        match err {
            CommitError::Failed(err) | CommitError::Unknown(err) => err,
        }
    }
}
