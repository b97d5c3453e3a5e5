//! One message, sealed for one browser: RFC 8291, with the content coding `aes128gcm` of RFC 8188 in one record.
//!
//! ```text
//!   salt (16) | size of records (4) | 65 | our public key of this message (65) | sealed: text, 2, zeros, tag (16)
//! ```
//! The key pair of a message is made for it and dropped with it. An observer without the browser's private key and its
//! secret learns only the length, and padding hides that.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{aead, agreement, hkdf};

use provost_base::limits::{PUSH_PAD_BYTES, PUSH_TEXT_BYTES_MAX};

/// The size of a record, as the header gives it: a push service takes no larger body.
const RECORD_BYTES: u32 = 4096;
/// Length of an uncompressed point of P-256.
const POINT_BYTES: usize = 65;
/// Length of the secret that a browser shares.
const AUTH_BYTES: usize = 16;
/// Length of a salt.
const SALT_BYTES: usize = 16;
/// The byte that ends the text of the last record, before the padding.
const LAST: u8 = 2;

/// A browser's keys.
pub struct Recipient {
    public: Vec<u8>,
    auth: Vec<u8>,
}

impl Recipient {
    /// Reads the keys of a subscription, base64url without padding, and checks that the point is on the curve.
    ///
    /// # Errors
    /// The fault of the keys, in words.
    pub fn read(p256dh: &str, auth: &str) -> Result<Self, String> {
        let bytes = |text: &str, name: &str, length: usize| {
            let read = BASE64_URL_SAFE_NO_PAD.decode(text).ok().filter(|it| it.len() == length);
            read.ok_or_else(|| format!("{name} is not {length} bytes in base64url without padding"))
        };
        let public = bytes(p256dh, "p256dh", POINT_BYTES)?;
        let auth = bytes(auth, "auth", AUTH_BYTES)?;
        let it = Self { public, auth };
        Agreed::with(&it, &SystemRandom::new()).map(|_| it)
    }
}

/// The values that both ends know of one message.
pub struct Agreed {
    /// The secret that both key pairs agree on.
    pub secret: Vec<u8>,
    /// Our public key of this message.
    pub ours: Vec<u8>,
    /// The salt of this message.
    pub salt: [u8; SALT_BYTES],
}

impl Agreed {
    /// Makes a key pair and a salt for one message.
    fn with(to: &Recipient, random: &SystemRandom) -> Result<Self, String> {
        let no_random = |_| "the system has no randomness to give".to_owned();
        let own =
            agreement::EphemeralPrivateKey::generate(&agreement::ECDH_P256, random).map_err(no_random)?;
        let ours = own.compute_public_key().map_err(no_random)?.as_ref().to_vec();
        let theirs = agreement::UnparsedPublicKey::new(&agreement::ECDH_P256, &to.public);
        let secret = agreement::agree_ephemeral(own, &theirs, <[u8]>::to_vec)
            .map_err(|_| "p256dh is no point of the curve P-256".to_owned())?;
        let mut salt = [0; SALT_BYTES];
        random.fill(&mut salt).map_err(no_random)?;
        Ok(Self { secret, ours, salt })
    }
}

/// Seals a text for a browser, padded to a multiple of [`PUSH_PAD_BYTES`].
///
/// # Errors
/// The text is too long, or the browser's keys are invalid.
pub fn seal(to: &Recipient, text: &[u8]) -> Result<Vec<u8>, String> {
    if text.len() > PUSH_TEXT_BYTES_MAX {
        return Err(format!("the text is longer than {PUSH_TEXT_BYTES_MAX} bytes"));
    }
    seal_with(to, &Agreed::with(to, &SystemRandom::new())?, text, PUSH_PAD_BYTES)
}

/// Seals a text with given keys, padded to a multiple of `block` bytes.
///
/// # Errors
/// The text does not fit into one record.
pub fn seal_with(to: &Recipient, agreed: &Agreed, text: &[u8], block: usize) -> Result<Vec<u8>, String> {
    let broken = |_| "the message cannot be sealed".to_owned();
    let info = [b"WebPush: info\0".as_slice(), &to.public, &agreed.ours];
    let ikm = derive(&to.auth, &agreed.secret, &info, 32).map_err(broken)?;
    let key = derive(&agreed.salt, &ikm, &[b"Content-Encoding: aes128gcm\0"], 16).map_err(broken)?;
    let nonce = derive(&agreed.salt, &ikm, &[b"Content-Encoding: nonce\0"], 12).map_err(broken)?;
    let mut sealed = [text, &[LAST]].concat();
    sealed.resize(sealed.len().next_multiple_of(block.max(1)), 0);
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_128_GCM, &key).map_err(broken)?);
    let nonce = aead::Nonce::try_assume_unique_for_key(&nonce).map_err(broken)?;
    key.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut sealed).map_err(broken)?;
    let length = [u8::try_from(agreed.ours.len()).unwrap_or_default()];
    let body = [&agreed.salt[..], &RECORD_BYTES.to_be_bytes(), &length, &agreed.ours, &sealed].concat();
    if body.len() > RECORD_BYTES as usize {
        return Err(format!("the message is larger than {RECORD_BYTES} bytes"));
    }
    Ok(body)
}

/// The length of a derived key, in bytes.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive(
    salt: &[u8],
    secret: &[u8],
    info: &[&[u8]],
    length: usize,
) -> Result<Vec<u8>, ring::error::Unspecified> {
    let mut derived = vec![0; length];
    let key = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    key.expand(info, Length(length))?.fill(&mut derived)?;
    Ok(derived)
}
