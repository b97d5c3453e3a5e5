//! Signatures of hosts under what they leave for each other outside of the log: words between daemons, and results of runs.
//!
//! ```text
//!   seal        = HMAC(the journal's key, label || parts)
//!   signature   = Ed25519(the host's own key, label of signatures || seal)
//! ```
//! The database never has the journal's key, so a login to it alone makes no seal. All hosts have that key; the signature says which of them
//! has made this one, so a host that has turned leaves nothing in the name of another.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use super::host_keys::{self, HostKey, KNOWN_HOSTS, KnownHosts, Signer};
use super::journal::Key;
use super::{StoreError, files};
use provost_base::HostId;

/// The label of the signed text.
const SIGNED: &[u8] = b"provost-host-seal-v1";

/// The keys of a state folder by which hosts sign and are known, read when they are first needed. Blocking.
pub(super) struct HostSeals {
    state: PathBuf,
    key: OnceLock<Key>,
    own: OnceLock<(HostId, Signer)>,
    known: Mutex<CachedHosts>,
}

/// The hosts of the state folder, as its file had them when it was read last.
#[derive(Default)]
struct CachedHosts {
    /// The time of the file's last change.
    of: Option<SystemTime>,
    hosts: KnownHosts,
}

impl HostSeals {
    /// Returns the seals of this state folder's daemon.
    pub(super) fn of(state: &Path) -> Self {
        Self { state: state.to_owned(), key: OnceLock::new(), own: OnceLock::new(), known: Mutex::default() }
    }

    /// Signs these parts under a label, and returns this host with its signature.
    ///
    /// # Errors
    /// [`StoreError::Key`] where the folder lacks a key, and when one cannot be read.
    pub(super) fn sign(&self, label: &[u8], parts: &[&[u8]]) -> Result<(HostId, Vec<u8>), StoreError> {
        let (host, own) = match self.own.get() {
            Some(own) => own,
            None => {
                let missing = || StoreError::Key("the key of this host is missing".into());
                let own = host_keys::own_key(&self.state, None)?.ok_or_else(missing)?;
                self.own.get_or_init(|| own)
            }
        };
        Ok((*host, own.sign(&self.text(label, parts)?).into_bytes()))
    }

    /// Checks whether a host has signed these parts under a label. A host that was removed counts only where `also_gone` says so.
    ///
    /// # Errors
    /// As for [`HostSeals::sign`].
    pub(super) fn has_signed(
        &self,
        host: HostId,
        also_gone: bool,
        (label, parts): (&[u8], &[&[u8]]),
        signature: &[u8],
    ) -> Result<bool, StoreError> {
        let Some(key) = self.key_of(host, also_gone)? else { return Ok(false) };
        Ok(key.has_signed(&self.text(label, parts)?, signature))
    }

    fn text(&self, label: &[u8], parts: &[&[u8]]) -> Result<Vec<u8>, StoreError> {
        let key = match self.key.get() {
            Some(key) => key,
            None => {
                let missing = || StoreError::Key("the journal's key is missing".into());
                let secret = files::journal_key(&self.state)?.ok_or_else(missing)?;
                self.key.get_or_init(|| Key::new(&secret))
            }
        };
        Ok([SIGNED, key.mac(label, parts).as_bytes()].concat())
    }

    /// Returns the key of a host. The file that has it is read again when it has changed.
    fn key_of(&self, host: HostId, also_gone: bool) -> Result<Option<HostKey>, StoreError> {
        let path = self.state.join(KNOWN_HOSTS);
        let changed = std::fs::metadata(&path).and_then(|it| it.modified()).map_err(StoreError::io(&path))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.of != Some(changed) {
            *known =
                CachedHosts { of: Some(changed), hosts: KnownHosts::read(&self.state)?.unwrap_or_default() };
        }
        Ok(known.hosts.get(host).filter(|it| also_gone || it.gone.is_none()).map(|it| it.key))
    }
}
