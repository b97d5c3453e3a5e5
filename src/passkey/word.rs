//! The words that passkeys sign.
//!
//! ```text
//! challenge = SHA-256( JSON ["provost-word-v1", daemon id, nonce, { the word }] )
//! ```
//! The JSON is canonical (`base::Json`), so that a page writes the same text as the daemon: members sorted, no
//! blanks. The first element keeps a signature from meaning something elsewhere; the daemon's id keeps a word for
//! one repository from counting in another.

use serde::{Deserialize, Serialize};

use provost_base::{Digest, Json};

use crate::{Refused, bytes_of, text_of};

/// The first element of every transcript.
const DOMAIN: &str = "provost-word-v1";

/// A statement that a person signs with a passkey.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word {
    /// The answer to an approval.
    Answer(AnswerWord),
    /// A new passkey counts.
    Enrol(EnrolWord),
    /// A passkey does not count any more.
    Revoke(RevokeWord),
    /// Any other verb, with the digest of its arguments.
    Verb(VerbWord),
}

/// The answer to an approval, with everything that it depends on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerWord {
    /// The number of the approval.
    pub approval: u64,
    /// The core's digest of the waiting request.
    pub shown: Digest,
    /// The digest of the text that the page shows.
    pub view: Digest,
    /// When the approval expires, RFC 3339.
    pub expires: String,
    /// Whether the request is granted.
    pub grant: bool,
    /// The note for the asker; empty without one.
    pub note: String,
    /// The reach of the answer: `once`.
    pub scope: String,
}

/// A new passkey that is to count from now on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrolWord {
    /// The digest of its id, key and name.
    pub enrol: Digest,
}

/// A passkey that is to count no longer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeWord {
    /// Its credential id, base64url.
    pub revoke: String,
}

/// Any verb.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerbWord {
    /// The verb's name.
    pub verb: String,
    /// The digest of its arguments as canonical JSON.
    pub arguments: Digest,
}

/// A word with its place and its nonce, as it is signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transcript {
    text: Json,
    /// The id of the daemon that the word is for.
    pub daemon: String,
    /// The nonce, by which the word counts only once.
    pub nonce: [u8; 32],
    /// The signed word.
    pub word: Word,
}

impl Transcript {
    /// Makes the transcript of a word.
    pub fn new(daemon: &str, nonce: [u8; 32], word: Word) -> Self {
        let text = serde_json::json!([DOMAIN, daemon, text_of(&nonce), word]);
        Self { text: Json::from_value(&text), daemon: daemon.to_owned(), nonce, word }
    }

    /// Reads a stored transcript.
    ///
    /// # Errors
    /// [`Refused::Transcript`] if the text is not exactly the output of [`Transcript::new`].
    pub fn read(text: &str) -> Result<Self, Refused> {
        let wrong = |_| Refused::Transcript;
        let (domain, daemon, nonce, word): (String, String, String, Word) =
            serde_json::from_str(text).map_err(|_| Refused::Transcript)?;
        let nonce = bytes_of(&nonce, "the nonce")?.try_into().map_err(|_| Refused::Transcript)?;
        Json::parse(text).map_err(wrong)?;
        let read = Self::new(&daemon, nonce, word);
        if domain != DOMAIN || read.as_str() != text {
            return Err(Refused::Transcript);
        }
        Ok(read)
    }

    /// Returns the text whose digest is signed.
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the text's digest, which is the challenge.
    pub fn digest(&self) -> Digest {
        Digest::of(self.as_str().as_bytes())
    }
}
