//! A connection.
//!
//! As long as its peer has proved nothing, the line break that ends each of its lines stays in the kernel's buffer,
//! although the reader has got it. A Unix socket that is closed with unread data resets its peer. So a client that
//! would take silence or a plain end for success learns that it was refused.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

/// The most bytes that are examined at once while the peer is unproven.
const LOOK_MAX: usize = 64 << 10;

/// A connected Unix stream socket.
#[derive(Debug)]
pub struct Stream {
    inner: UnixStream,
    proven: bool,
    /// Whether the reader has got a line break that is still in the kernel's buffer.
    held_back: bool,
}

impl Stream {
    /// Wraps a connection whose peer has proved nothing yet.
    pub fn unproven(inner: UnixStream) -> Self {
        Self { inner, proven: false, held_back: false }
    }

    /// Wraps a connection that this process has made, or whose peer is known.
    pub fn trusted(inner: UnixStream) -> Self {
        Self { inner, proven: true, held_back: false }
    }

    /// Marks the peer as proven: reading takes everything from now on, and closing does not reset it.
    pub fn proven(&mut self) {
        self.proven = true;
        if std::mem::take(&mut self.held_back) {
            let mut line_break = [0];
            // It is in the kernel's buffer; if it cannot be read, the next read returns the error.
            let _taken = recv(&self.inner, &mut line_break, RecvFlags::DONTWAIT);
        }
    }

    /// Waits until the peer has closed for good, at most `time_max`. Returns whether it had read all written data.
    ///
    /// A peer can close its sending side and still read; only its final close shows whether it did.
    pub async fn is_read_to_the_end(&self, time_max: Duration) -> bool {
        let until = Instant::now() + time_max;
        let mut pause = Duration::from_millis(1);
        loop {
            let mut look = [PollFd::new(&self.inner, PollFlags::empty())];
            // The call does not wait. It reports a peer that has closed although no event was requested.
            let looked = rustix::event::poll(&mut look, Some(&Timespec::default()));
            if looked.is_ok() && look[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                return matches!(self.inner.take_error(), Ok(None));
            }
            if Instant::now() >= until {
                return false;
            }
            sleep(pause).await;
            pause = (2 * pause).min(Duration::from_millis(100));
        }
    }

    /// Refuses the peer in a way that it cannot overlook, and closes.
    ///
    /// `last_words` should have no line break: a client that waits for a whole line then gets an error
    /// (`ECONNRESET`), while an end of the stream would look like "no message" to it; a person who watches the
    /// bytes can read the reason. If the peer has sent no data that could be left unread, a line that is not UTF-8
    /// has the same effect. Does not wait; a peer that does not read loses the words.
    pub fn close_with_reset(self, last_words: &[u8]) {
        let mut look = [0];
        let unread = self.held_back
            || recv(&self.inner, &mut look, RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok_and(|(n, _)| n > 0);
        let mut words = last_words.to_vec();
        if !unread {
            words.extend_from_slice(b"\xff\n");
        }
        // The peer may be gone or may not read; it is refused either way.
        let _said = rustix::net::send(&self.inner, &words, rustix::net::SendFlags::DONTWAIT | NO_SIGNAL);
    }
}

/// Reads up to the next line break, which is copied but left in the kernel's buffer.
fn read_holding_back(from: &UnixStream, held_back: &mut bool, buf: &mut ReadBuf<'_>) -> io::Result<()> {
    let flags = RecvFlags::DONTWAIT;
    if *held_back {
        recv(from, &mut [0], flags)?;
        *held_back = false;
    }
    let room = buf.remaining().min(LOOK_MAX);
    let space = buf.initialize_unfilled_to(room);
    let (seen, _) = recv(from, &mut *space, flags | RecvFlags::PEEK)?;
    let line_break = space[..seen].iter().position(|byte| *byte == b'\n');
    let wanted = line_break.unwrap_or(seen);
    let taken = if wanted > 0 { recv(from, &mut space[..wanted], flags)?.0 } else { 0 };
    // The data that was seen can be read, unless another process reads from this socket, too.
    *held_back = line_break.is_some() && taken == wanted;
    buf.advance(taken + usize::from(*held_back));
    Ok(())
}

/// A write to a peer that has gone is an error, and must not end the process. On other systems than Linux, the
/// standard library ensures that.
#[cfg(target_os = "linux")]
const NO_SIGNAL: rustix::net::SendFlags = rustix::net::SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: rustix::net::SendFlags = rustix::net::SendFlags::empty();

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.proven {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        loop {
            ready!(this.inner.poll_read_ready(cx))?;
            // The runtime must see the call that finds no data, to know that it must wait.
            let read = || read_holding_back(&this.inner, &mut this.held_back, buf);
            match this.inner.try_io(Interest::READABLE, read) {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
