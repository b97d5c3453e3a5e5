//! Signatures of hosts that are checked together: a host that was away has to check one for each entry that it has missed, and a batch
//! takes a quarter of the time.
//!
//! The result says only that all of them hold. If it is no, the caller checks each by itself, by [`HostKey::has_signed`], which decides.
//! A host can make signatures with its own key for which the two checks differ, by parts of small order; no other host can.

use std::num::NonZero;
use std::ops::Range;
use std::thread::{Builder, ScopedJoinHandle, available_parallelism};

use ed25519_dalek::{Signature, VerifyingKey, verify_batch};

use super::host_keys::HostKey;
use provost_base::limits::{SIGNATURE_THREADS_MAX, SIGNATURES_PER_THREAD_MIN};

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

    /// Checks whether the owner of each key has signed its text, on several threads if there are many.
    pub(super) fn all_hold(&self) -> bool {
        let threads = available_parallelism().map_or(1, NonZero::get).min(SIGNATURE_THREADS_MAX);
        let size = self.texts.len().div_ceil(threads).max(SIGNATURES_PER_THREAD_MIN);
        let mut parts: Vec<Range<usize>> = (0..self.texts.len())
            .step_by(size)
            .map(|from| from..(from + size).min(self.texts.len()))
            .collect();
        let Some(own) = parts.pop() else { return true };
        std::thread::scope(|scope| {
            let beside: Vec<_> = parts
                .into_iter()
                .map(|part| {
                    let spawned = Builder::new().spawn_scoped(scope, {
                        let part = part.clone();
                        move || self.part_holds(part)
                    });
                    (part, spawned)
                })
                .collect();
            let own = self.part_holds(own);
            // What no thread could be made for is checked here. Each thread is joined, since the scope panics for one that has panicked and is not.
            let hold = |(part, spawned): (_, std::io::Result<ScopedJoinHandle<'_, bool>>)| match spawned {
                Ok(thread) => thread.join().unwrap_or(false),
                Err(_) => self.part_holds(part),
            };
            beside.into_iter().map(hold).fold(own, |all, it| all & it)
        })
    }

    fn part_holds(&self, part: Range<usize>) -> bool {
        let texts: Vec<&[u8]> = self.texts[part.clone()].iter().map(Vec::as_slice).collect();
        verify_batch(&texts, &self.signatures[part.clone()], &self.keys[part]).is_ok()
    }
}
