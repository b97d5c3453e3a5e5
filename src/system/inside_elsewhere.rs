//! Files and folders by one name inside of a folder that is held open. The code checks for a link before it would
//! follow one, and no link leads out of the held folder.

use std::fs::File;
use std::io;

use cap_std::fs::{Dir, OpenOptions};

/// Checks that a name leads nowhere else.
fn one(name: &str) -> io::Result<&str> {
    match name {
        "" | "." | ".." => Err(io::ErrorKind::InvalidInput.into()),
        _ if name.contains(['/', '\\', ':', '\0']) => Err(io::ErrorKind::InvalidInput.into()),
        _ => Ok(name),
    }
}

/// Opens a folder by its name.
///
/// # Errors
/// The system's error; a link is no folder.
pub fn folder_inside(dir: &Dir, name: &str) -> io::Result<Dir> {
    if !dir.symlink_metadata(one(name)?)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    dir.open_dir(name)
}

/// Makes a new folder.
///
/// # Errors
/// The system's error; also if the name is taken.
pub fn make_folder_inside(dir: &Dir, name: &str) -> io::Result<()> {
    dir.create_dir(one(name)?)
}

/// Opens a file for reading.
///
/// # Errors
/// The system's error; a link is no file.
pub fn file_inside(dir: &Dir, name: &str) -> io::Result<File> {
    if dir.symlink_metadata(one(name)?)?.is_symlink() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(dir.open(name)?.into_std())
}

/// Makes a new file for writing.
///
/// # Errors
/// The system's error; also if the name is taken.
pub fn new_file_inside(dir: &Dir, name: &str) -> io::Result<File> {
    Ok(dir.open_with(one(name)?, OpenOptions::new().write(true).create_new(true))?.into_std())
}

/// Fails, since this system does not do that in one step.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn swap_inside(_dir: &Dir, _a: &str, _b: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, since this system does not do that in one step.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn name_inside(_dir: &Dir, _from: &str, _to: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns `None`: this system has no such number.
///
/// # Errors
/// Never: nothing is read.
pub fn mode_of(_file: &File) -> io::Result<Option<u32>> {
    Ok(None)
}

/// Does nothing: this system has no such number.
///
/// # Errors
/// Never: nothing is tried.
pub fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Does nothing: this system keeps names by itself.
///
/// # Errors
/// Never: nothing is tried.
pub fn sync_folder(_dir: &Dir) -> io::Result<()> {
    Ok(())
}
