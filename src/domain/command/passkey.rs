//! Verbs about passkeys. Their signatures are checked at the door.

use serde::{Deserialize, Serialize};

use crate::passkey::{Passkey, SignedWord};
use provost_base::{Json, Timestamp};

/// Put a passkey on record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddPasskey {
    /// The new passkey.
    pub passkey: Passkey,
    /// The signature counter of the passkey so far.
    pub counter: u32,
    /// The word that a known passkey has signed for the new one, if one has.
    pub vouched: Option<Box<SignedWord>>,
}

/// The passkey is on record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeyAdded;

/// Revoke a passkey.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RevokePasskey {
    /// The credential's id, base64url.
    pub id: Box<str>,
    /// The word that a passkey has signed for this, unless a person does it at a terminal.
    pub signed: Option<Box<SignedWord>>,
}

/// The passkey is revoked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeyRevoked;

/// Give up all passkeys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResetPasskeys {
    /// The number of resets in the list, this one included.
    pub count: u64,
    /// Whether no passkey counts for a day. This always holds where passkeys were on record.
    pub waits: bool,
}

/// All passkeys are given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeysReset {
    /// The time from which passkeys count again.
    pub until: Timestamp,
}

/// Remember the state of the list of passkeys. The daemon itself submits this.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotePasskeyList {
    /// The number of the list that was taken in, if any.
    pub number: Option<u64>,
    /// Whether the list cannot be used.
    pub is_unusable: bool,
    /// The time for which the daemon has run since its last report, in milliseconds. This shortens the wait after a reset.
    pub ran_ms: u64,
}

/// The state is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeyListNoted;

/// Put on record that a person has signed a verb, which is carried out next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SayWord {
    /// The verb, as the own API names its path.
    pub verb: Box<str>,
    /// Its arguments; the signature covers their digest.
    pub arguments: Json,
    /// The word that a passkey has signed.
    pub signed: Box<SignedWord>,
}

/// The word is on record, and counts once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WordSaid;
