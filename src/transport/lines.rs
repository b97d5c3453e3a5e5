//! Reads and writes lines: one frame per line, each bounded in length and in time.
//!
//! There is one buffer per connection. It grows with the line, and shrinks after it; the memory for an unproven
//! peer comes out of a budget that all such peers of a door share.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use provost_base::limits::FRAME_LEN_MAX;

/// Size of a buffer between lines, in bytes. Nearly every frame fits.
const BUFFER_IDLE: usize = 4 << 10;

/// The outcome of reading a line from the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// A line without its line break and surrounding ASCII blanks; may be empty, and may hold any bytes but line
    /// breaks. The last line before the end need not have a line break.
    Frame(&'a [u8]),
    /// The peer has closed, and all of its data was read.
    Eof,
    /// A line that is longer than allowed. Nothing can be read after it.
    TooLong,
    /// A line was begun and not ended in time. No line should be read after it.
    TimedOut,
    /// The budget for unproven peers is spent. No line should be read after it.
    OverBudget,
}

/// Returns whether the event after a written message shows that the peer had read it.
///
/// A peer that sends another line or closes had read it; a peer that is closed with the message unread resets the connection,
/// which is an error here (`ECONNRESET`, `EPIPE`). In doubt the message counts as unread, and is sent again.
pub fn delivered(after: &io::Result<Line<'_>>) -> bool {
    matches!(after, Ok(Line::Frame(_) | Line::Eof))
}

/// A number of bytes that many connections share.
#[derive(Clone, Debug)]
pub struct ByteBudget(Arc<Semaphore>);

impl ByteBudget {
    /// Makes a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Returns the bytes that no connection holds.
    pub fn left(&self) -> usize {
        self.0.available_permits()
    }
}

/// The bytes of a budget that a buffer holds.
#[derive(Debug)]
struct Share {
    budget: ByteBudget,
    held: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Holds `bytes` from now on; returns `false`, and holds what it held before, if the budget has too few.
    fn hold(&mut self, bytes: usize) -> bool {
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if bytes <= held {
            let surplus = self.held.as_mut().and_then(|permit| permit.split(held - bytes));
            drop(surplus);
            return true;
        }
        let Ok(missing) = u32::try_from(bytes - held) else { return false };
        let Ok(more) = Arc::clone(&self.budget.0).try_acquire_many_owned(missing) else { return false };
        match &mut self.held {
            Some(permit) => permit.merge(more),
            None => self.held = Some(more),
        }
        true
    }
}

/// Reads lines from a peer, within bounds of length and time.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// The position in the buffer where the next line begins.
    start: usize,
    /// The position up to which there is no line break.
    scanned: usize,
    /// The time by which the begun line must end.
    deadline: Option<Instant>,
    frame_len_max: usize,
    line_time_max: Duration,
    share: Option<Share>,
    ended: bool,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most [`FRAME_LEN_MAX`] bytes; each line must end within `line_time_max` of its first byte.
    /// Between lines it waits for ever; the caller must bound that.
    pub fn new(source: R, line_time_max: Duration) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            deadline: None,
            frame_len_max: FRAME_LEN_MAX,
            line_time_max,
            share: None,
            ended: false,
            too_long: false,
        }
    }

    /// Takes the buffer's bytes out of `budget` until the peer is proven.
    #[must_use]
    pub fn within(mut self, budget: &ByteBudget) -> Self {
        self.share = Some(Share { budget: budget.clone(), held: None });
        self
    }

    /// Gives the bytes back to the budget: the peer is proven.
    pub fn release_budget(&mut self) {
        self.share = None;
    }

    /// Returns the next line. May be dropped while it waits; no data is lost.
    ///
    /// # Errors
    /// The connection's error; `ECONNRESET` if the peer closed without reading everything that was written.
    pub async fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            // One line that is too long ends the reading: nothing behind it counts.
            if self.too_long {
                return Ok(Line::TooLong);
            }
            let found = memchr::memchr(b'\n', &self.buffer[self.scanned..]);
            if let Some(found) = found {
                let line = self.start..self.scanned + found;
                self.take(line.end + 1);
                if line.len() > self.frame_len_max {
                    self.too_long = true;
                    continue;
                }
                return Ok(self.frame(line));
            }
            self.scanned = self.buffer.len();
            let line = self.start..self.buffer.len();
            if line.len() > self.frame_len_max {
                self.too_long = true;
                continue;
            }
            if self.ended {
                self.take(line.end);
                return Ok(if line.is_empty() { Line::Eof } else { self.frame(line) });
            }
            if !self.make_room() {
                return Ok(Line::OverBudget);
            }
            match self.fill().await? {
                Some(0) => self.ended = true,
                Some(_) => {}
                None => return Ok(Line::TimedOut),
            }
        }
    }

    /// Returns the connection, for answers.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Returns the connection, for identifying the peer.
    pub fn get_ref(&self) -> &R {
        &self.source
    }

    /// Returns only the connection; data that was read ahead is dropped.
    pub fn into_inner(self) -> R {
        self.source
    }

    fn frame(&self, line: Range<usize>) -> Line<'_> {
        Line::Frame(self.buffer[line].trim_ascii())
    }

    fn take(&mut self, next: usize) {
        self.start = next;
        self.scanned = next;
        self.deadline = None;
    }

    /// Makes room for reading. `false` if the budget does not allow it.
    fn make_room(&mut self) -> bool {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(BUFFER_IDLE);
        } else {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
        self.scanned = self.buffer.len();
        let mut size = self.buffer.capacity();
        if self.buffer.len() == size {
            // This allows one byte more than a frame, to see that it is too long, and one for its line break.
            size = (2 * size).clamp(BUFFER_IDLE, self.frame_len_max.max(BUFFER_IDLE) + 2);
        }
        // The old and the new buffer exist side by side during the copy; both would count, but only for an instant
        // on this thread, so the larger one stands for both.
        if self.share.as_mut().is_some_and(|share| !share.hold(size)) {
            return false;
        }
        self.buffer.reserve_exact(size - self.buffer.len());
        true
    }

    /// Reads the available data. `None` if the begun line took too long.
    async fn fill(&mut self) -> io::Result<Option<usize>> {
        if self.buffer.is_empty() {
            return self.source.read_buf(&mut self.buffer).await.map(Some);
        }
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.line_time_max);
        match timeout_at(deadline, self.source.read_buf(&mut self.buffer)).await {
            Ok(read) => read.map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl LineReader<super::Stream> {
    /// Marks the peer as proven; see [`super::Stream::proven`].
    pub fn proven(&mut self) {
        self.release_budget();
        self.source.proven();
    }
}

/// Writes a line and its line break, in one system call if the kernel accepts it whole.
///
/// # Errors
/// `TimedOut` if the peer did not read within `time_max`; otherwise the connection's error. A part of the line may
/// have been written, so that no other line can follow.
pub async fn write_line<W: AsyncWrite + Unpin>(
    to: &mut W,
    line: &[u8],
    time_max: Duration,
) -> io::Result<()> {
    let mut write = std::pin::pin!(write_whole(to, line));
    // Nearly every line is written at once; only another one needs a timer.
    if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(write.as_mut().poll(cx))).await {
        return done;
    }
    timeout(time_max, write).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

async fn write_whole<W: AsyncWrite + Unpin>(to: &mut W, line: &[u8]) -> io::Result<()> {
    let mut slices = [IoSlice::new(line), IoSlice::new(b"\n")];
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while let [first, more @ ..] = rest {
        let written = if more.is_empty() { to.write(first).await? } else { to.write_vectored(rest).await? };
        match written {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => IoSlice::advance_slices(&mut rest, written),
        }
    }
    to.flush().await
}
