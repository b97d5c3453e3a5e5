//! A private copy of a working directory on Windows. Blocking.
//!
//! The copy lies in a folder that a worker of tier `job` may change, and everything in it inherits that right. The
//! copy uses handles of folders. It leaves out links and everything else that is neither a file nor a folder: making
//! links needs a right that users rarely have.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use provost_base::limits::{COPY_BYTES_MAX, COPY_DEPTH_MAX, COPY_ENTRIES_MAX, HARVEST_FILES_MAX};
use provost_system::walk::{Bound, Bounds, Entry, Folder, Kind, Step, Unopened, Unread, Visitor, walk};

/// The reason why there is no copy. Safe to show.
#[derive(Debug, thiserror::Error)]
pub enum NoCopy {
    /// More bytes than a copy may have.
    #[error(
        "the working directory is larger than {COPY_BYTES_MAX} bytes, too large for a copy; with `copy = false` its worker works in it"
    )]
    TooLarge,
    /// More entries than a copy may have.
    #[error(
        "the working directory has more than {COPY_ENTRIES_MAX} entries, too many for a copy; with `copy = false` its worker works in it"
    )]
    TooMany,
    /// More files than the daemon collects from a private copy.
    #[error(
        "the workspace has more than {HARVEST_FILES_MAX} files that git does not ignore, too many for a private copy"
    )]
    TooManyFiles,
    /// Folders in folders beyond the bound.
    #[error(
        "the working directory is nested deeper than {COPY_DEPTH_MAX}, too deep for a copy; with `copy = false` its worker works in it"
    )]
    TooDeep,
    /// The system refused a step.
    #[error("the working directory could not be copied: {0}")]
    Io(#[from] io::Error),
}

impl From<Unread> for NoCopy {
    fn from(why: Unread) -> Self {
        match why {
            Unread::Beyond(Bound::Depth) => NoCopy::TooDeep,
            Unread::Beyond(Bound::Entries | Bound::Time) => NoCopy::TooMany,
            Unread::Failed(error) => NoCopy::Io(error),
        }
    }
}

/// A copy, removed when this is dropped.
#[derive(Debug)]
pub struct Copied {
    path: PathBuf,
}

impl Copied {
    /// Makes a new, empty folder beneath `into`.
    pub fn empty(into: &Path) -> Result<Self, NoCopy> {
        fs::create_dir_all(into)?;
        let copied = Self { path: into.join(uuid::Uuid::new_v4().simple().to_string()) };
        provost_jail::make_worker_folder(&copied.path)?;
        Ok(copied)
    }

    /// Copies a directory into a new folder beneath `into`, which is made if it is missing.
    pub fn of(source: &Dir, into: &Path) -> Result<Self, NoCopy> {
        let copied = Self::empty(into)?;
        let target = Dir::open_ambient_dir(&copied.path, ambient_authority())?;
        Room::default().all_of(source.open_dir(".")?, target)?;
        Ok(copied)
    }

    /// Returns the absolute path of the copy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes over the copy at a path, which an earlier run has left.
    pub fn left_at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Leaves the copy in its place for a later run.
    pub fn leave(mut self) -> PathBuf {
        std::mem::take(&mut self.path)
    }

    /// Renames the copy in the same folder, if no file has that name.
    ///
    /// # Errors
    /// The system's error, and that a file has that name.
    pub fn rename(&mut self, name: &str) -> io::Result<()> {
        let to = self.path.with_file_name(name);
        if to.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(&self.path, &to)?;
        self.path = to;
        Ok(())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        if let Err(err) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%err, path = %self.path.display(), "a worker's copy was not removed; the next start tries again");
        }
    }
}

/// Removes a folder with all its contents.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)
}

/// The rest of the bounds of a copy.
pub struct Room {
    /// Bytes of files.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self { bytes: COPY_BYTES_MAX, entries: COPY_ENTRIES_MAX }
    }
}

/// Copies the data of a file. Returns its length.
pub fn copy_data(source: &mut std::fs::File, target: &mut std::fs::File, most: u64) -> io::Result<u64> {
    io::copy(&mut io::Read::take(source, most), target)
}

/// Fails, since this system's file systems share no blocks between files.
pub fn share<A, B>(_source: A, _target: B) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Room {
    /// Copies everything in a folder into another one.
    pub fn all_of(&mut self, from: Dir, to: Dir) -> Result<(), NoCopy> {
        let bounds = Bounds { entries: self.entries, depth: COPY_DEPTH_MAX, until: None };
        walk(self, (from, OsStr::new("")), to, bounds)
    }

    fn file(&mut self, from: &Dir, to: &Dir, name: &OsStr) -> Result<(), NoCopy> {
        let source = match from.open(name) {
            // The entry was removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            source => source?,
        };
        let length = source.metadata()?.len();
        self.bytes = self.bytes.checked_sub(length).ok_or(NoCopy::TooLarge)?;
        let mut target = to.open_with(name, OpenOptions::new().write(true).create_new(true))?;
        // A file that grows while it is read cannot exceed the bound.
        let copied = io::copy(&mut source.take(length.saturating_add(self.bytes)), &mut target)?;
        self.bytes = self.bytes.saturating_sub(copied.saturating_sub(length));
        Ok(())
    }
}

impl Visitor for Room {
    /// The folder that is being filled.
    type Here = Dir;
    type Stop = NoCopy;

    fn entry(&mut self, at: Entry<'_>, to: &mut Dir) -> Result<Step<Dir>, NoCopy> {
        self.entries = self.entries.checked_sub(1).ok_or(NoCopy::TooMany)?;
        match at.kind() {
            Kind::Folder => {
                let inner = match at.open() {
                    Err(Unopened::Gone(_)) => return Ok(Step::Over),
                    inner => inner.map_err(io::Error::from)?,
                };
                to.create_dir(at.name())?;
                return Ok(Step::Into(inner, to.open_dir(at.name())?));
            }
            Kind::File => self.file(at.dir, to, at.name())?,
            _ => {}
        }
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), NoCopy> {
        Err(why.into())
    }
}
