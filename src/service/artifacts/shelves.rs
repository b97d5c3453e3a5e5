//! What the daemon has kept of artifacts: what their files were when they were made, and contents that are no text.

use std::collections::BTreeMap;

use super::Provost;
use super::file::plain_mode;
use super::plan::{Check, NOT_KEPT, Order, Want};
use crate::base::limits::ARTIFACT_BYTES_MAX;
use crate::base::{Digest, RepoPath};
use crate::domain::artifact::place_of;
use crate::store::Artifacts;

/// What is known of one.
struct Known {
    path: RepoPath,
    base: Option<Digest>,
    mode: Option<u32>,
}

/// The shelves of one call, each read once. May block.
pub(super) struct Shelves {
    artifacts: Artifacts,
    read: BTreeMap<String, BTreeMap<Box<str>, Known>>,
}

impl Provost {
    pub(super) fn shelves(&self) -> Shelves {
        Shelves { artifacts: self.artifacts(), read: BTreeMap::new() }
    }
}

impl Shelves {
    fn known(&mut self, id: &str) -> Option<&Known> {
        let (shelf, _) = place_of(id)?;
        let artifacts = &self.artifacts;
        let read = || {
            let kept = artifacts.beside_it(id).unwrap_or_else(|err| {
                tracing::warn!(%err, "what is kept of artifacts cannot be read");
                None
            });
            let one = |it: crate::domain::Artifact| {
                let path = RepoPath::parse(&it.path).ok()?;
                Some((it.id, Known { path, base: it.base_hash, mode: it.mode }))
            };
            kept.into_iter().flat_map(|it| it.artifacts).filter_map(one).collect()
        };
        self.read.entry(shelf.to_owned()).or_insert_with(read).get(id)
    }

    /// Adds what is known to an order. Whoever has given an artifact another path, or says that it was made for
    /// something else, is believed.
    ///
    /// # Errors
    /// Why nothing can be written.
    pub(super) fn complete(&mut self, order: &mut Order) -> Result<(), String> {
        let path = order.path.clone();
        let known = self.known(&order.id).filter(|it| it.path == path).map(|it| (it.base, it.mode));
        if let Want::Bytes = order.want {
            let bytes = self.artifacts.bytes_of(&order.id).ok().flatten();
            let bytes = bytes.filter(|it| it.len() <= ARTIFACT_BYTES_MAX).ok_or(NOT_KEPT)?;
            order.want = Want::Says { bytes: bytes.into(), mode: None };
        }
        let Some((base, kept_mode)) = known else { return Ok(()) };
        if let Want::Says { mode, .. } = &mut order.want {
            *mode = mode.or(kept_mode.map(plain_mode));
        }
        order.check = match (base, &order.check) {
            (None, Check::Nothing) => Check::Missing,
            (Some(hash), Check::Nothing) => Check::Base { hash, content: self.content(&order.id, hash) },
            (Some(base), Check::Base { hash, .. }) if base == *hash => {
                Check::Base { hash: base, content: self.content(&order.id, base) }
            }
            _ => return Ok(()),
        };
        Ok(())
    }

    fn content(&self, id: &str, hash: Digest) -> Option<Vec<u8>> {
        self.artifacts.base_of(id).ok().flatten().filter(|it| Digest::of(it) == hash)
    }
}
