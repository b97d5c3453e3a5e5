//! Bounds of passkeys: what authenticators and browsers send, and how much of it is open at a time.

/// The longest id of a credential, in bytes; WebAuthn's own bound.
pub const CREDENTIAL_ID_BYTES_MAX: usize = 1023;

/// The longest authenticator data, in bytes: an id, an RSA key of 8192 bits, and room for extensions.
pub const AUTHENTICATOR_DATA_BYTES_MAX: usize = 8 << 10;

/// The longest client data, in bytes. Browsers write some 200, with a challenge, an origin and additions of their own.
pub const CLIENT_DATA_BYTES_MAX: usize = 8 << 10;

/// The longest signature, in bytes: RSA with 8192 bits.
pub const PASSKEY_SIGNATURE_BYTES_MAX: usize = 1024;

/// The longest attestation object, in bytes: authenticator data with a statement that is ignored.
pub const ATTESTATION_BYTES_MAX: usize = 32 << 10;

/// The smallest modulus of an RSA key, in bits: Windows Hello makes these, and smaller ones are within reach of attackers.
pub const PASSKEY_RSA_BITS_MIN: usize = 2048;

/// The largest modulus of an RSA key, in bits; a larger one takes too long to check.
pub const PASSKEY_RSA_BITS_MAX: usize = 8192;

/// The longest name of a passkey, in bytes: lists show it beside a date.
pub const PASSKEY_NAME_BYTES_MAX: usize = 64;

/// The longest note that is signed, in bytes: the journal keeps it with the signature.
pub const SIGNED_NOTE_BYTES_MAX: usize = 2_000;

/// The longest arguments of a verb that is signed, in bytes: the journal keeps them with the signature.
pub const SIGNED_VERB_BYTES_MAX: usize = 8 << 10;

/// Passkeys of one person; the browser gets all of their ids with each request.
pub const PASSKEYS_MAX: usize = 32;

/// Challenges that wait for their signature. The oldest gives way, and costs its owner a second try.
pub const CHALLENGES_MAX: usize = 64;

/// The time within which a challenge may be answered, in milliseconds: a person reads, and fetches the key.
pub const CHALLENGE_MS_MAX: u64 = 120_000;

/// Challenges that one process gets in a minute.
pub const CHALLENGES_PER_MINUTE_MAX: usize = 30;

/// Signatures that one process has checked in a minute, good or bad.
pub const WORDS_PER_MINUTE_MAX: usize = 10;

/// The time for which a code for a new passkey is valid, in milliseconds: it is typed from one window into another.
pub const PASSKEY_CODE_MS_MAX: u64 = 300_000;

/// The time for which a new passkey waits for a known one to sign for it at another page, in milliseconds: a person
/// goes from a phone to a desk.
pub const PASSKEY_HELD_MS_MAX: u64 = 600_000;

/// Wrong codes after which the right one is invalid.
pub const PASSKEY_CODE_TRIES_MAX: u32 = 5;

/// The time since an agent's last sign of life that has to pass before a first passkey is added, in seconds.
pub const PASSKEY_QUIET_S: u64 = 60;

/// The time after a reset of all passkeys for which none counts, in seconds: a day, so that their owner hears of it.
pub const PASSKEYS_RESET_S: u64 = 24 * 60 * 60;

/// Revoked passkeys that are remembered, so that none of them comes back.
pub const PASSKEYS_REVOKED_MAX: usize = 256;

/// Revoked passkeys that the list remembers, so that a daemon that did not run learns of them.
pub const PASSKEYS_LISTED_REVOKED_MAX: usize = 32;

/// The interval at which the daemon notes its running time while a reset waits, in seconds: the most that a restart costs.
pub const PASSKEY_WAIT_NOTE_S: u64 = 60;

/// By how much the clock has to be ahead of the daemon's running time to be reported, in milliseconds.
pub const PASSKEY_LEAP_MS_MIN: u64 = 300_000;

/// The longest exponent of an RSA key, in bytes; 65537 has three.
pub const PASSKEY_RSA_EXPONENT_BYTES_MAX: usize = 4;

/// The longest word for a transport of an authenticator, in bytes.
pub const PASSKEY_TRANSPORT_BYTES_MAX: usize = 32;

/// Transports that are kept of one passkey.
pub const PASSKEY_TRANSPORTS_MAX: usize = 8;
