//! What is to become of a file, given what it says now.

use std::sync::Arc;
use std::time::Instant;

use super::diff::merge;
use super::file::Found;
use super::record::Side;
use crate::base::{ApplyId, Digest, RepoPath};

/// What the file has to be for that, where anybody knows.
#[derive(Clone, Debug)]
pub(super) enum Check {
    /// Anything.
    Nothing,
    /// This, or what can be merged with it.
    Base { hash: Digest, content: Option<Vec<u8>> },
    /// Not there.
    Missing,
    /// Exactly this; `None` is not there.
    Exactly(Option<Digest>),
}

/// What somebody wants of a file.
#[derive(Clone, Debug)]
pub(super) enum Want {
    /// To say this.
    Says { bytes: Arc<[u8]>, mode: Option<u32> },
    /// To say what is kept of its artifact, which is no text.
    Bytes,
    /// To say what it said before an apply.
    Kept { apply: ApplyId, side: Side, at: u64 },
    /// Not to be there, nor these folders if nothing else is in them.
    Gone { sweep: Vec<RepoPath> },
}

/// One file that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The artifact's, and its type.
    pub(super) id: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) path: RepoPath,
    pub(super) want: Want,
    pub(super) check: Check,
}

impl Order {
    pub(super) fn is_removal(&self) -> bool {
        matches!(self.want, Want::Gone { .. })
    }

    /// What tells it from others.
    pub(super) fn fields(&self) -> [Vec<u8>; 3] {
        let want = match &self.want {
            Want::Says { bytes, .. } => format!("says {}", Digest::of(bytes)),
            Want::Kept { side, .. } => format!("says {}", side.digest),
            Want::Gone { .. } => "gone".to_owned(),
            Want::Bytes => "bytes".to_owned(),
        };
        let check = match &self.check {
            Check::Nothing | Check::Missing => String::new(),
            Check::Base { hash, .. } => hash.to_string(),
            Check::Exactly(it) => it.map_or("missing".to_owned(), |it| it.to_string()),
        };
        [self.path.as_str().as_bytes().to_vec(), want.into_bytes(), check.into_bytes()]
    }
}

/// What is done.
pub(super) enum Plan {
    /// Nothing: it is so already.
    Same,
    /// It says this.
    Says { bytes: Arc<[u8]>, mode: Option<u32> },
    /// It is removed.
    Gone,
}

impl Plan {
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Plan::Same)
    }
}

/// Why the content of an artifact cannot be written.
pub(super) const NOT_KEPT: &str = "its content is no text, and is not kept here";

const CHANGED: &str = "changed on disk since it was generated";

/// Decides. Both changes of a file are merged if that can be done until then.
///
/// # Errors
/// Why nothing is done.
pub(super) fn plan(
    found: Option<&Found>,
    want: &Want,
    check: &Check,
    until: Instant,
) -> Result<Plan, String> {
    let now = found.map(|it| it.digest);
    let (bytes, mode) = match want {
        Want::Bytes => return Err(NOT_KEPT.into()),
        Want::Gone { .. } if now.is_none() => return Ok(Plan::Same),
        Want::Says { bytes, .. } if now == Some(Digest::of(bytes)) => return Ok(Plan::Same),
        Want::Kept { side, .. } if now == Some(side.digest) => return Ok(Plan::Same),
        Want::Gone { .. } => (None, None),
        Want::Says { bytes, mode } => (Some(bytes.clone()), *mode),
        // Read back when it is written.
        Want::Kept { side, .. } => (Some(Arc::from([])), side.mode),
    };
    let plan = |bytes: Option<Arc<[u8]>>| match bytes {
        Some(bytes) => Plan::Says { bytes, mode: found.and_then(|it| it.mode).or(mode) },
        None => Plan::Gone,
    };
    match check {
        Check::Nothing => Ok(plan(bytes)),
        Check::Missing if found.is_none() => Ok(plan(bytes)),
        Check::Exactly(it) if *it == now => Ok(plan(bytes)),
        Check::Exactly(_) => Err("changed since it was applied".into()),
        Check::Base { hash, .. } if now == Some(*hash) => Ok(plan(bytes)),
        Check::Base { content: Some(base), .. } => {
            let both = found.zip(bytes).and_then(|(ours, theirs)| merge(base, &ours.bytes, &theirs, until));
            let merged = both.ok_or(CHANGED)?;
            let same = now == Some(Digest::of(&merged));
            Ok(if same { Plan::Same } else { plan(Some(merged.into())) })
        }
        Check::Base { content: None, .. } | Check::Missing => Err(CHANGED.into()),
    }
}
