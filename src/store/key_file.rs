//! The journal's key on its way to another host: sealed in a file with an invitation, under a code that goes another way.
//!
//! ```text
//!   code: 25 letters and digits, 125 random bits    key of the seal = HKDF-SHA256(label, code)
//!   sealed = ChaCha20-Poly1305(key of the seal, nonce 0, the journal's key, an invitation and the keys of the hosts;
//!                              bound to the repository's name and the key's print)
//! ```
//! A code is made for one file, so the nonce is used once. Who has the file without the code has nothing; the code without the file
//! is nothing either. The file shows the repository's name and the key's print, which the database has, too.

use std::fmt::Write as _;
use std::path::Path;

use ring::{aead, hkdf};
use serde::{Deserialize, Serialize};

use super::host_keys::{self, Invitation, KnownHosts};
use super::journal::Key;
use super::{StoreError, codec, files};
use provost_base::limits::HOST_KEY_BYTES_MAX;
use provost_base::{Digest, Secret};

/// Letters and digits of a code, without those that are mistaken for others.
const SIGNS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const CODE_SIGNS: usize = 25;
const LABEL: &[u8] = b"provost-journal-key-file-v2";

/// The form of the file.
const FORM: u32 = 2;

/// The content of a file, and the code that opens it.
pub struct SealedKey {
    /// The file's text.
    pub text: String,
    /// The code, in groups of five signs.
    pub code: Secret,
}

#[derive(Serialize, Deserialize)]
struct Content {
    /// The form of this file.
    provost_journal_key: u32,
    name: String,
    print: String,
    sealed: String,
}

/// What is sealed.
#[derive(Serialize, Deserialize)]
struct Given {
    /// The journal's key, as hexadecimal digits.
    key: String,
    /// What the exporting host knows of the hosts, with the invitation.
    known: KnownHosts,
}

/// Seals the journal's key of a state folder for a host that is to join the repository of this name, with an invitation for `most` hosts and the keys
/// of those that are known here.
///
/// # Errors
/// [`StoreError::Key`] where there is no key, no host's key, or no randomness.
pub fn seal_key(dir: &Path, name: &str, most: u32) -> Result<SealedKey, StoreError> {
    let none = || {
        StoreError::Key("this state folder has no journal key yet: start the daemon once: provost up".into())
    };
    let secret = files::journal_key(dir)?.ok_or_else(none)?;
    let print = Key::new(&secret).fingerprint();
    let given = zeroize::Zeroizing::new(codec::text(&given((dir, name, most), &secret, &print)?)?);
    let print = print.to_string();
    let mut bits = [0; CODE_SIGNS];
    getrandom::fill(&mut bits).map_err(|err| StoreError::Key(format!("no random numbers: {err}").into()))?;
    let signs: String = bits.iter().map(|it| char::from(SIGNS[usize::from(it % 32)])).collect();
    let mut sealed = given.as_bytes().to_vec();
    seal_of(&signs)?
        .seal_in_place_append_tag(nonce(), aead::Aad::from(bound_to(name, &print)), &mut sealed)
        .map_err(|_| StoreError::Key("the key cannot be sealed".into()))?;
    let content = Content { provost_journal_key: FORM, name: name.into(), print, sealed: hex(&sealed) };
    let groups: Vec<&str> = (0..CODE_SIGNS).step_by(5).map(|at| &signs[at..at + 5]).collect();
    Ok(SealedKey { text: codec::text(&content)?, code: Secret::new(groups.join("-").into_bytes()) })
}

fn given(
    (dir, name, most): (&Path, &str, u32),
    secret: &Secret,
    print: &Digest,
) -> Result<Given, StoreError> {
    let none = || {
        StoreError::Key(
            "this host has no key yet, with which it would invite: start its daemon once: provost up".into(),
        )
    };
    let (host, own) = host_keys::own_key(dir, None)?.ok_or_else(none)?;
    let known = KnownHosts::of(dir, name, host)?.ok_or_else(none)?;
    let (invitation, with) = Invitation::make(print, host, most, &own)?;
    let invitation = Some((invitation, with.seed()));
    Ok(Given { key: hex(secret.expose()), known: KnownHosts { here: None, invitation, ..known } })
}

/// Opens such a file with its code, for the repository of this name. Spaces, dashes and upper case in the code do not matter.
///
/// # Errors
/// [`StoreError::Key`], with what does not fit.
pub(super) fn open_key(text: &str, code: &str, name: &str) -> Result<(Secret, KnownHosts), StoreError> {
    let wrong = |why: String| StoreError::Key(why.into());
    let no_file = || wrong("this is no file that `provost host export-key` has written".into());
    if text.len() as u64 > HOST_KEY_BYTES_MAX {
        return Err(no_file());
    }
    let content: Content = serde_json::from_str(text).map_err(|_| no_file())?;
    if content.provost_journal_key != FORM {
        return Err(wrong(
            "another release of Provost has written this file: install the one that the other host has, on both, and export the key again".into(),
        ));
    }
    if content.name != name {
        let other = &content.name;
        return Err(wrong(format!(
            "the file is for the repository {other:?}, and `[store] name` is {name:?}"
        )));
    }
    let signs: String = code.chars().filter(|it| !it.is_whitespace() && *it != '-').collect();
    let bad_code = || {
        wrong(
            "the code does not open this file: it has 25 letters and digits, and fits one file alone".into(),
        )
    };
    let mut sealed = bytes(&content.sealed).ok_or_else(no_file)?;
    let opened = seal_of(&signs.to_ascii_lowercase())?
        .open_in_place(nonce(), aead::Aad::from(bound_to(name, &content.print)), &mut sealed)
        .map_err(|_| bad_code())?;
    let given: Given = serde_json::from_slice(opened).map_err(|_| no_file())?;
    let secret = Secret::new(bytes(&given.key).ok_or_else(no_file)?);
    match Key::new(&secret).fingerprint().to_string() == content.print && given.known.name == name {
        true => Ok((secret, given.known)),
        false => Err(no_file()),
    }
}

fn seal_of(signs: &str) -> Result<aead::LessSafeKey, StoreError> {
    let failed = |_| StoreError::Key("the code gives no key".into());
    let mut bytes = [0; 32];
    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, LABEL).extract(signs.as_bytes());
    prk.expand(&[LABEL], &aead::CHACHA20_POLY1305).and_then(|it| it.fill(&mut bytes)).map_err(failed)?;
    aead::UnboundKey::new(&aead::CHACHA20_POLY1305, &bytes).map(aead::LessSafeKey::new).map_err(failed)
}

/// Each key of a seal is used once.
fn nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN])
}

fn bound_to(name: &str, print: &str) -> Vec<u8> {
    [LABEL, b"\0", name.as_bytes(), b"\0", print.as_bytes()].concat()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, it| {
        // Writing into a text does not fail.
        let _ = write!(text, "{it:02x}");
        text
    })
}

pub(super) fn bytes(hex: &str) -> Option<Vec<u8>> {
    let is_hex = hex.len().is_multiple_of(2) && hex.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then(|| {
        (0..hex.len()).step_by(2).filter_map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
    })
}
