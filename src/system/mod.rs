//! Differences between operating systems, under one name for each function; and the walk through trees of
//! folders and the watching of folders, which all readers of such trees share.
//!
//! Promises: a function has the same meaning everywhere, so that no other module has to ask for the system; if
//! a system lacks the feature, the result is the one that grants less. Left to others: pipes and sockets (`transport`),
//! peers (`auth`) and confinement (`jail`).
#![deny(unsafe_code)] // Windows has no safe words for users and processes, the C library none for memory; each block says why it is sound

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

mod ages;
mod clock;
mod companion;
pub mod descriptor;
pub mod folder_watch;
#[cfg(unix)]
mod headroom;
#[cfg_attr(not(unix), path = "inside_elsewhere.rs")]
mod inside;
#[cfg_attr(not(unix), path = "listing_elsewhere.rs")]
mod listing;
mod memory;
#[cfg_attr(not(target_os = "linux"), path = "ports_elsewhere.rs")]
mod ports;
mod ports_free;
pub mod walk;
mod ways;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;

pub use ages::Ages;
pub use clock::{boot_name, boot_time, wall_time};
pub use companion::{end_with_us, pass_signals_on};
#[cfg(unix)]
pub use headroom::check_headroom;
pub use inside::{
    file_inside, folder_inside, make_folder_inside, mode_of, name_inside, new_file_inside, set_mode,
    swap_inside, sync_folder,
};
#[cfg(unix)]
pub use listing::is_empty_folder;
pub use listing::open_folder;
pub use memory::{give_memory_back, own_memory};
pub use ports::{Listener, is_this_program_at, listener_at};
pub use ports_free::port_is_free;
pub use ways::Ways;

/// Checks whether a path still leads to an open file.
///
/// # Errors
/// The system's error, but for a path at which there is nothing.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match File::open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(false),
        found => Ok(identity(&found?)? == identity(file)?),
    }
}

/// A process with a controlling terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Screen {
    /// The process id.
    pub pid: u32,
    /// The folder in which the process runs.
    pub folder: PathBuf,
    /// The time when the process was started, accurate to a hundredth of a second.
    pub began: std::time::SystemTime,
}

/// Returns the name of this user, if the environment has it; otherwise the number.
pub fn user_name() -> String {
    let name = USER_NAME.iter().find_map(|name| std::env::var(name).ok());
    name.unwrap_or_else(|| user_number().to_string())
}

/// Returns the free space for this user on the disk of a file or folder, and the size of that disk, in bytes; `None` if the system
/// does not tell.
#[cfg(unix)]
pub fn disk_space(at: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(at).ok()?;
    Some((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}

/// Returns `None`: free space is not known on this system.
#[cfg(not(unix))]
pub fn disk_space(_at: &Path) -> Option<(u64, u64)> {
    None
}

/// Finds a program by its name: an absolute path is taken as it is, any other name is looked up in our own `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.is_absolute() {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
    found.map(|folder| folder.join(path)).find(|it| it.is_file())
}

/// Returns the text of a file of at most `most` bytes. A file that is no plain file is an error, without waiting for a pipe.
///
/// # Errors
/// The reason why the file cannot be read.
pub fn short_text(path: &Path, most: u64) -> io::Result<String> {
    use std::io::Read as _;
    let file =
        cap_std::fs::File::open_ambient_with(path, &reading_without_waiting(), cap_std::ambient_authority())?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > most {
        return Err(io::Error::other("is no plain file, or too large"));
    }
    let mut text = String::new();
    file.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the beginning of a plain file, at most `most` bytes, and whether that is the whole file. Does not wait.
///
/// # Errors
/// The system's error, or that it is no plain file.
pub fn beginning(path: &Path, most: u64) -> io::Result<(Vec<u8>, bool)> {
    use std::io::Read as _;
    let file = plain_file(path)?;
    let is_all = file.metadata()?.len() <= most;
    let mut begin = Vec::new();
    file.take(most).read_to_end(&mut begin)?;
    Ok((begin, is_all))
}

/// Opens a plain file for reading. Does not wait for a pipe or a device in its place.
///
/// # Errors
/// The system's error, or that it is no plain file.
pub fn plain_file(path: &Path) -> io::Result<cap_std::fs::File> {
    let file =
        cap_std::fs::File::open_ambient_with(path, &reading_without_waiting(), cap_std::ambient_authority())?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("is no plain file")),
    }
}

/// Checks whether a file runs by itself: it may be executed, or names its interpreter. True if it cannot be read.
pub fn is_run_itself(path: &Path) -> bool {
    use std::io::Read as _;
    let opened =
        cap_std::fs::File::open_ambient_with(path, &reading_without_waiting(), cap_std::ambient_authority());
    let Ok(mut file) = opened else { return true };
    let Ok(meta) = file.metadata() else { return true };
    let mut begins = [0; 2];
    meta.is_file() && (is_executable(&meta) || file.read_exact(&mut begins).is_ok() && begins == *b"#!")
}

/// Returns the folders of our own `PATH` that lie outside of these folders, and of the repositories around them: a worker may
/// have made the files there. Relative folders are left out.
pub fn path_outside(inside: &[&Path]) -> Vec<PathBuf> {
    let tops: Vec<PathBuf> = inside
        .iter()
        .filter_map(|it| it.canonicalize().ok())
        .map(|it| {
            it.ancestors().find(|at| at.join(".git").symlink_metadata().is_ok()).unwrap_or(&it).to_owned()
        })
        .collect();
    let is_outside = |path: &Path| !tops.iter().any(|top| path.starts_with(top));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders).filter(|it| it.is_absolute() && is_outside(it));
    folders.filter(|it| it.canonicalize().is_ok_and(|end| is_outside(&end))).collect()
}

/// Finds a program by its name in the folders of [`path_outside`]. A link into the excluded folders does not count.
pub fn find_program_outside(name: &str, inside: &[&Path]) -> Option<PathBuf> {
    let insides: Vec<PathBuf> = inside.iter().filter_map(|it| it.canonicalize().ok()).collect();
    let files = path_outside(inside).into_iter().flat_map(|folder| program_files(&folder, name));
    files.into_iter().find(|it| {
        let is_outside = |end: PathBuf| !insides.iter().any(|at| end.starts_with(at));
        it.is_file() && it.canonicalize().is_ok_and(is_outside)
    })
}

/// Returns the file names that a program of this name may have in a folder.
fn program_files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let ends: &[&str] = if cfg!(windows) { &[".exe", ".cmd"] } else { &[""] };
    ends.iter().map(|end| folder.join(format!("{name}{end}"))).collect()
}

/// A request to the daemon from outside, by a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// To end in order.
    Stop,
    /// To read configuration, policy and keys again. Windows has no such signal.
    Reload,
}
