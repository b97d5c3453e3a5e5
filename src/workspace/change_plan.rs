//! Plans the change of a file, given its present content.

use std::sync::Arc;
use std::time::Instant;

use super::apply_record::Side;
use super::diff::merge;
use super::file::Found;
use provost_base::{ApplyId, Digest, RepoPath};

/// The required state of the file before the change.
#[derive(Clone, Debug)]
pub enum Check {
    /// Any content, or no file.
    Nothing,
    /// This version, or one that can be merged with it.
    Base {
        /// The digest of the version from which the change was made.
        hash: Digest,
        /// The content of that version, for a merge; `None` if it is not kept.
        content: Option<Vec<u8>>,
    },
    /// There must be no file.
    Missing,
    /// Exactly this content; `None` if there must be no file.
    Exactly(Option<Digest>),
}

/// The change that a caller asks for.
#[derive(Clone, Debug)]
pub enum Want {
    /// The file gets this content, and becomes a program, or ceases to be one, if the run changed that.
    Says {
        /// The new content.
        bytes: Arc<[u8]>,
        /// The permission bits of a new file.
        mode: Option<u32>,
        /// Whether the file becomes a program, or ceases to be one; `None` leaves that unchanged.
        program: Option<bool>,
    },
    /// The file gets the kept content of its artifact, which is no text.
    Bytes,
    /// The file gets the content that it had before an apply.
    Kept {
        /// The apply whose record has the bytes.
        apply: ApplyId,
        /// The file as it was before that apply.
        side: Side,
        /// The offset of the bytes in the record.
        at: u64,
        /// Whether the file becomes a program, or ceases to be one; `None` leaves that unchanged.
        program: Option<bool>,
    },
    /// The file is removed, and so are these folders if they are empty then.
    Gone {
        /// Folders that the apply had made, the outermost first.
        sweep: Vec<RepoPath>,
    },
}

impl Want {
    /// Returns whether the file is to become a program, or to cease to be one; `None` if neither was asked.
    fn program(&self) -> Option<bool> {
        match self {
            Want::Says { program, .. } | Want::Kept { program, .. } => *program,
            Want::Bytes | Want::Gone { .. } => None,
        }
    }
}

/// One file to write or to remove.
#[derive(Clone, Debug)]
pub struct FileWrite {
    /// The artifact's id.
    pub id: Box<str>,
    /// The artifact's type, as its door names it.
    pub kind: Box<str>,
    /// The file, from the repository's top.
    pub path: RepoPath,
    /// The content that the caller asks for.
    pub want: Want,
    /// The condition under which the file may be written.
    pub check: Check,
    /// The file's content at the request, and its planned content: both are covered by the approval.
    pub sides: Sides,
    /// Whether the file is a setting that runs later, has instructions for agents, or is named by a line that runs outside of every jail.
    pub runs_later: bool,
}

/// The digest before; the digest and the mode after. `None` stands for no file.
pub type Sides = (Option<Digest>, Option<(Digest, Option<u32>)>);

impl FileWrite {
    /// Checks whether the file shall be removed.
    pub fn is_removal(&self) -> bool {
        matches!(self.want, Want::Gone { .. })
    }

    /// Returns the fields by which an approval recognises the write.
    pub fn fields(&self) -> [Vec<u8>; 5] {
        let mut want = match &self.want {
            Want::Says { bytes, .. } => format!("says {}", Digest::of(bytes)),
            Want::Kept { side, .. } => format!("says {}", side.digest),
            Want::Gone { .. } => "gone".to_owned(),
            Want::Bytes => "bytes".to_owned(),
        };
        if let Some(program) = self.want.program() {
            want.push_str(if program { ", as a program" } else { ", as no program" });
        }
        let check = match &self.check {
            Check::Nothing | Check::Missing => String::new(),
            Check::Base { hash, .. } => hash.to_string(),
            Check::Exactly(it) => it.map_or("missing".to_owned(), |it| it.to_string()),
        };
        let missing = || "missing".to_owned();
        let before = self.sides.0.map_or_else(missing, |it| it.to_string());
        // The approval also covers whether the file becomes a program.
        let after = self.sides.1.map_or_else(missing, |(digest, mode)| match mode {
            Some(mode) => format!("{digest} {mode:o}"),
            None => digest.to_string(),
        });
        let mut path = self.path.as_str().as_bytes().to_vec();
        // If the file runs later now and did not when it was shown, the approval does not cover it.
        if self.runs_later {
            path.extend(b"\0runs later");
        }
        [path, want.into_bytes(), check.into_bytes(), before.into_bytes(), after.into_bytes()]
    }
}

/// The planned change of a file.
pub enum Plan {
    /// None: the file has the wanted content already.
    Same,
    /// The file gets this content.
    Says {
        /// The planned content.
        bytes: Arc<[u8]>,
        /// The file's permission bits; `None` on a system without them.
        mode: Option<u32>,
    },
    /// The file is removed.
    Gone,
}

impl Plan {
    /// Returns the digests before and after the change, and the mode after it.
    pub fn sides(&self, found: Option<&Found>, want: &Want) -> Sides {
        let before = found.map(|it| it.digest);
        let after = match (self, want) {
            (Plan::Same, _) => before.map(|it| (it, found.and_then(|it| it.mode))),
            (Plan::Gone, _) => None,
            (Plan::Says { mode, .. }, Want::Kept { side, .. }) => Some((side.digest, *mode)),
            (Plan::Says { bytes, mode }, _) => Some((Digest::of(bytes), *mode)),
        };
        (before, after)
    }

    /// Checks whether nothing has to be written.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Plan::Same)
    }
}

/// The reason why the content of an artifact cannot be written.
pub const NOT_KEPT: &str = "its content is no text, and is not kept here";

const CHANGED: &str = "changed on disk since it was generated";

/// Plans the change. Merges both changes of a file if that is possible before the given moment.
///
/// # Errors
/// The reason why nothing is done.
pub fn plan(found: Option<&Found>, want: &Want, check: &Check, until: Instant) -> Result<Plan, String> {
    let now = found.map(|it| it.digest);
    let is = found.and_then(|it| it.mode);
    let becomes = is.zip(want.program()).map(|(mode, program)| as_program(mode, program));
    let same_mode = becomes.is_none() || becomes == is;
    let (bytes, mode) = match want {
        Want::Bytes => return Err(NOT_KEPT.into()),
        Want::Gone { .. } if now.is_none() => return Ok(Plan::Same),
        Want::Says { bytes, .. } if same_mode && now == Some(Digest::of(bytes)) => return Ok(Plan::Same),
        Want::Kept { side, .. } if same_mode && now == Some(side.digest) => return Ok(Plan::Same),
        Want::Gone { .. } => (None, None),
        Want::Says { bytes, mode, .. } => (Some(bytes.clone()), *mode),
        // The bytes are read back at the write.
        Want::Kept { side, .. } => (Some(Arc::from([])), side.mode),
    };
    let plan = |bytes: Option<Arc<[u8]>>| match bytes {
        Some(bytes) => Plan::Says { bytes, mode: becomes.or(is).or(mode) },
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
            let same = same_mode && now == Some(Digest::of(&merged));
            Ok(if same { Plan::Same } else { plan(Some(merged.into())) })
        }
        Check::Base { content: None, .. } | Check::Missing => Err(CHANGED.into()),
    }
}

/// Returns a file's permissions as a program or as none; everyone who may read a program may run it.
fn as_program(mode: u32, program: bool) -> u32 {
    if program { mode | (mode & 0o444) >> 2 } else { mode & !0o111 }
}
