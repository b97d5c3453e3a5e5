//! The journal's key on its way to another host: sealed in a file with an invitation, under a code that goes another way.
//!
//! ```text
//!   code: 25 letters and digits, 125 random bits    key of the seal = HKDF-SHA256(label, code)
//!   sealed = ChaCha20-Poly1305(key of the seal, nonce 0, the journal's key, an invitation and the keys of the hosts;
//!                              bound to the repository's name and the key's print)
//! ```
//! A code is made for one file, so the nonce is used once. The file without the code reveals nothing, and neither does the
//! code without the file. The file shows the repository's name and the key's print, which the database has, too.

use std::fmt::Write as _;
use std::path::Path;

use ring::{aead, hkdf};
use serde::{Deserialize, Serialize};

use super::host_keys::{self, Invitation, KnownHosts};
use super::journal::Key;
use super::{StoreError, codec, files};
use provost_base::limits::HOST_KEY_BYTES_MAX;
use provost_base::{Digest, HostRole, Secret};

/// The letters and digits of a code, without those that are easily confused.
const SIGNS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const CODE_SIGNS: usize = 25;
const LABEL: &[u8] = b"provost-journal-key-file-v2";

/// The version of the file's form.
const FORM: u32 = 2;

/// The content of a file, and the code that opens it.
pub struct SealedKey {
    /// The file's text.
    pub text: String,
    /// The code, in groups of five signs.
    pub code: Secret,
}

/// The content of an invitation: the repository, and the machines that it lets in.
pub struct Invite<'a> {
    /// The repository's name in the database.
    pub name: &'a str,
    /// The number of machines.
    pub most: u32,
    /// The role with which they join.
    pub role: HostRole,
    /// The way to the database and the repository, if the file contains it.
    pub way: Option<RepositoryRoute>,
}

/// The way of an invited machine to the database and the repository.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RepositoryRoute {
    /// The address of the database, without a password.
    pub url: Box<str>,
    /// The authorities of its certificate, in PEM; without them, the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<Box<str>>,
    /// The address from which git clones the repository, if the inviting machine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<Box<str>>,
}

/// The content of a file, for a person with its code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invited {
    /// The repository's name in the database.
    pub name: String,
    /// The role with which a machine joins.
    pub role: HostRole,
    /// The way to the database and the repository, if the file contains it.
    pub way: Option<RepositoryRoute>,
}

#[derive(Serialize, Deserialize)]
struct Content {
    /// The form of this file.
    provost_journal_key: u32,
    name: String,
    print: String,
    sealed: String,
}

/// The sealed part of a file.
#[derive(Serialize, Deserialize)]
struct Given {
    /// The journal's key, as hexadecimal digits.
    key: String,
    /// The knowledge of the exporting host about the hosts, with the invitation.
    known: KnownHosts,
    /// The way, sealed with the rest, so that only the inviting host can have set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    way: Option<RepositoryRoute>,
}

/// Seals the journal's key of a state folder for hosts that want to join the repository, with an invitation and the
/// keys of the hosts that are known here.
///
/// # Errors
/// [`StoreError::Key`] if there is no key, no host's key, or no randomness, and on a host that only works, which may not invite.
pub fn seal_key(dir: &Path, invite: Invite<'_>) -> Result<SealedKey, StoreError> {
    let name = invite.name;
    let none = || {
        StoreError::Key("this state folder has no journal key yet: start the daemon once: provost up".into())
    };
    let secret = files::journal_key(dir)?.ok_or_else(none)?;
    let print = Key::new(&secret).fingerprint();
    let given = zeroize::Zeroizing::new(codec::text(&given(dir, invite, &secret, &print)?)?);
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
    dir: &Path,
    Invite { name, most, role, way }: Invite<'_>,
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
    if !known.role_of(host).is_full() {
        return Err(StoreError::Key(
            "this machine only works, and lets no machine in: invite on a full host (`provost host list`)"
                .into(),
        ));
    }
    let (invitation, with) = Invitation::make(print, host, (most, role), &own)?;
    let invitation = Some((invitation, with.seed()));
    Ok(Given { key: hex(secret.expose()), known: KnownHosts { here: None, invitation, ..known }, way })
}

/// Returns the content of a file, for a person with its code.
///
/// # Errors
/// [`StoreError::Key`], with the part that does not fit.
pub fn open_invitation(text: &str, code: &Secret) -> Result<Invited, StoreError> {
    let code =
        std::str::from_utf8(code.expose()).map_err(|_| StoreError::Key("the code is no text".into()))?;
    let given = open(text, code, None)?;
    let role = given.known.invitation.map(|it| it.0.role).unwrap_or_default();
    Ok(Invited { name: given.known.name, role, way: given.way })
}

/// Opens such a file with its code, for the repository with this name. Spaces, dashes and upper case in the code do not matter.
///
/// # Errors
/// [`StoreError::Key`], with the part that does not fit.
pub(super) fn open_key(text: &str, code: &str, name: &str) -> Result<(Secret, KnownHosts), StoreError> {
    let given = open(text, code, Some(name))?;
    let key = bytes(&given.key).ok_or_else(|| StoreError::Key("the file has no key".into()))?;
    Ok((Secret::new(key), given.known))
}

/// Returns the sealed part of a file; if a name is given, only for the repository with that name.
fn open(text: &str, code: &str, name: Option<&str>) -> Result<Given, StoreError> {
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
    if let Some(name) = name.filter(|it| *it != content.name) {
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
        .open_in_place(nonce(), aead::Aad::from(bound_to(&content.name, &content.print)), &mut sealed)
        .map_err(|_| bad_code())?;
    let given: Given = serde_json::from_slice(opened).map_err(|_| no_file())?;
    let secret = Secret::new(bytes(&given.key).ok_or_else(no_file)?);
    match Key::new(&secret).fingerprint().to_string() == content.print && given.known.name == content.name {
        true => Ok(given),
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

/// Returns the nonce. Each key of a seal is used once.
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
