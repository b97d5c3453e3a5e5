//! SYSTEMS: what operating systems do differently, under one name for each thing.
//!
//! Promises: a function means the same everywhere, so that nobody else has to ask which system this is; where a
//! system has no such thing, the answer is the one that grants less. Leaves pipes and sockets to `transport`,
//! peers to `auth` and confinement to `jail`.
#![deny(unsafe_code)] // Windows has no safe words for users and processes, the C library none for memory; each block says why it is sound

use std::path::{Path, PathBuf};

mod ages;
mod clock;
pub mod descriptor;
#[cfg(unix)]
mod headroom;
#[cfg_attr(not(unix), path = "inside_elsewhere.rs")]
mod inside;
mod memory;
#[cfg_attr(not(target_os = "linux"), path = "ports_elsewhere.rs")]
mod ports;

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
#[cfg(unix)]
pub use headroom::check_headroom;
pub use inside::{
    file_inside, folder_inside, make_folder_inside, mode_of, name_inside, new_file_inside, set_mode,
    swap_inside, sync_folder,
};
pub use memory::{give_memory_back, own_memory};
pub use ports::{Listener, listener_at};

/// The name of this user, as far as the environment knows it; otherwise the number.
pub fn user_name() -> String {
    let name = USER_NAME.iter().find_map(|name| std::env::var(name).ok());
    name.unwrap_or_else(|| user_number().to_string())
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

/// What someone outside wants of a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// To end in order.
    Stop,
    /// To read configuration, policy and keys again. Windows has no such signal.
    Reload,
}
