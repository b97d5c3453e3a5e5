//! The kept content of artifacts: the old content of their files, and new contents that are not text.

use std::collections::BTreeMap;

use super::Provost;
use provost_base::limits::ARTIFACT_BYTES_MAX;
use provost_base::{Digest, RepoPath, TaskId};
use provost_domain::artifact::place_of;
use provost_store::Artifacts;
use provost_workspace::change_plan::{Check, FileWrite, NOT_KEPT, Want};
use provost_workspace::file::plain_mode;

/// The reason why an artifact that an editor has changed or added is not written.
const NOT_OURS: &str = "no run here has left it exactly so, and a6s.apply_unknown is false";

/// An artifact that a run of this daemon has left, as its record says.
struct RecordedArtifact {
    kind: Box<str>,
    path: RepoPath,
    says: Digest,
    base: Option<Digest>,
    mode: Option<u32>,
    program: Option<bool>,
}

impl RecordedArtifact {
    /// Returns whether an order is for exactly the content that was kept.
    fn is_meant(&self, order: &FileWrite) -> bool {
        let says = match &order.want {
            Want::Says { bytes, .. } => Digest::of(bytes) == self.says,
            Want::Bytes | Want::Gone { .. } => true,
            Want::Kept { .. } => false,
        };
        says && self.kind == order.kind && self.path == order.path
    }
}

/// The kept contents for one call, each task's read once. May block.
pub(super) struct ArtifactStore {
    artifacts: Artifacts,
    /// Whether artifacts that no record names are accepted, too.
    unknown: bool,
    read: BTreeMap<String, BTreeMap<Box<str>, RecordedArtifact>>,
}

impl Provost {
    pub(super) fn artifact_store(&self) -> ArtifactStore {
        let unknown = self.0.applying.bounds().unknown;
        ArtifactStore { artifacts: self.artifacts(), unknown, read: BTreeMap::new() }
    }
}

impl ArtifactStore {
    fn known(&mut self, id: &str) -> Option<&RecordedArtifact> {
        let (shelf, _) = place_of(id)?;
        let artifacts = &self.artifacts;
        let read = || {
            let kept = artifacts.beside_it(id).unwrap_or_else(|err| {
                tracing::warn!(%err, "the kept artifacts cannot be read");
                None
            });
            let one = |it: provost_domain::Artifact| {
                let (path, says) = (RepoPath::parse(&it.path).ok()?, Digest::of(it.content.as_bytes()));
                let (program, mode) = (it.made_program(), it.mode);
                Some((
                    it.id,
                    RecordedArtifact { kind: it.kind, path, says, base: it.base_hash, mode, program },
                ))
            };
            kept.into_iter().flat_map(|it| it.artifacts).filter_map(one).collect()
        };
        self.read.entry(shelf.to_owned()).or_insert_with(read).get(id)
    }

    /// Adds the recorded data to an order. A caller that has given an artifact another path, or says that it was
    /// made for another base, is believed.
    ///
    /// # Errors
    /// The reason why nothing can be written.
    pub(super) fn complete(&mut self, order: &mut FileWrite) -> Result<(), String> {
        let (path, unknown) = (order.path.clone(), self.unknown);
        let known = self.known(&order.id);
        if !unknown {
            known.filter(|it| it.is_meant(order)).ok_or(NOT_OURS)?;
            // The record says for which old content the artifact was made; the caller's word is not needed.
            order.check = Check::Nothing;
        }
        let known = known.filter(|it| it.path == path).map(|it| (it.base, it.mode, it.program));
        if let Want::Bytes = order.want {
            let bytes = self.artifacts.bytes_of(&order.id).ok().flatten();
            let bytes = bytes.filter(|it| it.len() <= ARTIFACT_BYTES_MAX).ok_or(NOT_KEPT)?;
            order.want = Want::Says { bytes: bytes.into(), mode: None, program: None };
        }
        let Some((base, kept_mode, made)) = known else { return Ok(()) };
        if let Want::Says { mode, program, .. } = &mut order.want {
            *mode = mode.or(kept_mode.map(plain_mode));
            *program = made;
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

    /// Returns the task to which all these changes belong; `None` if one of them is not exactly a file of it.
    pub(super) fn task_of(&mut self, orders: &[FileWrite]) -> Option<TaskId> {
        let first = &orders.first()?.id;
        let (shelf, _) = place_of(first)?;
        let shelf = shelf.to_owned();
        for order in orders {
            place_of(&order.id).filter(|(its, _)| *its == shelf)?;
            self.known(&order.id).filter(|it| it.path == order.path)?;
        }
        self.artifacts.task_of(first).ok().flatten()
    }

    fn content(&self, id: &str, hash: Digest) -> Option<Vec<u8>> {
        self.artifacts.base_of(id).ok().flatten().filter(|it| Digest::of(it) == hash)
    }
}
