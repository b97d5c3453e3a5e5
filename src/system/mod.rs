//! Differences between operating systems, under one name for each function; and what all do alike who read trees of
//! folders: the walk through one, and the watching of its folders.
//!
//! Promises: a function has the same meaning everywhere, so that no other module has to ask which system this is; if
//! a system lacks the feature, the answer is the one that grants less. Leaves pipes and sockets to `transport`,
//! peers to `auth` and confinement to `jail`.
#![deny(unsafe_code)] // Windows has no safe words for users and processes, the C library none for memory; each block says why it is sound

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

/// A process that a terminal controls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Screen {
    /// Its number.
    pub pid: u32,
    /// The folder in which it runs.
    pub folder: PathBuf,
    /// When it was started, exact to a hundredth of a second.
    pub began: std::time::SystemTime,
}

/// The name of this user, as far as the environment knows it; otherwise the number.
pub fn user_name() -> String {
    let name = USER_NAME.iter().find_map(|name| std::env::var(name).ok());
    name.unwrap_or_else(|| user_number().to_string())
}

/// What is free for this user on the disk of a file or folder, and the size of that disk, in bytes; `None` where the system does
/// not say so.
#[cfg(unix)]
pub fn disk_space(at: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(at).ok()?;
    Some((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}

/// What is free for this user on the disk of a file or folder, and the size of that disk: not known on this system.
#[cfg(not(unix))]
pub fn disk_space(_at: &Path) -> Option<(u64, u64)> {
    None
}

/// A program by its name: an absolute path as it is, anything else in the folders of our own `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.is_absolute() {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
    found.map(|folder| folder.join(path)).find(|it| it.is_file())
}

/// The text of a file of this length at most; what is no plain file is an error, and a pipe is not waited for.
///
/// # Errors
/// Why it cannot be read.
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

/// The beginning of a plain file, so many bytes of it at most, and whether that is all; read without waiting.
///
/// # Errors
/// What the system says, or that it is no plain file.
pub fn beginning(path: &Path, most: u64) -> io::Result<(Vec<u8>, bool)> {
    use std::io::Read as _;
    let file = plain_file(path)?;
    let is_all = file.metadata()?.len() <= most;
    let mut begin = Vec::new();
    file.take(most).read_to_end(&mut begin)?;
    Ok((begin, is_all))
}

/// A plain file, open to be read. A pipe or a device in its place is not waited for.
///
/// # Errors
/// What the system says, or that it is no plain file.
pub fn plain_file(path: &Path) -> io::Result<cap_std::fs::File> {
    let file =
        cap_std::fs::File::open_ambient_with(path, &reading_without_waiting(), cap_std::ambient_authority())?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("is no plain file")),
    }
}

/// Whether a file is one that is run by itself: it may be executed, or names its interpreter. One that cannot be read may be.
pub fn is_run_itself(path: &Path) -> bool {
    use std::io::Read as _;
    let opened =
        cap_std::fs::File::open_ambient_with(path, &reading_without_waiting(), cap_std::ambient_authority());
    let Ok(mut file) = opened else { return true };
    let Ok(meta) = file.metadata() else { return true };
    let mut begins = [0; 2];
    meta.is_file() && (is_executable(&meta) || file.read_exact(&mut begins).is_ok() && begins == *b"#!")
}

/// The folders of our own `PATH` that lie outside of these folders, and of the repositories that those lie in: what lies
/// there, a worker may have made. Relative ones are left out.
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

/// A program by its name, as [`path_outside`] has it. Not one either that is a link into these folders.
pub fn find_program_outside(name: &str, inside: &[&Path]) -> Option<PathBuf> {
    let insides: Vec<PathBuf> = inside.iter().filter_map(|it| it.canonicalize().ok()).collect();
    let files = path_outside(inside).into_iter().flat_map(|folder| program_files(&folder, name));
    files.into_iter().find(|it| {
        let is_outside = |end: PathBuf| !insides.iter().any(|at| end.starts_with(at));
        it.is_file() && it.canonicalize().is_ok_and(is_outside)
    })
}

/// The file names that a program of this name may have in a folder.
fn program_files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let ends: &[&str] = if cfg!(windows) { &[".exe", ".cmd"] } else { &[""] };
    ends.iter().map(|end| folder.join(format!("{name}{end}"))).collect()
}

/// What a process outside wants of a daemon, as a signal says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The daemon is to end in order.
    Stop,
    /// To read configuration, policy and keys again. Windows has no such signal.
    Reload,
}
