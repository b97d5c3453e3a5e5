//! Where a hook waits for its ACK on Windows: a private folder, a pipe of its own, and a marker that appears.
//!
//! Promises: the names of the folder and the pipe cannot be guessed, and only this user can open them; one byte and
//! the end of the connection release a process that waits at the pipe; nothing is written or removed through a link;
//! nothing is left behind. DevIt 1.9.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use provost_base::limits::ACK_PEERS_MAX;
use provost_system as system;
use provost_transport::Stream;
use provost_transport::listen::{Bound, SocketFolder, bind};

const MARKER: &str = "ack";
/// The marker before it has its content.
const MARKER_NEW: &str = ".ack";
const PAYLOAD: &str = "payload.json";
/// The content of the marker. DevIt 1.9.
const MARKER_TEXT: &[u8] = b"ack";
/// What a waiting hook is sent. DevIt 1.9.
const RELEASE: &[u8] = &[1];
/// How long a peer may take to be sent one byte.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two tries to accept.
const PAUSE: Duration = Duration::from_millis(50);

/// One notification's folder and pipe.
pub(super) struct Endpoint {
    base: PathBuf,
    name: String,
    listener: Option<Bound>,
    marking: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Makes a folder below `base`, which is made too if it is missing, and a pipe. Blocks; must be
    /// called within the runtime.
    ///
    /// # Errors
    /// The system's; a `base` that others can enter. A pipe that cannot be made is no error: the hook
    /// still has the marker.
    pub(super) fn make(base: &Path, payload: &[u8]) -> io::Result<Self> {
        let folders = open_base(base)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        folders.create_dir(&name)?;
        let mut made = Self { base: base.to_owned(), name, listener: None, marking: None };
        if let Err(err) = folders.open_dir(&made.name).and_then(|dir| write_new(&dir, PAYLOAD, payload)) {
            made.clear();
            return Err(err);
        }
        match bind(&made.pipe(), SocketFolder::Ours) {
            Ok(listener) => made.listener = Some(listener),
            Err(error) => tracing::warn!(%error, "a hook gets no ACK pipe"),
        }
        Ok(made)
    }

    fn pipe(&self) -> PathBuf {
        PathBuf::from(format!(r"\\.\pipe\devit-ack-{}", self.name))
    }

    /// What the hook finds in its environment. The marker does not exist yet.
    pub(super) fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let mut variables =
            vec![("DEVIT_NOTIFY_PAYLOAD_FILE", self.path(PAYLOAD)), ("DEVIT_ACK_MARKER", self.path(MARKER))];
        if self.listener.is_some() {
            variables.push(("DEVIT_ACK_PIPE", self.pipe()));
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
                peer = next(self.listener.as_mut()) => match peer {
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
        let (base, name) = (self.base.clone(), self.name.clone());
        self.marking = Some(tokio::task::spawn_blocking(move || {
            let marked = open_base(&base).and_then(|base| base.open_dir(&name)).and_then(|folder| {
                write_new(&folder, MARKER_NEW, MARKER_TEXT)?;
                folder.hard_link(MARKER_NEW, &folder, MARKER)?;
                folder.remove_file(MARKER_NEW)
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

    fn clear(&mut self) {
        self.listener = None;
        match open_base(&self.base).and_then(|base| base.remove_dir_all(&self.name)) {
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
    let base = open_base(base)?;
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

fn open_base(base: &Path) -> io::Result<Dir> {
    system::make_private_folders(base)?;
    system::private(base).map_err(|why| {
        let why = format!("{} {why}; remove it", base.display());
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    })?;
    Dir::open_ambient_dir(base, ambient_authority())
}

fn write_new(folder: &Dir, name: &str, content: &[u8]) -> io::Result<()> {
    let file = folder.open_with(name, OpenOptions::new().write(true).create_new(true))?;
    let mut file: File = file.into_std();
    file.write_all(content)
}

/// The next peer, which is a process of this user: the pipe admits no other. `None` after
/// a failure and a pause.
async fn next(listener: Option<&mut Bound>) -> Option<Stream> {
    let Some(listener) = listener else { return std::future::pending().await };
    match listener.accept().await {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::warn!(%error, "a hook cannot be let in");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// One byte, and the end.
async fn release(mut peer: Stream) {
    // A peer that has gone needs no release.
    let _gone = tokio::time::timeout(RELEASE_TIME_MAX, peer.write_all(RELEASE)).await;
}
