//! Addresses elsewhere that get notices, as they travel.

use serde::{Deserialize, Serialize};

/// An address of the configuration, in the answer to `GET /about`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NoticeTarget {
    /// Its name in the configuration.
    pub name: String,
    /// `webhook`, `ntfy`, `slack`, `discord` or `mattermost`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Scheme, host and port; the name of the secret that has them, or nothing where the entry is invalid.
    pub host: String,
    /// What it is told.
    pub kinds: Vec<String>,
    /// `facts` or `full`.
    pub detail: String,
    /// Whether it is to get notices.
    pub enabled: bool,
    /// Why it cannot get notices.
    pub broken: Option<String>,
    /// How many notices it is owed.
    pub owed: usize,
    /// When the oldest of these was made.
    pub owed_since: Option<String>,
    /// How the last attempt went, since the daemon's start.
    pub last: Option<NoticeAttempt>,
}

/// One attempt at an address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoticeAttempt {
    /// When it was made.
    pub at: String,
    /// Whether a notice was delivered.
    pub delivered: bool,
    /// What the address has answered, or why it has not, in words.
    pub says: String,
}

/// `POST /test-notice`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TestNotice {
    /// The name of the address in the configuration.
    pub name: String,
}

/// Answer to [`TestNotice`], where the sample was delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoticeTested {
    /// The name of the address in the configuration.
    pub name: String,
    /// What it has answered, in words.
    pub says: String,
}
