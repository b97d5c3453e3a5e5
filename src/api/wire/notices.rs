//! The types for the addresses that get notices.

use serde::{Deserialize, Serialize};

/// An address of the configuration, in the answer to `GET /about`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NoticeTarget {
    /// Its name in the configuration.
    pub name: String,
    /// `webhook`, `ntfy`, `slack`, `discord` or `mattermost`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Scheme, host and port; the name of the secret that holds them; empty if the entry is invalid.
    pub host: String,
    /// The kinds of notices that it gets.
    pub kinds: Vec<String>,
    /// `facts` or `full`.
    pub detail: String,
    /// Whether it gets notices.
    pub enabled: bool,
    /// The reason why it cannot get notices.
    pub broken: Option<String>,
    /// The number of owed notices.
    pub owed: usize,
    /// When the oldest of these was made.
    pub owed_since: Option<String>,
    /// The last attempt since the daemon's start.
    pub last: Option<NoticeAttempt>,
}

/// An attempt to deliver to an address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoticeAttempt {
    /// When it was made.
    pub at: String,
    /// Whether a notice was delivered.
    pub delivered: bool,
    /// The address's answer, or the reason why there is none.
    pub says: String,
}

/// `POST /test-notice`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TestNotice {
    /// The name of the address in the configuration.
    pub name: String,
}

/// Answer to [`TestNotice`], if the sample was delivered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoticeTested {
    /// The name of the address in the configuration.
    pub name: String,
    /// The address's answer, as text.
    pub says: String,
}
