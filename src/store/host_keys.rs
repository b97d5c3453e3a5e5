//! Keys of hosts: each daemon of a shared store signs its entries, and knows the keys of the others.
//!
//! ```text
//!   a host signs each entry:  label || print of the journal's key || n || link of the entry || last event || its link
//!   [made, with the first start] --enrolled in the database--> [counts] --removed--> [counts no more, for ever]
//! ```
//! All hosts know the key of the journal's chain, so an intact chain proves that a member has written it, but not which one. The signature
//! says which one. A daemon keeps its knowledge of the others in its state folder (`hosts.json`): a key that it has taken in once does not
//! become another one later, even if the database says so. A file of `provost host export-key` brings that knowledge to a new host, with an
//! invitation: a separate key that the exporting host has signed, and that signs the new host's key.

use std::path::Path;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::journal::JournalHead;
use super::key_file::{bytes, hex};
use super::{StoreError, codec, files};
use provost_base::limits::HOST_STATE_BYTES_MAX;
use provost_base::{Digest, EntryNo, EventSeq, HostId, HostRole};

/// This host's key, in the state folder.
pub(super) const HOST_KEY: &str = "host.key";
/// The file with the known hosts, in the same folder.
pub(super) const KNOWN_HOSTS: &str = "hosts.json";

const ENTRY: &[u8] = b"provost-entry-signature-v1";
const INVITED: &[u8] = b"provost-host-invitation-v1";
const JOINS: &[u8] = b"provost-host-joins-v1";
const OWNS: &[u8] = b"provost-host-owns-key-v1";
/// The number of hexadecimal digits of a key's SHA-256 that people are shown.
const FINGERPRINT_DIGITS: usize = 16;

/// A public key of Ed25519.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct HostKey([u8; 32]);

impl HostKey {
    /// Returns the text by which people compare keys.
    pub(super) fn fingerprint(&self) -> String {
        Digest::of(&self.0).to_string().chars().take(FINGERPRINT_DIGITS).collect()
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks whether the key's owner has signed this text.
    pub(super) fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(text, signature).is_ok()
    }
}

impl From<HostKey> for String {
    fn from(key: HostKey) -> String {
        hex(&key.0)
    }
}

impl TryFrom<String> for HostKey {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "a host's key is 64 hexadecimal digits";
        bytes(&text).and_then(|it| it.try_into().ok()).map(Self).ok_or(wrong)
    }
}

/// A signature, as files and rows keep it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Signature(Vec<u8>);

impl From<Signature> for String {
    fn from(it: Signature) -> String {
        hex(&it.0)
    }
}

impl TryFrom<String> for Signature {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        bytes(&text).map(Self).ok_or("a signature is hexadecimal digits")
    }
}

/// A key that signs.
pub(super) struct Signer {
    seed: zeroize::Zeroizing<[u8; 32]>,
    pair: Ed25519KeyPair,
}

impl Signer {
    /// Makes a new key.
    ///
    /// # Errors
    /// [`StoreError::Key`] if there is no randomness.
    pub(super) fn make() -> Result<Self, StoreError> {
        let mut seed = zeroize::Zeroizing::new([0; 32]);
        getrandom::fill(&mut seed[..])
            .map_err(|err| StoreError::Key(format!("no random numbers: {err}").into()))?;
        Self::of(seed)
    }

    fn of(seed: zeroize::Zeroizing<[u8; 32]>) -> Result<Self, StoreError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed[..])
            .map_err(|err| StoreError::Key(format!("a host's key cannot be used: {err}").into()))?;
        Ok(Self { seed, pair })
    }

    /// Reads a key from its hexadecimal digits.
    ///
    /// # Errors
    /// [`StoreError::Key`] for any other text.
    pub(super) fn read(seed: &str) -> Result<Self, StoreError> {
        let seed = bytes(seed).and_then(|it| <[u8; 32]>::try_from(it).ok());
        let seed = seed.ok_or_else(|| StoreError::Key("a host's key is 64 hexadecimal digits".into()))?;
        Self::of(zeroize::Zeroizing::new(seed))
    }

    /// Returns the text from which [`Signer::read`] makes the key again.
    pub(super) fn seed(&self) -> String {
        hex(&self.seed[..])
    }

    pub(super) fn key(&self) -> HostKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.pair.public_key().as_ref());
        HostKey(key)
    }

    pub(super) fn sign(&self, text: &[u8]) -> Signature {
        Signature(self.pair.sign(text).as_ref().to_vec())
    }
}

impl Signature {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Checks whether this key has signed this text.
    pub(super) fn is_of(&self, key: &HostKey, text: &[u8]) -> bool {
        key.has_signed(text, &self.0)
    }
}

/// Returns the text that a host signs for an entry: its place in the log, and the end of the journal with it.
pub(super) fn entry_text(print: &Digest, n: EntryNo, link: &Digest, journal: &JournalHead) -> Vec<u8> {
    let (n, seq) = (n.0.to_le_bytes(), journal.seq.0.to_le_bytes());
    [ENTRY, print.as_bytes(), &n, link.as_bytes(), &seq, journal.mac.as_bytes()].concat()
}

fn host_text(label: &[u8], print: &Digest, host: HostId, key: &HostKey) -> Vec<u8> {
    [label, print.as_bytes(), host.to_string().as_bytes(), &key.0].concat()
}

/// The invitation that a member host gives to a host that wants to join.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Invitation {
    /// The host that invites.
    pub(super) by: HostId,
    /// The key with which the new host proves that it was invited.
    pub(super) key: HostKey,
    /// The number of hosts that it lets in.
    pub(super) most: u32,
    /// The role with which these hosts join.
    #[serde(default, skip_serializing_if = "HostRole::is_full")]
    pub(super) role: HostRole,
    /// The inviting host's signature over the whole invitation.
    pub(super) signed: Signature,
}

impl Invitation {
    /// Makes an invitation, with the secret half of its key.
    ///
    /// # Errors
    /// [`StoreError::Key`] if there is no randomness.
    pub(super) fn make(
        print: &Digest,
        by: HostId,
        (most, role): (u32, HostRole),
        host: &Signer,
    ) -> Result<(Self, Signer), StoreError> {
        let secret = Signer::make()?;
        let key = secret.key();
        let signed = host.sign(&Self::text(print, by, (most, role), &key));
        Ok((Self { by, key, most, role, signed }, secret))
    }

    /// Checks whether the host that it names has made it.
    pub(super) fn is_of(&self, print: &Digest, by: &HostKey) -> bool {
        by.has_signed(&Self::text(print, self.by, (self.most, self.role), &self.key), &self.signed.0)
    }

    fn text(print: &Digest, by: HostId, (most, role): (u32, HostRole), key: &HostKey) -> Vec<u8> {
        let mut text = host_text(INVITED, print, by, key);
        text.extend_from_slice(&most.to_le_bytes());
        // Invitations from before there were roles end here, and let full hosts in.
        if !role.is_full() {
            text.extend_from_slice(role.as_str().as_bytes());
        }
        text
    }
}

/// A host's key, as it was enrolled.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Enrolled {
    pub(super) key: HostKey,
    /// The signature with that key, which proves that the host has the secret half.
    owns: Signature,
    /// The invitation, and the signature of the invitation's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) invited: Option<(Invitation, Signature)>,
}

impl Enrolled {
    pub(super) fn of(
        print: &Digest,
        host: HostId,
        own: &Signer,
        invited: Option<(&Invitation, &Signer)>,
    ) -> Self {
        let key = own.key();
        let owns = own.sign(&host_text(OWNS, print, host, &key));
        let invited = invited
            .map(|(it, secret)| (Invitation::clone(it), secret.sign(&host_text(JOINS, print, host, &key))));
        Self { key, owns, invited }
    }

    /// Returns the role for which the host was invited.
    pub(super) fn role(&self) -> HostRole {
        self.invited.as_ref().map(|it| it.0.role).unwrap_or_default()
    }

    /// Checks whether the record has the signatures that only this host can make, and, if it was invited, only with its invitation.
    pub(super) fn holds(&self, print: &Digest, host: HostId) -> bool {
        let owns = self.key.has_signed(&host_text(OWNS, print, host, &self.key), &self.owns.0);
        let joins = |(it, signed): &(Invitation, Signature)| {
            it.key.has_signed(&host_text(JOINS, print, host, &self.key), &signed.0)
        };
        owns && self.invited.as_ref().is_none_or(joins)
    }
}

/// A place in the log, and the last event there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct At {
    pub(super) n: EntryNo,
    pub(super) event: EventSeq,
}

/// A host that is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KnownHost {
    pub(super) host: HostId,
    pub(super) key: HostKey,
    /// The key of its invitation, which lets in a limited number of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) invited_with: Option<HostKey>,
    /// The role that its invitation gives it.
    #[serde(default, skip_serializing_if = "HostRole::is_full")]
    pub(super) role: HostRole,
    /// The entry with which it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gone: Option<At>,
}

/// The knowledge of a state folder about the hosts.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct KnownHosts {
    /// The repository's name in the database.
    pub(super) name: String,
    /// This host; `None` before its first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) here: Option<HostId>,
    /// The number of the repository in the database; `None` before it is known. Its name can be given to another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repo: Option<i32>,
    /// The place from which everything must be signed; `None` before it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<At>,
    /// The place up to which the signatures were checked.
    pub(super) checked: At,
    pub(super) hosts: Vec<KnownHost>,
    /// An entry that has not proved its content, with the defect: no start goes past it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<(EntryNo, String)>,
    /// The invitation with which this host may join, and the secret half of its key; dropped at the first start after it has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) invitation: Option<(Invitation, String)>,
}

impl KnownHosts {
    /// Reads the folder's knowledge; `None` if the file belongs to another repository, or to another host that the folder was of.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn of(dir: &Path, name: &str, host: HostId) -> Result<Option<Self>, StoreError> {
        let is_ours = |it: &Self| it.name == name && it.here.is_none_or(|it| it == host);
        Ok(Self::read(dir)?.filter(is_ours))
    }

    /// The whole file of a folder; `None` where the folder has none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, StoreError> {
        let Some(text) = files::private_text(dir, KNOWN_HOSTS, HOST_STATE_BYTES_MAX)? else {
            return Ok(None);
        };
        serde_json::from_str(&text).map(Some).map_err(|err| unfit(dir, KNOWN_HOSTS, &err))
    }

    /// # Errors
    /// If the file cannot be written.
    pub(super) fn keep(&self, dir: &Path) -> Result<(), StoreError> {
        files::put_private(dir, KNOWN_HOSTS, codec::text(self)?.as_bytes())
    }

    pub(super) fn get(&self, host: HostId) -> Option<&KnownHost> {
        self.hosts.iter().find(|it| it.host == host)
    }

    /// Returns the role with which a host was let in; an unknown host may not decide anything.
    pub(super) fn role_of(&self, host: HostId) -> HostRole {
        self.get(host).map_or(HostRole::Worker, |it| it.role)
    }
}

/// A host's own key in its file.
#[derive(Serialize, Deserialize)]
struct OwnKey {
    host: HostId,
    seed: String,
}

/// Returns the key of this host, if the folder has it; a key of another host does not count.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn own_key(dir: &Path, host: Option<HostId>) -> Result<Option<(HostId, Signer)>, StoreError> {
    let Some(text) = files::private_text(dir, HOST_KEY, HOST_STATE_BYTES_MAX)? else { return Ok(None) };
    let text = zeroize::Zeroizing::new(text);
    let own: OwnKey = serde_json::from_str(&text).map_err(|err| unfit(dir, HOST_KEY, &err))?;
    let is_its = host.is_none_or(|it| it == own.host);
    let seed = zeroize::Zeroizing::new(own.seed);
    if is_its { Signer::read(&seed).map(|it| Some((own.host, it))) } else { Ok(None) }
}

/// Makes a key for this host, and replaces a key of another host.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn make_own_key(dir: &Path, host: HostId) -> Result<Signer, StoreError> {
    let own = Signer::make()?;
    let text = zeroize::Zeroizing::new(codec::text(&OwnKey { host, seed: own.seed() })?);
    files::put_private(dir, HOST_KEY, text.as_bytes())?;
    Ok(own)
}

fn unfit(dir: &Path, file: &str, err: &serde_json::Error) -> StoreError {
    StoreError::Unsafe {
        path: dir.join(file).display().to_string().into(),
        why: format!("cannot be read ({err}): bring it back from a backup of the state folder").into(),
    }
}
