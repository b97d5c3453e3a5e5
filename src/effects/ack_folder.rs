//! The folder of a hook that waits for its ACK, and its socket's name, on Unix.
//!
//! Promises: the folder's name cannot be guessed and only this user can enter it; nothing is written or removed through a link, even
//! if the hook has changed its folder.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use cap_std::fs::Dir;
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use provost_base::limits::ACK_SOCKET_PATH_MAX;
use provost_transport::Stream;

use super::{MARKER, MARKER_NEW, PAYLOAD};

const SOCKET: &str = "sock";
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One notification's folder, held by its handle, since the hook may move the folder.
pub(super) struct Folder {
    base: PathBuf,
    name: String,
    handle: OwnedFd,
}

impl Folder {
    /// Makes the folder below `base`, which is made too if it is missing.
    ///
    /// # Errors
    /// The system's; a `base` that is a link, or that others can enter.
    pub(super) fn make(base: &Path) -> io::Result<Self> {
        let folders = open_base(base)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random);
        fs::mkdirat(&folders, &name, Mode::RWXU)?;
        let handle = fs::openat(&folders, &name, FOLDER, Mode::empty())?;
        Ok(Self { base: base.to_owned(), name, handle })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.base.join(&self.name).join(name)
    }

    /// Returns the variable and the path of the socket. `None` if the path is too long: the daemon could bind it, but programs
    /// that hooks use could not connect to it.
    pub(super) fn address(&self) -> Option<(&'static str, PathBuf)> {
        let socket = self.path(SOCKET);
        (socket.as_os_str().len() <= ACK_SOCKET_PATH_MAX).then_some(("DEVIT_ACK_SOCKET", socket))
    }

    /// Writes a file that must not be there yet.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn write_new(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?).write_all(content)
    }

    /// Makes a file appear under another name, which must not be taken.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn give_its_name(&self, from: &str, to: &str) -> io::Result<()> {
        fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty())?;
        Ok(fs::unlinkat(&self.handle, from, AtFlags::empty())?)
    }

    /// Removes the folder: by its handle first, in case it has been moved away, then by its name.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn remove(&self) -> io::Result<()> {
        // The hook may have removed the folder's permissions.
        let _shut = fs::fchmod(&self.handle, Mode::RWXU);
        for name in [MARKER, MARKER_NEW, PAYLOAD] {
            let _gone = fs::unlinkat(&self.handle, name, AtFlags::empty());
        }
        open_base(&self.base)?.remove_dir_all(&self.name)
    }
}

/// Opens the folder that holds all notifications' folders, and makes it if it is missing.
///
/// # Errors
/// The system's error, or that others can enter it.
pub(super) fn open_base(base: &Path) -> io::Result<Dir> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    let folder = fs::open(base, FOLDER, Mode::empty())?;
    let stat = fs::fstat(&folder)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
        let why = format!("{} is accessible to others; remove it", base.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(Dir::from_std_file(File::from(folder)))
}

pub(super) fn is_this_users(stream: &Stream) -> bool {
    let Ok(peer) = rustix::net::sockopt::socket_peercred(stream) else { return false };
    let is_ours = peer.uid == rustix::process::geteuid();
    if !is_ours {
        tracing::warn!(uid = peer.uid.as_raw(), "another user's process at an ACK socket was refused");
    }
    is_ours
}

/// Reads the bytes that a peer has sent: closing a socket with unread bytes would look like a failure to the peer.
pub(super) fn take_what_was_said(peer: &Stream) {
    let mut said = [0; 4096];
    while matches!(rustix::net::recv(peer, &mut said, RecvFlags::DONTWAIT), Ok((_, 1..)) | Err(Errno::INTR)) {
    }
}
