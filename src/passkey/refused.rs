//! The reason why a registration, an assertion or a transcript is refused: one variant for each check.

use provost_base::limits::{CREDENTIAL_ID_BYTES_MAX, PASSKEY_RSA_BITS_MAX, PASSKEY_RSA_BITS_MIN};

/// A check that has failed. The texts quote nothing of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// A member is not base64url without padding.
    #[error("{0} is not base64url without padding")]
    Encoding(&'static str),
    /// A member is longer than any authenticator's.
    #[error("{0} is too long")]
    TooLong(&'static str),
    /// CBOR ends before its value does.
    #[error("the authenticator's CBOR is cut off")]
    CborCut,
    /// CBOR is not in the canonical form of CTAP2: an indefinite length, a reserved or a longer form than needed.
    #[error("the authenticator's CBOR is not in canonical form")]
    CborForm,
    /// CBOR has a value of another type at this place.
    #[error("the authenticator's CBOR has a value of another type where {0} belongs")]
    CborType(&'static str),
    /// A map has a key twice.
    #[error("the authenticator's CBOR has a member twice")]
    CborTwice,
    /// The attestation object lacks a member, or has another one.
    #[error("the attestation object has other members than fmt, attStmt and authData")]
    Attestation,
    /// The key is of a kind that is not accepted.
    #[error("the key is of a kind that is not accepted; ES256, Ed25519 and RS256 are")]
    KeyKind,
    /// The key lacks a member, or has one that its kind does not have.
    #[error("the key has other members than its kind has")]
    KeyMembers,
    /// A coordinate or a modulus has another length than its kind has.
    #[error("the key has a member of another length than its kind has")]
    KeyLength,
    /// An RSA key is too small or too large.
    #[error("an RSA key has {PASSKEY_RSA_BITS_MIN} to {PASSKEY_RSA_BITS_MAX} bits, and a small odd exponent")]
    KeySize,
    /// The authenticator data end early, or have bytes behind their end.
    #[error("the authenticator data has another length than its flags say")]
    DataLength,
    /// Client data are not the JSON that browsers write.
    #[error("the client data are not JSON with a type, a challenge and an origin")]
    ClientData,
    /// Client data are from the other ceremony.
    #[error("the client data are of another ceremony")]
    Type,
    /// Client data answer another challenge.
    #[error("the challenge is another one")]
    Challenge,
    /// The page is not one of Provost's: scheme, host and port are compared.
    #[error("the page's origin is none of those that are configured (passkeys.origins)")]
    Origin,
    /// The page was shown within another page.
    #[error("the page was shown in a frame of another page")]
    Framed,
    /// The credential belongs to another name.
    #[error("the passkey was made for another name (RP id)")]
    RpId,
    /// The authenticator was not touched.
    #[error("the authenticator says that no user was present")]
    NotPresent,
    /// The authenticator has not verified its user.
    #[error(
        "the authenticator has not verified its user; set up a PIN, a fingerprint or a screen lock for it"
    )]
    NotVerified,
    /// A registration without a credential.
    #[error("the authenticator data hold no new credential")]
    NoCredential,
    /// An assertion with a credential in it.
    #[error("the authenticator data of an assertion hold a new credential")]
    NewCredential,
    /// The credential's id is empty or too long.
    #[error("the credential's id has no byte, or more than {CREDENTIAL_ID_BYTES_MAX}")]
    CredentialId,
    /// The flags say that the credential is backed up, but cannot be.
    #[error("the authenticator says that the passkey is backed up, and that it cannot be")]
    BackupState,
    /// The credential could be backed up at its registration and cannot be now, or vice versa.
    #[error("whether the passkey can be backed up has changed since its registration")]
    BackupChanged,
    /// The signature does not match.
    #[error("the signature is not the passkey's over this request")]
    Signature,
    /// The counter is not larger than before.
    #[error("the passkey's counter went back: a copy of the key may be in use")]
    Counter,
    /// The transcript is not in the form that is signed.
    #[error("the transcript is not one of provost-word-v1 in canonical form")]
    Transcript,
}
