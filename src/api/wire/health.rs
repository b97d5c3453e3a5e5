//! The daemon's health in numbers. An unknown number is absent, and never zero.

use serde::{Deserialize, Serialize};

use super::CostRow;

/// Answer to `GET /health`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// The number of requests that wait for the engine now.
    pub queued: u64,
    /// The most requests that may wait there; further ones are refused.
    pub queued_max: u64,
    /// The number of approvals that wait for an answer.
    pub approvals: usize,
    /// The number of agents that wait for a lock.
    pub waiting_for_locks: usize,
    /// The number of tasks that are allowed and not yet with their workers.
    pub tasks_queued: usize,
    /// The number of owed notification hooks.
    pub hooks_owed: usize,
    /// The durations of commits since the start; absent if there were none.
    pub commits: Option<Spread>,
    /// The waiting times for granted locks since the start; absent if there were none.
    pub lock_waits: Option<Spread>,
    /// The size of the store, in bytes.
    pub store_bytes: Option<u64>,
    /// The free space on its disk for this user, in bytes. Unknown on Windows.
    pub disk_free_bytes: Option<u64>,
    /// The size of that disk, in bytes. Unknown on Windows.
    pub disk_bytes: Option<u64>,
    /// The usage that runs of the last 24 hours report; absent if none has reported any.
    pub used_today: Option<CostRow>,
    /// The database that holds the state; absent if the state folder does.
    pub database: Option<DatabaseAt>,
    /// The findings that a person should look at, each with a command.
    pub findings: Vec<HealthFinding>,
}

/// The connection to the database that holds the daemon's state. Unknown members are absent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseAt {
    /// The server of the last connection: its host and port, or its socket.
    pub server: Option<String>,
    /// The server's version of PostgreSQL.
    pub version: Option<String>,
    /// The timeline that it writes.
    pub timeline: Option<u64>,
    /// Since when it has accepted no writes; absent while it accepts them.
    pub away_since: Option<String>,
    /// The reason why it accepts no writes.
    pub why: Option<String>,
    /// Whether the daemon does not know now if the last writes are stored; their callers wait for up to ten seconds.
    pub unsure: bool,
    /// The greatest age of the shown data, in milliseconds; absent while the database answers in time.
    pub stale_ms: Option<u64>,
    /// The time that a write takes at present, in milliseconds: the beginning of the last turn, and the last commit; absent while that is less than a second.
    pub slow_ms: Option<u64>,
    /// The number of standbys of the server.
    pub standbys: Option<u64>,
    /// Whether a write waits for a standby before it is acknowledged.
    pub waits_for_standby: Option<bool>,
    /// The ways in which acknowledged writes could be lost, in sentences.
    pub warnings: Vec<String>,
}

/// Header of an answer that may be old, where the database does not answer the daemon: its greatest age, in milliseconds.
pub const AGE_HEADER: &str = "x-provost-age-ms";

/// A distribution of durations, each rounded up by at most a quarter.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// The number of durations.
    pub count: u64,
    /// The median, in microseconds.
    pub p50_us: u64,
    /// The 99th percentile, in microseconds.
    pub p99_us: u64,
}

/// A finding that a person should look at.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthFinding {
    /// The finding, as a sentence.
    pub says: String,
    /// The command that says more, or solves the problem.
    pub command: String,
}
