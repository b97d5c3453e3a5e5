//! Files and folders by one name inside of a folder that is held open. No link is followed.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, mkdirat, openat};

/// What every one of these is opened with.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// A name that leads nowhere else.
fn one(name: &str) -> io::Result<&str> {
    match name {
        "" | "." | ".." => Err(io::ErrorKind::InvalidInput.into()),
        _ if name.contains(['/', '\0']) => Err(io::ErrorKind::InvalidInput.into()),
        _ => Ok(name),
    }
}

/// A folder.
///
/// # Errors
/// What the system says; a link is no folder.
pub fn folder_inside(dir: &Dir, name: &str) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | PLAIN;
    let found = openat(dir, one(name)?, flags, Mode::empty())?;
    Ok(Dir::from_std_file(File::from(found)))
}

/// A new folder, for the user alone.
///
/// # Errors
/// What the system says; also when there is something of this name.
pub fn make_folder_inside(dir: &Dir, name: &str) -> io::Result<()> {
    Ok(mkdirat(dir, one(name)?, Mode::RWXU)?)
}

/// A file to be read. Nobody waits for the other end of a pipe.
///
/// # Errors
/// What the system says; a link is no file.
pub fn file_inside(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | PLAIN;
    Ok(File::from(openat(dir, one(name)?, flags, Mode::empty())?))
}

/// A new file to be written, for the user alone.
///
/// # Errors
/// What the system says; also when there is something of this name.
pub fn new_file_inside(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | PLAIN;
    Ok(File::from(openat(dir, one(name)?, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Who may do what with a file; `None` where the system has no such number.
///
/// # Errors
/// What the system says.
pub fn mode_of(file: &File) -> io::Result<Option<u32>> {
    Ok(Some(file.metadata()?.permissions().mode() & 0o777))
}

/// Says who may do what with a file. Nobody gets another user's rights by it.
///
/// # Errors
/// What the system says.
pub fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::fs::Permissions::from_mode(mode & 0o777))
}

/// Makes names that were given or taken in a folder outlast a loss of power.
///
/// # Errors
/// What the system says.
pub fn sync_folder(dir: &Dir) -> io::Result<()> {
    dir.try_clone()?.into_std_file().sync_all()
}
