//! Where a hook waits for its ACK: a private folder with a socket, a marker that appears, and the whole payload.
//!
//! Promises: the folder's name cannot be guessed and only this user can enter it; a process of another user gets
//! no answer at the socket; one byte and the end of the connection release a process that waits there; nothing is
//! written or removed through a link, even if the hook has changed its folder; nothing is left behind.
//! DevIt 1.9.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use cap_std::fs::Dir;
use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use provost_base::limits::{ACK_PEERS_MAX, ACK_SOCKET_PATH_MAX};
use provost_transport::Stream;
use provost_transport::listen::{Bound, SocketFolder, bind};

const MARKER: &str = "ack";
/// The marker before it has its content.
const MARKER_NEW: &str = ".ack";
const SOCKET: &str = "sock";
const PAYLOAD: &str = "payload.json";
/// The content of the marker. DevIt 1.9.
const MARKER_TEXT: &[u8] = b"ack";
/// What a waiting hook is sent. DevIt 1.9.
const RELEASE: &[u8] = &[1];
/// How long a peer may take to be sent one byte, which its empty buffer always has room for.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two tries to accept when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// One notification's folder.
pub(super) struct Endpoint {
    base: PathBuf,
    name: String,
    folder: OwnedFd,
    listener: Option<Bound>,
    marking: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Makes a folder below `base`, which is made too if it is missing. Blocks; must be called within the runtime.
    ///
    /// The system's; a `base` that is a link, or that others can enter. A socket that cannot be made is no
    /// error: the hook still has the marker.
    pub(super) fn make(base: &Path, payload: &[u8]) -> io::Result<Self> {
        let base_folder = open_base(base)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random);
        fs::mkdirat(&base_folder, &name, Mode::RWXU)?;
        let folder = fs::openat(&base_folder, &name, FOLDER, Mode::empty())?;
        let mut made = Self { base: base.to_owned(), name, folder, listener: None, marking: None };
        if let Err(err) = write_new(&made.folder, PAYLOAD, payload) {
            made.clear();
            return Err(err);
        }
        let socket = made.path(SOCKET);
        // A longer one could be bound, but not be connected to by the programs that hooks use.
        if socket.as_os_str().len() <= ACK_SOCKET_PATH_MAX {
            match bind(&socket, SocketFolder::Ours) {
                Ok(listener) => made.listener = Some(listener),
                Err(error) => tracing::warn!(%error, "a hook gets no ACK socket"),
            }
        }
        Ok(made)
    }

    /// What the hook finds in its environment. The marker does not exist yet.
    pub(super) fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let mut variables =
            vec![("DEVIT_NOTIFY_PAYLOAD_FILE", self.path(PAYLOAD)), ("DEVIT_ACK_MARKER", self.path(MARKER))];
        if self.listener.is_some() {
            variables.push(("DEVIT_ACK_SOCKET", self.path(SOCKET)));
        }
        variables
    }

    /// Keeps the connections of processes that wait, and releases them when the ACK
    /// comes; later ones at once.
    pub(super) async fn serve(&mut self, acked: &CancellationToken) -> Infallible {
        let mut waiting = VecDeque::new();
        let mut released = false;
        loop {
            tokio::select! {
                biased;
                () = acked.cancelled(), if !released => {
                    released = true;
                    for peer in waiting.drain(..) {
                        release(peer).await;
                    }
                    self.mark();
                }
                peer = next(self.listener.as_ref()) => match peer {
                    Some(peer) if released => release(peer).await,
                    Some(peer) => {
                        if waiting.len() >= ACK_PEERS_MAX {
                            waiting.pop_front();
                        }
                        waiting.push_back(peer);
                    }
                    None => {}
                },
            }
        }
    }

    /// Lets the marker appear, complete from its first moment on. A hook that has put something there keeps it.
    fn mark(&mut self) {
        let folder = match self.folder.try_clone() {
            Ok(folder) => folder,
            Err(error) => return tracing::warn!(%error, "an ACK marker was not written"),
        };
        self.marking = Some(tokio::task::spawn_blocking(move || {
            let marked = write_new(&folder, MARKER_NEW, MARKER_TEXT).and_then(|()| {
                fs::linkat(&folder, MARKER_NEW, &folder, MARKER, AtFlags::empty())?;
                Ok(fs::unlinkat(&folder, MARKER_NEW, AtFlags::empty())?)
            });
            if let Err(error) = marked {
                tracing::warn!(%error, "an ACK marker was not written");
            }
        }));
    }

    /// Ends all waiting and leaves nothing behind.
    pub(super) async fn remove(mut self) {
        if let Some(marking) = self.marking.take() {
            // It has nothing to say; the wait is for the folder to be at rest.
            let _done = marking.await;
        }
        // Only a shutdown of the runtime cancels it; the next start sweeps.
        let _removed = tokio::task::spawn_blocking(move || self.clear()).await;
    }

    /// By the folder's handle first, in case it has been moved away, then by its name.
    fn clear(&mut self) {
        self.listener = None;
        // A hook may have shut it.
        let _shut = fs::fchmod(&self.folder, Mode::RWXU);
        for name in [MARKER, MARKER_NEW, PAYLOAD] {
            let _gone = fs::unlinkat(&self.folder, name, AtFlags::empty());
        }
        let removed = open_base(&self.base)
            .and_then(|base| Dir::from_std_file(File::from(base)).remove_dir_all(&self.name));
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "a hook's folder was not removed; the next start will try again");
            }
            _ => {}
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.join(&self.name).join(name)
    }
}

/// Removes what an earlier daemon has left behind. Links are removed, never followed. Blocks.
///
/// # Errors
/// The system's.
pub(super) fn sweep(base: &Path) -> io::Result<()> {
    let base = Dir::from_std_file(File::from(open_base(base)?));
    for entry in base.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let removed =
            if entry.file_type()?.is_dir() { base.remove_dir_all(&name) } else { base.remove_file(&name) };
        if let Err(error) = removed {
            tracing::warn!(%error, folder = ?name, "an earlier hook's folder was not removed");
        }
    }
    Ok(())
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open_base(base: &Path) -> io::Result<OwnedFd> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    let folder = fs::open(base, FOLDER, Mode::empty())?;
    let stat = fs::fstat(&folder)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
        let why = format!("{} is accessible to others; remove it", base.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(folder)
}

fn write_new(folder: &OwnedFd, name: &str, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    File::from(fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?).write_all(content)
}

/// The next peer that is this user; `None` for another, and after a pause for a failure.
async fn next(listener: Option<&Bound>) -> Option<Stream> {
    let Some(listener) = listener else { return std::future::pending().await };
    let stream = match listener.accept().await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(%error, "a hook cannot be let in");
            tokio::time::sleep(PAUSE).await;
            return None;
        }
    };
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    if peer.uid != rustix::process::geteuid() {
        tracing::warn!(uid = peer.uid.as_raw(), "another user's process at an ACK socket was refused");
        return None;
    }
    Some(stream)
}

/// One byte, and the end. What the peer has said is taken first: a socket that is closed with something unread
/// would look to it like a failure.
async fn release(mut peer: Stream) {
    let mut said = [0; 4096];
    while matches!(rustix::net::recv(&peer, &mut said, RecvFlags::DONTWAIT), Ok((_, 1..)) | Err(Errno::INTR))
    {
    }
    // A peer that has gone needs no release.
    let _gone = tokio::time::timeout(RELEASE_TIME_MAX, peer.write_all(RELEASE)).await;
}
