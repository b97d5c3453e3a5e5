//! Verbs about passkeys. Their signatures are checked at the door.

use serde::{Deserialize, Serialize};

use crate::passkey::{Passkey, SignedWord};
use provost_base::{Json, Timestamp};

/// Put a passkey on record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AddPasskey {
    /// The passkey.
    pub passkey: Passkey,
    /// Its counter so far.
    pub counter: u32,
    /// What a known passkey has signed for it, if one has.
    pub vouched: Option<Box<SignedWord>>,
}

/// The passkey is on record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeyAdded;

/// Have a passkey count no more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RevokePasskey {
    /// The credential's id, base64url.
    pub id: Box<str>,
    /// What a passkey has signed for that, unless a person says it at a terminal.
    pub signed: Option<Box<SignedWord>>,
}

/// The passkey counts no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeyRevoked;

/// Give up all passkeys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResetPasskeys {
    /// How many resets the list counts with this one.
    pub count: u64,
    /// Whether no passkey counts for a day. It is so in any case where passkeys were on record.
    pub waits: bool,
}

/// All passkeys are given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeysReset {
    /// From when passkeys count again.
    pub until: Timestamp,
}

/// Keep in mind how the list of passkeys stands. The daemon says so itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotePasskeyList {
    /// The number of the list that was taken in, if one was.
    pub number: Option<u64>,
    /// Whether the list cannot be used.
    pub is_unusable: bool,
    /// How long the daemon has run since it last said so, in milliseconds. The wait after a reset gets shorter by that.
    pub ran_ms: u64,
}

/// It is kept in mind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PasskeyListNoted;

/// Put on record that a person has signed a verb, which is carried out next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SayWord {
    /// The verb, as the own API names its path.
    pub verb: Box<str>,
    /// Its arguments; the signature covers their digest.
    pub arguments: Json,
    /// What a passkey has signed.
    pub signed: Box<SignedWord>,
}

/// The word is on record, and counts once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WordSaid;
