//! Signatures of hosts that are checked together: a host that was away has to check one for each entry that it has missed, and a batch
//! takes a quarter of the time.
//!
//! The result says only that all of them hold. If it is no, the caller checks each by itself, by [`HostKey::has_signed`], which decides.
//! A host can make signatures with its own key for which the two checks differ, by parts of small order; no other host can.

use ed25519_dalek::{Signature, VerifyingKey, verify_batch};

use super::host_keys::HostKey;

/// Texts with their signatures.
#[derive(Default)]
pub(super) struct SignedTogether {
    /// The keys, each decompressed once.
    known: Vec<(HostKey, VerifyingKey)>,
    keys: Vec<VerifyingKey>,
    texts: Vec<Vec<u8>>,
    signatures: Vec<Signature>,
}

impl SignedTogether {
    /// Adds a text. Returns `false` if key or signature has no form that a batch can check.
    pub(super) fn add(&mut self, key: &HostKey, text: Vec<u8>, signature: &[u8]) -> bool {
        let (Some(key), Ok(signature)) = (self.key(key), Signature::from_slice(signature)) else {
            return false;
        };
        self.keys.push(key);
        self.texts.push(text);
        self.signatures.push(signature);
        true
    }

    fn key(&mut self, key: &HostKey) -> Option<VerifyingKey> {
        if let Some((_, found)) = self.known.iter().find(|(it, _)| it == key) {
            return Some(*found);
        }
        let found = VerifyingKey::from_bytes(key.as_bytes()).ok().filter(|it| !it.is_weak())?;
        self.known.push((*key, found));
        Some(found)
    }

    /// Checks whether the owner of each key has signed its text.
    pub(super) fn all_hold(&self) -> bool {
        let texts: Vec<&[u8]> = self.texts.iter().map(Vec::as_slice).collect();
        texts.is_empty() || verify_batch(&texts, &self.signatures, &self.keys).is_ok()
    }
}
