//! Measures a private copy, so that the growth in all its runs together has a bound. Blocking; no run may use the
//! copy meanwhile.
//!
//! The supervisor of a single run enforces that run's bound, and knows nothing of the runs before it.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};

use provost_base::limits::COPY_DEPTH_MAX;
use provost_system::walk::{Bound, Bounds, Entry, Folder, Step, Unopened, Unread, Visitor, walk};

/// The size of a folder.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Size {
    /// Bytes that the files take on the disk.
    pub bytes: u64,
    /// The number of files, folders and other entries.
    pub entries: u64,
}

impl Size {
    /// Measures a folder.
    ///
    /// # Errors
    /// The system's error, or that the folder is nested too deep.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut size = Self::default();
        let top = Dir::open_ambient_dir(folder, ambient_authority())?;
        // Every entry counts: the limit in a run's own jail bounds how many a run can make.
        let bounds = Bounds { entries: u64::MAX, depth: COPY_DEPTH_MAX, until: None };
        walk(&mut size, (top, OsStr::new("")), (), bounds)?;
        Ok(size)
    }

    /// Returns the part of this size that exceeds another size.
    pub fn beyond(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            entries: self.entries.saturating_sub(before.entries),
        }
    }
}

impl Visitor for Size {
    type Here = ();
    type Stop = io::Error;

    fn entry(&mut self, at: Entry<'_>, _here: &mut ()) -> io::Result<Step<()>> {
        let meta = match at.metadata() {
            // The entry was removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Step::Over),
            meta => meta?,
        };
        self.entries += 1;
        self.bytes += on_disk(&meta);
        Ok(if meta.is_dir() { Step::Into(open_shut(at)?, ()) } else { Step::Over })
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> io::Result<()> {
        Err(match why {
            Unread::Beyond(Bound::Depth) => io::Error::other(format!("nested deeper than {COPY_DEPTH_MAX}")),
            Unread::Beyond(Bound::Entries | Bound::Time) => {
                io::Error::other("it has names that are too long to be measured")
            }
            Unread::Failed(error) => error,
        })
    }
}

/// Opens a folder that a run may have shut: its contents count all the same.
fn open_shut(at: Entry<'_>) -> io::Result<Dir> {
    match at.open() {
        Err(Unopened::Shut(_)) => {
            unlock(at.dir, at.name())?;
            Ok(at.open()?)
        }
        opened => Ok(opened?),
    }
}

/// Returns the bytes on the disk; a file with several names counts by parts.
#[cfg(unix)]
fn on_disk(meta: &Metadata) -> u64 {
    use cap_std::fs::MetadataExt as _;
    const BLOCK: u64 = 512;
    let bytes = meta.blocks().saturating_mul(BLOCK);
    if meta.is_dir() { bytes } else { bytes / meta.nlink().max(1) }
}

#[cfg(not(unix))]
fn on_disk(meta: &Metadata) -> u64 {
    meta.len()
}

#[cfg(unix)]
fn unlock(dir: &Dir, name: &std::ffi::OsStr) -> io::Result<()> {
    use cap_std::fs::PermissionsExt as _;
    dir.set_permissions(name, cap_std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn unlock(_dir: &Dir, _name: &std::ffi::OsStr) -> io::Result<()> {
    Ok(())
}
