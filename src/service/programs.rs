//! Digests of the workers' executables, computed once per content.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::base::Digest;
use crate::jail::resolve_program;
use crate::system::version_of;

/// What tells one content from the next without reading it.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Stamp {
    len: u64,
    version: (u64, i64, i64),
}

#[derive(Default)]
pub(super) struct Programs(Mutex<HashMap<PathBuf, (Stamp, Digest)>>);

impl Programs {
    /// The digest of an executable, or `None` when there is none to hash; starting it will say why.
    pub(super) fn digest(&self, path: &Path) -> Option<Digest> {
        let stamp = stamp(path)?;
        if let Some((known, digest)) = self.table().get(path)
            && *known == stamp
        {
            return Some(*digest);
        }
        // Hashing a large executable takes a while; nobody waits for it with the table locked.
        let digest = resolve_program(path).ok()?.digest();
        self.table().insert(path.to_owned(), (stamp, digest));
        Some(digest)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Stamp, Digest)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some(Stamp { len: meta.len(), version: version_of(&meta) })
}
