//! The answers of a store with several writers: the end of its log, the others' entries, and the hosts.

use std::sync::Arc;

use provost_base::{DaemonId, Digest, EntryNo, HostId, HostRole, Timestamp};
use provost_domain::{Counters, LogEntry};

use super::StoreError;

/// The end of the shared log for a daemon: the last entry that its memory has, and that entry's link of the chain.
/// A store with one writer has no log, and its head is always the default one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// The last entry; zero before the first.
    pub n: EntryNo,
    /// The entry's link of the chain.
    pub mac: Digest,
}

/// The answer to a daemon whose turn to write begins.
#[derive(Debug, Default)]
pub struct Begun {
    /// The time by the store's clock, which all its daemons use; `None` if the engine's own clock counts.
    pub now: Option<Timestamp>,
    /// The entries that others have committed since.
    pub behind: Behind,
    /// The last entry of the shared log; zero if this turn does not know it.
    pub log_end: EntryNo,
    /// The other hosts and this one, as the store has them.
    pub hosts: Vec<HostBeat>,
    /// Whether the server writes another history than at the last commit, as after a failover. Numbers may have
    /// been lost with the first history, so this turn skips some.
    pub moved: bool,
    /// The numbers up to which another daemon has skipped without an entry. This turn goes on above them.
    pub skipped: Option<Counters>,
}

/// The entries committed after a daemon's head.
#[derive(Debug, Default)]
pub enum Behind {
    /// There are no new entries.
    #[default]
    Nothing,
    /// These entries, in order and without a gap, all of whose links hold.
    Entries(Vec<LogEntry>),
    /// More than the log still has, or than can be given at once: memory must be loaded again.
    TooFar,
}

/// What a portion of the index has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Indexed {
    /// Nothing.
    All,
    /// There may be further events.
    More,
    /// Another daemon has indexed this portion at the same time, and may go on.
    ByAnother,
}

impl Indexed {
    /// Returns what a portion has left after which there may be further events, or are none.
    pub(super) fn left(is_more: bool) -> Self {
        if is_more { Self::More } else { Self::All }
    }
}

/// The server of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerAt {
    /// Its host and port, or its socket.
    pub name: Arc<str>,
    /// The version of PostgreSQL.
    pub version: Arc<str>,
    /// The timeline that the server writes.
    pub timeline: u64,
}

/// A host as the store has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostBeat {
    /// The host, and its present incarnation.
    pub daemon: DaemonId,
    /// The state of its membership.
    pub state: HostState,
    /// The host that has asked for it to be taken out, as it has signed.
    pub asked_by: Option<HostId>,
    /// The time of its last sign of life, by the store's clock.
    pub beat: Timestamp,
    /// The oldest format of the log that it reads, and the newest one that it writes.
    pub formats: (u32, u32),
    /// The machine's name, for people.
    pub name: Box<str>,
    /// The role with which it has joined.
    pub role: HostRole,
    /// Whether it is down because its daemon was stopped in order.
    pub is_stopped: bool,
}

/// The state of a host's membership.
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
    /// A person has removed it, and its resources still have to be freed.
    Removing,
    /// It no longer takes part, for good.
    Removed,
}

impl HostState {
    /// Returns the word for it, the same in the database and for people.
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

    /// Returns the state with this word.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for any other word.
    pub fn parse(word: &str) -> Result<Self, StoreError> {
        let all = [Self::Waiting, Self::Live, Self::Draining, Self::Down, Self::Removing, Self::Removed];
        let found = all.into_iter().find(|it| it.as_str() == word);
        found.ok_or_else(|| StoreError::damaged(format!("an unknown state of a host, `{word}`")))
    }
}

/// The result of raising the log's format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upgraded {
    /// The format in which the log was written.
    pub from: u32,
    /// The format in which it is written from now on.
    pub to: u32,
    /// The newest format of this release.
    pub newest: u32,
    /// Hosts that cannot read that format, and so keep the log in the old one.
    pub behind: Vec<HostRow>,
    /// Hosts that can read it, and have another release than this one.
    pub others: Vec<HostRow>,
    /// Hosts of whose state the table of hosts says what does not count.
    pub doubted: Vec<HostRow>,
}

/// The hosts of a repository, for lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// The hosts, removed ones last.
    pub rows: Vec<HostRow>,
    /// Why the journal does not say which hosts were removed; the states are then those that this folder knew before.
    pub note: Option<Box<str>>,
}

/// A host, for lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRow {
    /// The host, and its present or last incarnation.
    pub daemon: DaemonId,
    /// The machine's name.
    pub name: String,
    /// The version of its Provost.
    pub version: String,
    /// The state of its membership that counts.
    pub state: HostState,
    /// The state in the table of hosts, if that one does not count: each login can write it, and no host that may say so has signed it.
    pub claimed: Option<HostState>,
    /// Whether it is down because its daemon was stopped in order.
    pub is_stopped: bool,
    /// The time since its last sign of life, in milliseconds, by the database's clock.
    pub silent_ms: u64,
    /// The number of log entries that it had not read then.
    pub behind: u64,
    /// The oldest and the newest format of entries that its release reads.
    pub formats: (u32, u32),
    /// The fingerprint of the key with which it signs; `None` if it has no key yet.
    pub key: Option<String>,
    /// The role with which it has joined.
    pub role: HostRole,
    /// Whether it is the host of the state folder of the caller.
    pub is_here: bool,
}

/// The way in which a host is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenOut {
    /// At once: its resources are freed, and its runs are lost.
    AtOnce,
    /// It takes no new tasks, and leaves after its last run.
    Drained,
}

/// The result of joining.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// The hosts that already take part.
    pub hosts: Vec<HostRow>,
}

/// The reason why a batch is not known to be stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing of the batch is stored.
    #[error(transparent)]
    Failed(#[from] StoreError),
    /// The store did not answer: all of the batch is stored, or nothing. The next [`super::Store::begin`] finds out.
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
