//! The output to one side: a task writes whole messages, in order, and tells how many bytes it has still to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// The most bytes that are written at once if several messages wait.
const TOGETHER: usize = 64 << 10;

pub(super) struct Outlet {
    to: mpsc::UnboundedSender<Vec<u8>>,
    state: Arc<State>,
    writing: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    unread: AtomicUsize,
    is_shut: AtomicBool,
    moved: Notify,
}

impl Outlet {
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (to, from) = mpsc::unbounded_channel();
        let state = Arc::<State>::default();
        let writing = tokio::spawn(write(from, writer, Arc::clone(&state)));
        Self { to, state, writing }
    }

    pub(super) fn send(&self, message: Vec<u8>) {
        self.state.unread.fetch_add(message.len(), Ordering::Relaxed);
        // If the reader has gone, the loop notices it where it reads that side.
        let _gone = self.to.send(message);
    }

    /// Checks whether the side has less than this many bytes unread.
    pub(super) fn has_room(&self, most: usize) -> bool {
        self.state.unread.load(Ordering::Relaxed) < most || self.is_shut()
    }

    /// Checks whether the side has gone.
    pub(super) fn is_shut(&self) -> bool {
        self.state.is_shut.load(Ordering::Relaxed)
    }

    /// Waits until the side has read some bytes, or has gone.
    pub(super) async fn moves(&self) {
        self.state.moved.notified().await;
    }

    /// Ends the output after the last message.
    pub(super) async fn close(self) {
        drop(self.to);
        let _ended = self.writing.await;
    }
}

async fn write(
    mut from: mpsc::UnboundedReceiver<Vec<u8>>,
    mut writer: impl AsyncWrite + Send + Unpin,
    state: Arc<State>,
) {
    while let Some(mut message) = from.recv().await {
        while message.len() < TOGETHER {
            let Ok(more) = from.try_recv() else { break };
            message.extend_from_slice(&more);
        }
        let written = async {
            writer.write_all(&message).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            state.is_shut.store(true, Ordering::Relaxed);
            state.moved.notify_one();
            return;
        }
        state.unread.fetch_sub(message.len(), Ordering::Relaxed);
        state.moved.notify_one();
    }
}
