//! Unix sockets: only this user can connect; the daemon takes over a socket only if no process listens at it, and
//! removes it only if it is still the daemon's.
//!
//! A socket is bound inside a folder that only this user can enter, and moved to its place once it has its mode.
//! All names are resolved relative to an open folder, so that paths may be longer than the 107 bytes of an address.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use tokio::net::{UnixListener, UnixStream};

use super::Stream;
use super::accept::Listening;

/// The number of tries for the turn to place a socket, and the pause between them. Placing takes less than a millisecond.
const TURN_TRIES: u32 = 200;
const TURN_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// The kind of folder for a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketFolder {
    /// A folder of the daemon's own: created if missing (0700), refused if others can enter it.
    Ours,
    /// A folder that a caller has named, and that all users may share. It must exist.
    Given,
}

/// The reason why a socket cannot be opened. The texts are for the person who starts the daemon.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens at the socket.
    #[error("{}: another daemon listens here; stop it or choose another address", .0.display())]
    InUse(PathBuf),
    /// The path is no socket. It is left alone.
    #[error("{}: exists and is not a socket; remove it or choose another address", .0.display())]
    NotASocket(PathBuf),
    /// Other users can enter the folder.
    #[error("{}: is open to other users; `chmod 700 {}`", .0.display(), .0.display())]
    OpenFolder(PathBuf),
    /// The folder belongs to another user.
    #[error("{}: belongs to another user; choose another address", .0.display())]
    ForeignFolder(PathBuf),
    /// Other users can put a socket of their own in its place.
    #[error("{}: other users can write to it, and so take the socket's place; `chmod go-w {}`", .0.display(), .0.display())]
    WritableFolder(PathBuf),
    /// The folder's group is none of this user's, and the folder does not pass it on.
    #[error(
        "{}: is of a group that you are not in; have root let it hand its group on: `chmod g+s {}`",
        .0.display(), .0.display()
    )]
    ForeignGroup(PathBuf),
    /// The address has no file name.
    #[error("{}: is not the name of a file", .0.display())]
    NotAName(PathBuf),
    /// A system call has failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The address, as the caller wrote it.
        path: PathBuf,
        /// The error of the call.
        source: io::Error,
    },
}

/// A listening socket, which removes its file when it is dropped.
#[derive(Debug)]
pub struct Bound {
    listener: UnixListener,
    path: PathBuf,
    folder: OwnedFd,
    name: OsString,
    identity: Identity,
}

/// Distinguishes a file from another one that has taken its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    device: u64,
    inode: u64,
    /// Inode numbers are reused; a socket's time of change is that of its creation.
    modified: (i64, i64),
}

impl Identity {
    /// Returns the identity of the file with these properties.
    #[expect(clippy::unnecessary_cast, reason = "the widths of these fields differ between systems")]
    pub fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }
}

/// Listens at `path`. Must be called within the runtime.
///
/// # Errors
/// [`BindError`]. `bind` removes nothing but a socket at which no process listens.
pub fn bind(path: &Path, place: SocketFolder) -> Result<Bound, BindError> {
    let (folder_path, _) = split(path)?;
    bind_in(open_folder(&folder_path, place)?, path)
}

/// Listens in the same way for processes of the folder's group as well: the socket has that group, and mode 0660.
///
/// # Errors
/// [`BindError`], as for [`bind`], and if others than this user and root can write to the folder.
pub fn bind_for_group(path: &Path, place: SocketFolder) -> Result<Bound, BindError> {
    let (folder_path, _) = split(path)?;
    let folder = open_folder(&folder_path, place)?;
    let io = |source: io::Error| BindError::Io { path: path.to_owned(), source };
    let stat = fs::fstat(&folder).map_err(|e| io(e.into()))?;
    if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(BindError::ForeignFolder(folder_path));
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(BindError::WritableFolder(folder_path));
    }
    bind_as(folder, path, Some(stat.st_gid))
}

/// Listens in a folder that is already open, and may no longer be at the path.
///
/// # Errors
/// [`BindError`], as for [`bind`].
pub fn bind_in(folder: OwnedFd, path: &Path) -> Result<Bound, BindError> {
    bind_as(folder, path, None)
}

/// Listens for this user, and for the group if there is one.
fn bind_as(folder: OwnedFd, path: &Path, group: Option<u32>) -> Result<Bound, BindError> {
    let (folder_path, name) = split(path)?;
    let io = |source: io::Error| BindError::Io { path: path.to_owned(), source };

    let private_name = format!(".provost-{}", uuid::Uuid::new_v4().simple());
    fs::mkdirat(&folder, &private_name, Mode::RWXU).map_err(|e| io(e.into()))?;
    let made = make(&folder, &folder_path, &private_name).map_err(io);
    let made = made.and_then(|made| match group.map(|group| hand_to(&made.0, group)) {
        Some(Err(Errno::PERM)) => Err(BindError::ForeignGroup(folder_path.clone())),
        Some(Err(e)) => Err(io(e.into())),
        Some(Ok(())) | None => Ok(made),
    });
    let placed = made.and_then(|(private, listener, identity)| {
        let _turn = Turn::take(&folder);
        place_socket(&private, &folder, path, &name)?;
        Ok((listener, identity))
    });
    // The rest of the private folder is a socket that could not be placed.
    let _socket = fs::unlinkat(&folder, format!("{private_name}/s"), AtFlags::empty());
    let _folder = fs::unlinkat(&folder, &private_name, AtFlags::REMOVEDIR);
    let (listener, identity) = placed?;
    Ok(Bound { listener, path: path.to_owned(), folder, name, identity })
}

/// Keeps other daemons from changing the folder while a dead socket is moved aside: otherwise a third could take
/// the place of a live socket that was moved by mistake, before it is put back.
struct Turn<'a>(&'a OwnedFd);

impl<'a> Turn<'a> {
    /// Waits for the turn, but not for ever: in a folder that all users share, any of them can hold it.
    fn take(folder: &'a OwnedFd) -> Option<Self> {
        for _ in 0..TURN_TRIES {
            match fs::flock(folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(Self(folder)),
                Err(Errno::AGAIN | Errno::INTR) => std::thread::sleep(TURN_PAUSE),
                // Some file systems have no locks; then the daemon goes on without.
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The folder stays open as long as the socket, but its lock must not.
        let _unlocked = fs::flock(self.0, FlockOperation::Unlock);
    }
}

impl Bound {
    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of this socket, which differs from that of another one in its place.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the next connection, whose peer has proved nothing.
    ///
    /// # Errors
    /// The system's error, for example a passing lack of descriptors.
    pub async fn accept(&self) -> io::Result<Stream> {
        let (stream, _) = self.listener.accept().await?;
        Ok(Stream::unproven(stream))
    }
}

impl Listening for Bound {
    type Stream = Stream;

    async fn accept(&mut self) -> io::Result<Stream> {
        Self::accept(self).await
    }

    fn address(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let still_ours = fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| Identity::of(&stat) == self.identity);
        if still_ours {
            // A file that is left behind is replaced at the next start.
            let _removed = fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Connects to the socket at `path`, however long the path is.
///
/// # Errors
/// `NotFound` without a socket, `ConnectionRefused` when no process listens, and other errors of the system.
pub async fn connect(path: &Path) -> io::Result<Stream> {
    let address = Address::of(path)?;
    UnixStream::connect(&address.path).await.map(Stream::trusted)
}

/// A short path to a socket, valid as long as this value lives.
struct Address {
    path: PathBuf,
    /// Keeps the short path valid.
    _socket: Option<OwnedFd>,
}

impl Address {
    #[cfg(target_os = "linux")]
    fn of(path: &Path) -> io::Result<Self> {
        let socket = fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()));
        Ok(Self { path, _socket: Some(socket) })
    }

    #[cfg(not(target_os = "linux"))]
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), _socket: None })
    }
}

fn split(path: &Path) -> Result<(PathBuf, OsString), BindError> {
    let name = path.file_name().ok_or_else(|| BindError::NotAName(path.to_owned()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Ok((folder.to_owned(), name.to_owned()))
}

fn open_folder(path: &Path, place: SocketFolder) -> Result<OwnedFd, BindError> {
    let io = |source: io::Error| BindError::Io { path: path.to_owned(), source };
    let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if place == SocketFolder::Given {
        return fs::open(path, flags, Mode::empty()).map_err(|e| io(e.into()));
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    flags |= OFlags::NOFOLLOW;
    let folder = fs::open(path, flags, Mode::empty()).map_err(|e| io(e.into()))?;
    let stat = fs::fstat(&folder).map_err(|e| io(e.into()))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(BindError::ForeignFolder(path.to_owned()));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(BindError::OpenFolder(path.to_owned()));
    }
    Ok(folder)
}

/// Makes the socket inside the private folder, where its mode can be set before any other process can reach it.
fn make(folder: &OwnedFd, folder_path: &Path, name: &str) -> io::Result<(OwnedFd, UnixListener, Identity)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let private = fs::openat(folder, name, flags, Mode::empty())?;
    // A folder that passes its group on gives this property to new folders; setting the mode could remove it.
    if fs::fstat(&private)?.st_mode & 0o777 != 0o700 {
        fs::fchmod(&private, Mode::RWXU)?;
    }
    let address = if cfg!(target_os = "linux") {
        PathBuf::from(format!("/proc/self/fd/{}/s", private.as_raw_fd()))
    } else {
        folder_path.join(name).join("s")
    };
    let listener = UnixListener::bind(address)?;
    fs::chmodat(&private, "s", Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    let identity = Identity::of(&fs::statat(&private, "s", AtFlags::SYMLINK_NOFOLLOW)?);
    Ok((private, listener, identity))
}

/// Lets a group connect to the socket, which no other process can reach yet.
fn hand_to(private: &OwnedFd, group: u32) -> Result<(), Errno> {
    let stat = fs::statat(private, "s", AtFlags::SYMLINK_NOFOLLOW)?;
    if stat.st_gid != group {
        fs::chownat(private, "s", None, Some(fs::Gid::from_raw(group)), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    fs::chmodat(private, "s", Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP, AtFlags::empty())
}

/// Moves the socket to its place; a dead one that is there is moved aside first.
fn place_socket(private: &OwnedFd, folder: &OwnedFd, path: &Path, name: &OsStr) -> Result<(), BindError> {
    let io = |e: Errno| BindError::Io { path: path.to_owned(), source: e.into() };
    // Two tries are enough unless several daemons start here at once; then all but one may give up.
    for _ in 0..4 {
        match move_in(private, OsStr::new("s"), folder, name) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(io(e)),
        }
        let dead = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Socket => {
                return Err(BindError::NotASocket(path.to_owned()));
            }
            Ok(stat) => Identity::of(&stat),
            Err(Errno::NOENT) => continue,
            Err(e) => return Err(io(e)),
        };
        if !nobody_listens_in(folder, path, name)
            .map_err(|source| BindError::Io { path: path.to_owned(), source })?
        {
            return Err(BindError::InUse(path.to_owned()));
        }
        // Another daemon may have put its own there meanwhile; the moved socket is checked before it is removed.
        fs::renameat(folder, name, private, "old").map_err(io)?;
        let taken = fs::statat(private, "old", AtFlags::SYMLINK_NOFOLLOW).map_err(io)?;
        if Identity::of(&taken) != dead {
            let _given_back = move_in(private, OsStr::new("old"), folder, name);
            return Err(BindError::InUse(path.to_owned()));
        }
        fs::unlinkat(private, "old", AtFlags::empty()).map_err(io)?;
    }
    Err(BindError::InUse(path.to_owned()))
}

/// Moves a file; fails if the name is taken.
fn move_in(from: &OwnedFd, old: &OsStr, to: &OwnedFd, new: &OsStr) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match fs::renameat_with(from, old, to, new, fs::RenameFlags::NOREPLACE) {
        // Some file systems do not support the flag.
        Err(Errno::INVAL | Errno::NOSYS) => {}
        done => return done,
    }
    fs::linkat(from, old, to, new, AtFlags::empty())?;
    fs::unlinkat(from, old, AtFlags::empty())
}

/// Returns whether the socket was left by a daemon that has ended.
///
/// # Errors
/// The system's error.
pub fn nobody_listens_in(folder: &OwnedFd, path: &Path, name: &OsStr) -> io::Result<bool> {
    // The path goes through the open folder: another folder may be at the path by now.
    let inside = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    let address = match Address::of(if cfg!(target_os = "linux") { &inside } else { path }) {
        Ok(address) => address,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e),
    };
    // This does not wait: a daemon whose queue is full does listen.
    let flags = rustix::net::SocketFlags::NONBLOCK | rustix::net::SocketFlags::CLOEXEC;
    let kind = rustix::net::SocketType::STREAM;
    let socket = rustix::net::socket_with(rustix::net::AddressFamily::UNIX, kind, flags, None)?;
    let address = rustix::net::SocketAddrUnix::new(&address.path)?;
    match rustix::net::connect(&socket, &address) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(true),
        Ok(()) | Err(Errno::AGAIN) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
