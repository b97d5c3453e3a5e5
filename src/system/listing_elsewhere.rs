//! Lists a folder that is held open, and opens folders in it. A link is opened as a link,
//! and is no folder.

use std::ffi::OsStr;
use std::io;

use cap_std::fs::{Dir, FileType, OpenOptions};

use super::walk::Kind;

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            it if it.is_dir() => Self::Folder,
            it if it.is_file() => Self::File,
            it if it.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Passes each name in a folder to `take`, until that returns `false`.
pub(super) fn each_name(dir: &Dir, mut take: impl FnMut(&OsStr, Kind) -> bool) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        if !take(&entry.file_name(), entry.file_type()?.into()) {
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
    if name.as_encoded_bytes().iter().any(|byte| matches!(byte, b'/' | b'\\')) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    as_itself(&mut options);
    let found = dir.open_with(name, &options)?.into_std();
    if !found.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(Dir::from_std_file(found))
}

/// Adds the flags that open a folder (the first one), and a link as a link (the second one).
#[cfg(windows)]
fn as_itself(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;
    const BACKUP_SEMANTICS: u32 = 0x0200_0000;
    const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    options.custom_flags(OPEN_REPARSE_POINT | BACKUP_SEMANTICS);
}

#[cfg(not(windows))]
fn as_itself(_options: &mut OpenOptions) {}

/// Checks whether an error means that there is no folder of this name any more: it has vanished, or another file has its name.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
