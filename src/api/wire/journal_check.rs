//! The types for a check of the whole journal, and its progress.

use serde::{Deserialize, Serialize};

/// Query of `GET /journal-check`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalCheckQuery {
    /// The number of the check that the caller has seen; without it, the daemon begins a check, or reports the running one.
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
    /// The last event that was checked so far.
    pub checked: u64,
    /// The last event of the journal when the check began.
    pub last: u64,
    /// The result; absent while the check goes on.
    pub found: Option<JournalFound>,
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JournalFound {
    /// Whether the journal is intact.
    pub ok: bool,
    /// The result, as a sentence.
    pub says: String,
    /// The first defective event.
    pub first_bad: Option<u64>,
    /// The number of events that were checked.
    pub events: u64,
    /// The end of the chain, an anchor to keep elsewhere; absent if the chain is broken.
    pub anchor: Option<String>,
    /// The number of passkey signatures that were verified again.
    pub signed: u64,
    /// The number of signatures whose passkey's event was pruned, so that they cannot be verified.
    pub without_key: u64,
    /// The number of passkeys that were added beside known ones without the signature of a known one.
    pub unvouched: u64,
    /// When the check ended.
    pub at: String,
}
