//! The signature of a host under an entry, made outside of the product: from the key in a state folder, by the documented text.

use std::io;
use std::path::Path;

use provost_base::{Digest, HostId};
use ring::signature::Ed25519KeyPair;
use serde_json::Value;

/// A host's own key, and its host.
pub struct Own {
    /// The host.
    pub host: HostId,
    /// The key.
    pub pair: Ed25519KeyPair,
}

impl Own {
    /// The one of a state folder.
    ///
    /// # Errors
    /// When there is no key, or not in its form.
    pub fn of(state: &Path) -> io::Result<Self> {
        let it: Value = serde_json::from_str(&std::fs::read_to_string(state.join("host.key"))?)?;
        let wrong = || io::Error::other("not in the form of a host's key");
        let text = |name: &str| it[name].as_str().ok_or_else(wrong);
        let host = text("host")?.parse().map_err(io::Error::other)?;
        let seed = bytes(text("seed")?).ok_or_else(wrong)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| wrong())?;
        Ok(Self { host, pair })
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

/// The text that a host signs for an entry, and the last event up to it, each by number and link. docs/hosts.md.
pub fn to_sign(key_print: &Digest, entry: (u64, &Digest), event: (u64, &Digest)) -> Vec<u8> {
    [
        b"provost-entry-signature-v1".as_slice(),
        key_print.as_bytes(),
        &entry.0.to_le_bytes(),
        entry.1.as_bytes(),
        &event.0.to_le_bytes(),
        event.1.as_bytes(),
    ]
    .concat()
}
