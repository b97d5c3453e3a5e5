//! The types for the hosts of a shared store, and for their users.

use serde::{Deserialize, Serialize};

/// Answer to `GET /hosts`: the hosts as the daemon's last turn at the database has found them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hosts {
    /// The hosts, by their machines' names; removed ones last. Empty if the state folder has the state.
    pub hosts: Vec<Host>,
    /// The time since that turn, in milliseconds.
    pub looked_ms: u64,
}

/// A host of the repository.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Host {
    /// The host, as 32 hexadecimal digits.
    pub host: String,
    /// The number of its daemon's start.
    pub incarnation: u64,
    /// The machine's name.
    pub machine: String,
    /// `full` or `worker`.
    pub role: String,
    /// `waiting`, `live`, `draining`, `down`, `stopped`, `removing` or `removed`.
    pub state: String,
    /// The time since its last sign of life, in milliseconds.
    pub silent_ms: u64,
    /// The oldest and the newest format of log entries that its release reads.
    pub formats: (u32, u32),
    /// Whether it is the host that answers.
    pub here: bool,
}

/// The user of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct User {
    /// The host, as 32 hexadecimal digits.
    pub host: String,
    /// The user's name for people.
    pub name: String,
    /// `viewer`, `agent`, `approver` or `admin`.
    pub role: String,
    /// Whether it is the user of the host that answers.
    pub here: bool,
}

/// `POST /set-user`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetUser {
    /// The host, as 32 hexadecimal digits.
    pub host: String,
    /// The user's name for people.
    pub name: String,
    /// `viewer`, `agent`, `approver` or `admin`; if absent, the user is removed from the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}
