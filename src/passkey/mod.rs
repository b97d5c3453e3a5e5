//! Checks passkeys' signatures: the relying party's half of WebAuthn (Level 3), and the words that Provost has people sign.
//!
//! ```text
//!   word + nonce + daemon --canonical JSON--> transcript --SHA-256--> challenge --browser, authenticator--> assertion
//! ```
//! Promises: no input causes a panic, or an allocation beyond a small multiple of the input; each check that fails
//! has its own [`Refused`]; an [`Asserted`] exists only if every check has passed. The parts that browsers may
//! extend (client data, extensions of authenticators) are read leniently, and the parts that matter are compared
//! strictly. Attestation statements are not examined: no right rests on the maker of an authenticator.
//!
//! Left to others: the open nonces, the known credentials, the stored counters, and the time.
#![forbid(unsafe_code)]

mod authenticator;
mod cbor;
mod ceremony;
mod client_data;
mod key;
pub mod record;
mod refused;
mod word;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use authenticator::{Attested, AuthenticatorData};
pub use ceremony::{
    Asserted, Assertion, NewCredential, Party, Registration, StoredCredential, asserted, holds, registered,
};
pub use client_data::Ceremony;
pub use key::PublicKey;
pub use refused::Refused;
pub use word::{AnswerWord, EnrolWord, RevokeWord, Transcript, VerbWord, Word};

/// Returns bytes in the form in which they travel and are stored: base64url without padding.
pub fn text_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes the bytes of such a text.
///
/// # Errors
/// [`Refused::Encoding`] with the name of the member.
pub fn bytes_of(text: &str, member: &'static str) -> Result<Vec<u8>, Refused> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Encoding(member))
}
