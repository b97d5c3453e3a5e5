//! Lists a folder that is held open, and opens folders in it. No link is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

use super::walk::Kind;

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::Directory => Self::Folder,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            FileType::Socket => Self::Socket,
            FileType::Fifo => Self::Pipe,
            _ => Self::Other,
        }
    }
}

/// Passes each name in a folder to `take`, until that returns `false`.
pub(super) fn each_name(dir: &Dir, mut take: impl FnMut(&OsStr, Kind) -> bool) -> io::Result<()> {
    // The given handle may be one that only names the folder; this one can also list it.
    let listing = openat(dir, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for entry in rustix::fs::Dir::new(listing)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not list the kind.
            FileType::Unknown => statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(Kind::Other, |stat| FileType::from_raw_mode(stat.st_mode).into()),
            known => known.into(),
        };
        if !take(OsStr::from_bytes(name), kind) {
            break;
        }
    }
    Ok(())
}

/// Opens a folder in another one by its name.
///
/// # Errors
/// The system's error; a link is no folder, and a path is no name.
pub fn open_folder(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    if name.as_bytes().contains(&b'/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(File::from(openat(dir, name, flags, Mode::empty())?)))
}

/// Checks whether a folder in another one is empty.
///
/// # Errors
/// The system's error; a link is no folder.
pub fn is_empty_folder(dir: &Dir, name: &OsStr) -> io::Result<bool> {
    let mut empty = true;
    each_name(&open_folder(dir, name)?, |_, _| {
        empty = false;
        false
    })?;
    Ok(empty)
}

/// Checks whether an error means that there is no folder of this name any more: it has vanished, or another file has its name.
pub(super) fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}
