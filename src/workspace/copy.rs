//! A private copy of a working directory, for workers whose changes are discarded. Blocking.
//!
//! The copy uses handles that follow no symbolic link; links are copied as links. If the file
//! system can share blocks, a copy of a file costs no space. Sockets, pipes and devices are left out, and so are
//! files that their owner cannot read, and files that are removed while the copy is made.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{FileType, Mode, OFlags};

use provost_base::limits::{COPY_BYTES_MAX, COPY_DEPTH_MAX, COPY_ENTRIES_MAX, HARVEST_FILES_MAX};
use provost_system::open_folder;
use provost_system::walk::{Bound, Bounds, Entry, Folder, Step, Unopened, Unread, Visitor, walk};

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

impl From<rustix::io::Errno> for NoCopy {
    fn from(errno: rustix::io::Errno) -> Self {
        NoCopy::Io(errno.into())
    }
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
        fs::DirBuilder::new().recursive(true).mode(0o700).create(into)?;
        let copied = Self { path: into.join(uuid::Uuid::new_v4().simple().to_string()) };
        fs::DirBuilder::new().mode(0o700).create(&copied.path)?;
        Ok(copied)
    }

    /// Copies a directory into a new folder beneath `into`, which is made if it is missing.
    pub fn of(directory: impl AsFd, into: &Path) -> Result<Self, NoCopy> {
        let copied = Self::empty(into)?;
        let target = Dir::open_ambient_dir(&copied.path, ambient_authority())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The given handle may be one that only names the directory; this one can also list it.
        let source = rustix::fs::openat(directory, c".", flags, Mode::empty())?;
        Room::default().all_of(Dir::from_std_file(File::from(source)), target)?;
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
        if let Err(err) = remove(&self.path) {
            tracing::warn!(%err, path = %self.path.display(), "a worker's copy was not removed; the next start tries again");
        }
    }
}

/// Removes a copy. The worker may have removed permissions in it; no process of the worker is left to interfere.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path).or_else(|_| {
        open_up(path)?;
        fs::remove_dir_all(path)
    })
}

fn open_up(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    fs::read_dir(path)?.try_for_each(|entry| open_up(&entry?.path()))
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

impl Room {
    /// Copies everything in a folder into another one.
    pub fn all_of(&mut self, from: Dir, to: Dir) -> Result<(), NoCopy> {
        let bounds = Bounds { entries: self.entries, depth: COPY_DEPTH_MAX, until: None };
        walk(self, (from, OsStr::new("")), to, bounds)
    }

    fn folder(&mut self, at: Entry<'_>, to: &Dir, mode: Mode) -> Result<Step<Dir>, NoCopy> {
        let inner = match at.open() {
            Err(Unopened::Gone(_)) => return Ok(Step::Over),
            opened => opened,
        };
        rustix::fs::mkdirat(to, at.name(), mode | Mode::RWXU)?;
        match inner {
            // A folder that its owner cannot enter is left out: a worker could shut one to prevent all later copies.
            Err(Unopened::Shut(_)) => Ok(Step::Over),
            Err(error) => Err(NoCopy::Io(error.into())),
            Ok(inner) => Ok(Step::Into(inner, open_folder(to, at.name())?)),
        }
    }

    fn file(&mut self, from: &Dir, to: &Dir, name: &OsStr, mode: Mode) -> Result<(), NoCopy> {
        // The open does not wait: the file may have been replaced by a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(from, name, flags, Mode::empty()).map_err(io::Error::from);
        let mut source = match opened.map_err(Unopened::from) {
            // A file that its owner cannot read is left out, too, and so is one that has vanished since it was listed.
            Err(Unopened::Shut(_) | Unopened::Gone(_)) => return Ok(()),
            Err(Unopened::Failed(error)) => return Err(error.into()),
            Ok(source) => File::from(source),
        };
        let meta = source.metadata()?;
        if !meta.is_file() {
            return Ok(());
        }
        self.bytes = self.bytes.checked_sub(meta.len()).ok_or(NoCopy::TooLarge)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut target = File::from(rustix::fs::openat(to, name, flags, mode | Mode::RUSR | Mode::WUSR)?);
        if share(&source, &target).is_ok() {
            return Ok(());
        }
        // A file that grows while it is read cannot exceed the bound.
        let copied = copy_data(&mut source, &mut target, meta.len().saturating_add(self.bytes))?;
        self.bytes = self.bytes.saturating_sub(copied.saturating_sub(meta.len()));
        Ok(())
    }
}

impl Visitor for Room {
    /// The folder that is being filled.
    type Here = Dir;
    type Stop = NoCopy;

    fn entry(&mut self, at: Entry<'_>, to: &mut Dir) -> Result<Step<Dir>, NoCopy> {
        self.entries = self.entries.checked_sub(1).ok_or(NoCopy::TooMany)?;
        let stat = match at.stat() {
            // The entry was removed since it was listed.
            Err(rustix::io::Errno::NOENT) => return Ok(Step::Over),
            stat => stat?,
        };
        // Special bits such as setuid are not copied.
        let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return self.folder(at, to, mode),
            FileType::RegularFile => self.file(at.dir, to, at.name(), mode)?,
            FileType::Symlink => match rustix::fs::readlinkat(at.dir, at.name(), Vec::new()) {
                // The link has vanished, or is no link any more.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {}
                target => rustix::fs::symlinkat(&*target?, &*to, at.name())?,
            },
            _ => {}
        }
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), NoCopy> {
        Err(why.into())
    }
}

/// Copies the data of a file without its holes, which a worker can make as large as it likes. Returns the file's length.
#[cfg(target_os = "linux")]
pub fn copy_data(source: &mut File, target: &mut File, most: u64) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    let mut at = 0;
    loop {
        let data = match seek(&*source, SeekFrom::Data(at)) {
            // There is only a hole from here to the end.
            Err(rustix::io::Errno::NXIO) => break,
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => at,
            data => data?,
        };
        let end = seek(&*source, SeekFrom::Hole(data)).unwrap_or(u64::MAX).min(most);
        if data >= end {
            break;
        }
        seek(&*source, SeekFrom::Start(data))?;
        seek(&*target, SeekFrom::Start(data))?;
        let copied = io::copy(&mut io::Read::take(&mut *source, end - data), target)?;
        if copied == 0 {
            break;
        }
        at = data + copied;
    }
    let length = source.metadata()?.len().min(most);
    if target.metadata()?.len() < length {
        target.set_len(length)?;
    }
    Ok(length)
}

#[cfg(not(target_os = "linux"))]
pub fn copy_data(source: &mut File, target: &mut File, most: u64) -> io::Result<u64> {
    io::copy(&mut io::Read::take(source, most), target)
}

/// Makes the copy share its blocks with the original, if the file system can do so.
#[cfg(target_os = "linux")]
pub fn share(source: impl AsFd, target: impl AsFd) -> rustix::io::Result<()> {
    rustix::fs::ioctl_ficlone(target, source)
}

#[cfg(not(target_os = "linux"))]
pub fn share(_source: impl AsFd, _target: impl AsFd) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::NOSYS)
}
