//! The daemon at work in numbers, as it travels. What is not known is absent, and never zero.

use serde::{Deserialize, Serialize};

use super::CostRow;

/// Answer to `GET /health`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Requests that wait for the engine at this moment.
    pub queued: u64,
    /// How many may wait there; further ones are refused.
    pub queued_max: u64,
    /// Approvals that wait for an answer.
    pub approvals: usize,
    /// Agents that wait for a lock.
    pub waiting_for_locks: usize,
    /// Tasks that are allowed and not yet with their workers.
    pub tasks_queued: usize,
    /// Notification hooks that are owed.
    pub hooks_owed: usize,
    /// How long commits have taken since the start; absent where there was none.
    pub commits: Option<Spread>,
    /// How long agents have waited for locks that they got, since the start; absent where there was none.
    pub lock_waits: Option<Spread>,
    /// The size of the store, in bytes.
    pub store_bytes: Option<u64>,
    /// What is free on its disk for this user, in bytes. Not known on Windows.
    pub disk_free_bytes: Option<u64>,
    /// The size of that disk, in bytes. Not known on Windows.
    pub disk_bytes: Option<u64>,
    /// What runs of the last 24 hours say that they have used; absent where none has said it.
    pub used_today: Option<CostRow>,
    /// The database that has the state; absent where the state folder has it.
    pub database: Option<DatabaseAt>,
    /// What a person should look at, with the command that says more.
    pub findings: Vec<HealthFinding>,
}

/// How a database stands with the daemon whose state it has. What is not known is absent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseAt {
    /// The server that the daemon last had: its host and port, or its socket.
    pub server: Option<String>,
    /// The server's version of PostgreSQL.
    pub version: Option<String>,
    /// The timeline that it writes.
    pub timeline: Option<u64>,
    /// Since when it takes nothing; absent while it does.
    pub away_since: Option<String>,
    /// Why it takes nothing.
    pub why: Option<String>,
    /// Whether it is not known at present whether the last writes are stored; their callers wait for up to ten seconds.
    pub unsure: bool,
    /// How old what is shown may be, in milliseconds; absent while the daemon hears from the database as it should.
    pub stale_ms: Option<u64>,
    /// How many standbys the server has.
    pub standbys: Option<u64>,
    /// Whether a write waits for one of them before it is acknowledged.
    pub waits_for_standby: Option<bool>,
    /// How acknowledged writes could be lost, in sentences.
    pub warnings: Vec<String>,
}

/// Durations, rounded up by a quarter at the most.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// How many there were.
    pub count: u64,
    /// Half of them took no longer, in microseconds.
    pub p50_us: u64,
    /// 99 of a hundred took no longer, in microseconds.
    pub p99_us: u64,
}

/// Something that a person should look at.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthFinding {
    /// What it is, in a sentence.
    pub says: String,
    /// The command that says more, or mends it.
    pub command: String,
}
