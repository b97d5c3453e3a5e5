//! Measures a private copy, so that all runs in it together have a bound for growth. Blocking; no run may use the
//! copy meanwhile.
//!
//! The supervisor of a single run enforces that run's bound, and knows nothing of the runs before it.

use std::io;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};

use super::snapshot::open_folder;
use provost_base::limits::COPY_DEPTH_MAX;

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Size {
    /// Bytes that the files take on the disk.
    pub bytes: u64,
    /// Files, folders and whatever else has a name.
    pub entries: u64,
}

impl Size {
    /// Looks through a folder.
    ///
    /// # Errors
    /// What the system says, or that it is nested too deep to be looked through.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut size = Self::default();
        size.add(&Dir::open_ambient_dir(folder, ambient_authority())?, COPY_DEPTH_MAX)?;
        Ok(size)
    }

    /// By how much this is more than that.
    pub fn beyond(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            entries: self.entries.saturating_sub(before.entries),
        }
    }

    fn add(&mut self, dir: &Dir, depth: usize) -> io::Result<()> {
        let too_deep = || io::Error::other(format!("nested deeper than {COPY_DEPTH_MAX}"));
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        for entry in dir.entries()? {
            let name = entry?.file_name();
            let meta = dir.symlink_metadata(&name)?;
            self.entries += 1;
            self.bytes += on_disk(&meta);
            if meta.is_dir() {
                self.add(&open_shut(dir, &name)?, depth)?;
            }
        }
        Ok(())
    }
}

/// A run may have shut what it has made; what is in there counts all the same.
fn open_shut(dir: &Dir, name: &std::ffi::OsStr) -> io::Result<Dir> {
    match open_folder(dir, name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock(dir, name)?;
            open_folder(dir, name)
        }
        opened => opened,
    }
}

/// Of a file with several names, a part for each.
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
