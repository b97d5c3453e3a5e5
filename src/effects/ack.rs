//! The place where a hook waits for its ACK: a private folder with the whole payload and the ACK's marker, and a socket or a pipe.
//!
//! Promises: when the ACK comes, each waiting process gets one byte and the end of its connection; a process of another user gets no
//! answer; nothing is left behind. The folder and its names, which differ between systems, are in [`folder`]. DevIt 1.9.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use provost_base::limits::ACK_PEERS_MAX;
use provost_transport::Stream;
use provost_transport::listen::{Bound, SocketFolder, bind};

#[cfg_attr(windows, path = "ack_folder_windows.rs")]
#[cfg_attr(not(windows), path = "ack_folder.rs")]
mod folder;

use folder::Folder;

const MARKER: &str = "ack";
/// The name of the marker before its content is complete.
const MARKER_NEW: &str = ".ack";
const PAYLOAD: &str = "payload.json";
/// The content of the marker. DevIt 1.9.
const MARKER_TEXT: &[u8] = b"ack";
/// The bytes that release a waiting hook. DevIt 1.9.
const RELEASE: &[u8] = &[1];
/// How long sending the byte may take, for which the peer's empty buffer always has room.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(1);
/// The pause before the next accept when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// One notification's folder and its socket or pipe.
pub(super) struct Endpoint {
    folder: Arc<Folder>,
    /// The variable and the path of the socket or pipe, once it is there.
    listener: Option<(Bound, (&'static str, PathBuf))>,
    marking: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Makes a folder below `base`, which is made too if it is missing. Blocks; must be called within the runtime.
    ///
    /// # Errors
    /// The system's; a `base` that is a link, or that others can enter. A socket or pipe that cannot be made is no error: the hook
    /// still has the marker.
    pub(super) fn make(base: &Path, payload: &[u8]) -> io::Result<Self> {
        let folder = Folder::make(base)?;
        if let Err(err) = folder.write_new(PAYLOAD, payload) {
            clear(&folder);
            return Err(err);
        }
        let bound = |address: (&'static str, PathBuf)| match bind(&address.1, SocketFolder::Ours) {
            Ok(listener) => Some((listener, address)),
            Err(error) => {
                tracing::warn!(%error, "a hook has the ACK marker alone: its socket or pipe cannot be made");
                None
            }
        };
        let listener = folder.address().and_then(bound);
        Ok(Self { folder: Arc::new(folder), listener, marking: None })
    }

    /// Returns the variables that the hook finds in its environment. The marker does not exist yet.
    pub(super) fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let files = [("DEVIT_NOTIFY_PAYLOAD_FILE", PAYLOAD), ("DEVIT_ACK_MARKER", MARKER)];
        let files = files.into_iter().map(|(variable, name)| (variable, self.folder.path(name)));
        files.chain(self.listener.as_ref().map(|(_, address)| address.clone())).collect()
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
                peer = next(self.listener.as_mut().map(|(bound, _)| bound)) => match peer {
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

    /// Creates the marker, complete from its first moment on. If the hook has put something in its place, that stays.
    fn mark(&mut self) {
        let folder = self.folder.clone();
        self.marking = Some(tokio::task::spawn_blocking(move || {
            let marked = folder
                .write_new(MARKER_NEW, MARKER_TEXT)
                .and_then(|()| folder.give_its_name(MARKER_NEW, MARKER));
            if let Err(error) = marked {
                tracing::warn!(%error, "an ACK marker was not written");
            }
        }));
    }

    /// Ends all waiting and leaves nothing behind.
    pub(super) async fn remove(self) {
        if let Some(marking) = self.marking {
            // The outcome does not matter; the wait is for the last write to the folder.
            let _done = marking.await;
        }
        drop(self.listener);
        let folder = self.folder;
        // Only a shutdown of the runtime cancels it; the next start sweeps.
        let _removed = tokio::task::spawn_blocking(move || clear(&folder)).await;
    }
}

fn clear(folder: &Folder) {
    match folder.remove() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "a hook's folder was not removed; the next start will try again");
        }
        _ => {}
    }
}

/// Removes what an earlier daemon has left behind. Links are removed, never followed. Blocks.
///
/// # Errors
/// The system's error.
pub(super) fn sweep(base: &Path) -> io::Result<()> {
    let base = folder::open_base(base)?;
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

/// Returns the next peer if it belongs to this user. `None` for a peer of another user, and after a pause when accepting has failed.
async fn next(listener: Option<&mut Bound>) -> Option<Stream> {
    let Some(listener) = listener else { return std::future::pending().await };
    match listener.accept().await {
        Ok(stream) => folder::is_this_users(&stream).then_some(stream),
        Err(error) => {
            tracing::warn!(%error, "a hook cannot be let in");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// Sends one byte and ends the connection.
async fn release(mut peer: Stream) {
    folder::take_what_was_said(&peer);
    // A peer that has gone needs no release.
    let _gone = tokio::time::timeout(RELEASE_TIME_MAX, peer.write_all(RELEASE)).await;
}
