//! Files and folders by one name inside of a folder that is held open. No function follows a link.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, RenameFlags, mkdirat, openat};
use rustix::io::Errno;

/// The flags with which each of them is opened.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Checks that a name leads nowhere else.
fn one(name: &str) -> io::Result<&str> {
    match name {
        "" | "." | ".." => Err(io::ErrorKind::InvalidInput.into()),
        _ if name.contains(['/', '\0']) => Err(io::ErrorKind::InvalidInput.into()),
        _ => Ok(name),
    }
}

/// Opens a folder by its name.
///
/// # Errors
/// The system's error; a link is no folder.
pub fn folder_inside(dir: &Dir, name: &str) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | PLAIN;
    let found = openat(dir, one(name)?, flags, Mode::empty())?;
    Ok(Dir::from_std_file(File::from(found)))
}

/// Makes a new folder, for the user alone.
///
/// # Errors
/// The system's error; also if the name is taken.
pub fn make_folder_inside(dir: &Dir, name: &str) -> io::Result<()> {
    Ok(mkdirat(dir, one(name)?, Mode::RWXU)?)
}

/// Opens a file for reading. On a pipe, it does not wait for the other end.
///
/// # Errors
/// The system's error; a link is no file.
pub fn file_inside(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | PLAIN;
    Ok(File::from(openat(dir, one(name)?, flags, Mode::empty())?))
}

/// Makes a new file for writing, for the user alone.
///
/// # Errors
/// The system's error; also if the name is taken.
pub fn new_file_inside(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | PLAIN;
    Ok(File::from(openat(dir, one(name)?, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Exchanges two names in a folder in one step.
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] if it cannot do that.
pub fn swap_inside(dir: &Dir, a: &str, b: &str) -> io::Result<()> {
    rename_inside(dir, a, b, RenameFlags::EXCHANGE)
}

/// Renames a file in its folder to a name that must be free.
///
/// # Errors
/// The system's error; [`io::ErrorKind::Unsupported`] if it cannot do that in one step.
pub fn name_inside(dir: &Dir, from: &str, to: &str) -> io::Result<()> {
    rename_inside(dir, from, to, RenameFlags::NOREPLACE)
}

fn rename_inside(dir: &Dir, from: &str, to: &str, flags: RenameFlags) -> io::Result<()> {
    match rustix::fs::renameat_with(dir, one(from)?, dir, one(to)?, flags) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(io::ErrorKind::Unsupported.into()),
        done => Ok(done?),
    }
}

/// Returns the permissions of a file; `None` on a system without such a number.
///
/// # Errors
/// The system's error.
pub fn mode_of(file: &File) -> io::Result<Option<u32>> {
    Ok(Some(file.metadata()?.permissions().mode() & 0o777))
}

/// Sets the permissions of a file. The setuid and setgid bits are left out, so that no program gets another
/// user's rights by it.
///
/// # Errors
/// The system's error.
pub fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::fs::Permissions::from_mode(mode & 0o777))
}

/// Makes new and removed names in a folder survive a loss of power.
///
/// # Errors
/// The system's error.
pub fn sync_folder(dir: &Dir) -> io::Result<()> {
    // A handle that was opened for finding names cannot be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    File::from(openat(dir, ".", flags, Mode::empty())?).sync_all()
}
