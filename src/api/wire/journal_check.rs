//! A check of the whole journal, as it goes on.

use serde::{Deserialize, Serialize};

/// Query of `GET /journal-check`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalCheckQuery {
    /// The check that the caller has seen; without it, a check begins, or the one that goes on is told of.
    pub check: Option<u64>,
    /// How long to wait for the end of that check, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// Answer to [`JournalCheckQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalCheck {
    /// Its number.
    pub check: u64,
    /// Up to which event it has come.
    pub checked: u64,
    /// The last event that there was when it began.
    pub last: u64,
    /// What it has found; absent while it goes on.
    pub found: Option<JournalFound>,
}

/// What a check has found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalFound {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// What was found, as a sentence.
    pub says: String,
    /// The first event that is wrong.
    pub first_bad: Option<u64>,
    /// How many events were checked.
    pub events: u64,
    /// The end of the chain, an anchor to keep elsewhere; absent where the chain does not hold.
    pub anchor: Option<String>,
    /// Signatures of passkeys that were checked again.
    pub signed: u64,
    /// Signatures whose passkey's event was pruned, so that they cannot be checked.
    pub without_key: u64,
    /// Passkeys that came beside known ones without the signature of one.
    pub unvouched: u64,
    /// When the check ended.
    pub at: String,
}
