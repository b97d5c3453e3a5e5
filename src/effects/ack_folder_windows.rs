//! The folder of a hook that waits for its ACK, and its pipe's name, on Windows.
//!
//! Promises: the names of the folder and the pipe cannot be guessed, and only this user can open them; nothing is written or removed
//! through a link.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use provost_system as system;
use provost_transport::Stream;

/// One notification's folder, known by its name: an open handle would keep the hook from moving it.
pub(super) struct Folder {
    base: PathBuf,
    name: String,
}

impl Folder {
    /// Makes the folder below `base`, which is made too if it is missing.
    ///
    /// # Errors
    /// The system's; a `base` that others can enter.
    pub(super) fn make(base: &Path) -> io::Result<Self> {
        let folders = open_base(base)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        folders.create_dir(&name)?;
        Ok(Self { base: base.to_owned(), name })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.base.join(&self.name).join(name)
    }

    /// Returns the variable and the name of the pipe.
    #[expect(clippy::unnecessary_wraps, reason = "on Unix a path can be too long for it")]
    pub(super) fn address(&self) -> Option<(&'static str, PathBuf)> {
        Some(("DEVIT_ACK_PIPE", PathBuf::from(format!(r"\\.\pipe\devit-ack-{}", self.name))))
    }

    /// Writes a file that must not be there yet.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn write_new(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let file = self.open()?.open_with(name, OpenOptions::new().write(true).create_new(true))?;
        file.into_std().write_all(content)
    }

    /// Makes a file appear under another name, which must not be taken.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn give_its_name(&self, from: &str, to: &str) -> io::Result<()> {
        let folder = self.open()?;
        folder.hard_link(from, &folder, to)?;
        folder.remove_file(from)
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn remove(&self) -> io::Result<()> {
        open_base(&self.base)?.remove_dir_all(&self.name)
    }

    fn open(&self) -> io::Result<Dir> {
        open_base(&self.base)?.open_dir(&self.name)
    }
}

/// Opens the folder that holds all notifications' folders, and makes it if it is missing.
///
/// # Errors
/// The system's error, or that others can enter it.
pub(super) fn open_base(base: &Path) -> io::Result<Dir> {
    system::make_private_folders(base)?;
    system::private(base).map_err(|why| {
        let why = format!("{} {why}; remove it", base.display());
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    })?;
    Dir::open_ambient_dir(base, ambient_authority())
}

/// Always true, since the pipe admits no other user's process.
pub(super) fn is_this_users(_stream: &Stream) -> bool {
    true
}

/// Does nothing: closing a pipe with unread bytes is no failure to its peer.
pub(super) fn take_what_was_said(_peer: &Stream) {}
