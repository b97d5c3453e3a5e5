//! Named pipes of Windows, in the place of `listen` and `stream`.
//!
//! A pipe's descriptor admits the current user alone, so that no process of another user, none across the network and
//! none with a restricted token can open it. The first instance must be the daemon's: it refuses a name that another
//! process holds, and never joins it. Nothing lies in a file system, so there is nothing to clean up.
#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use interprocess::os::windows::named_pipe::PipeListenerOptions;
use interprocess::os::windows::named_pipe::pipe_mode::Bytes;
use interprocess::os::windows::named_pipe::tokio::{DuplexPipeStream, PipeListener};
use interprocess::os::windows::security_descriptor::SecurityDescriptor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use widestring::U16CString;

use super::accept::Listening;
use provost_system::{self as system, Token};

/// How often, and how far apart, to try a pipe all of whose instances are being taken. A daemon makes the next one
/// as soon as one is taken.
const BUSY_TRIES: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// `ERROR_PIPE_BUSY`.
const PIPE_BUSY: i32 = 231;

/// `ERROR_NO_DATA`: the peer has closed.
const NO_DATA: i32 = 232;

/// How long what was written last may wait to be read after we have closed.
const LAST_WORDS_TIME_MAX: Duration = Duration::from_secs(2);

/// Flags of `CreateFileW`: one for asynchronous use; and one by which the server of the pipe learns only
/// this client's identity.
const OVERLAPPED: u32 = 0x4000_0000;
const IDENTIFICATION: u32 = 0x0001_0000;

/// Bytes that a peer can have written before we read.
const INBOUND_BYTES: u32 = 64 << 10;

/// Whose address a pipe is given; both are protected alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketFolder {
    /// One of our own.
    Ours,
    /// One that a caller named.
    Given,
}

/// Why a pipe cannot be had. The texts are for the person who starts the daemon.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens there, or has taken the name to keep the daemon from it.
    #[error("{}: another process has this pipe; stop that daemon or choose another name", .0.display())]
    InUse(PathBuf),
    /// Not the name of a pipe.
    #[error(r"{}: is not the name of a pipe; write \\.\pipe\NAME", .0.display())]
    NotAName(PathBuf),
    /// The system has refused a call.
    #[error("{}: {source}", path.display())]
    Io {
        /// The name of the pipe, as it was asked for.
        path: PathBuf,
        /// The error of the call.
        source: io::Error,
    },
}

/// A listening pipe, which is gone when it and its connections are.
#[derive(Debug)]
pub struct Bound {
    listener: PipeListener<Bytes, Bytes>,
    path: PathBuf,
}

/// The text of a descriptor that admits one user and no other. DevIt 1.1, "pipe security".
pub fn descriptor_for(user: &str) -> String {
    format!("D:P(A;;GA;;;{user})")
}

/// Listens at `path`. Must be called within the runtime.
///
/// # Errors
/// [`BindError`].
pub fn bind(path: &Path, _place: SocketFolder) -> Result<Bound, BindError> {
    let io = |source: io::Error| BindError::Io { path: path.to_owned(), source };
    let not_a_name = || BindError::NotAName(path.to_owned());
    let name = path.to_str().filter(|name| name.starts_with(r"\\.\pipe\")).ok_or_else(not_a_name)?;
    let user = Token::of_this_process().and_then(|token| token.user()).map_err(io)?;
    let text = U16CString::from_str(descriptor_for(&user)).map_err(|e| io(io::Error::other(e)))?;
    let descriptor = SecurityDescriptor::deserialize(&text).map_err(io)?;
    let wide = U16CString::from_str(name).map_err(|_| not_a_name())?;
    // A peer's answer must leave our hands only when the peer reads it: then the end of a write shows that it was
    // read, and a peer that closes before makes the write fail. So there is no buffer for what goes out.
    let listener = PipeListenerOptions::new()
        .path(wide)
        .security_descriptor(Some(descriptor))
        .input_buffer_size_hint(INBOUND_BYTES)
        .output_buffer_size_hint(0)
        .create_tokio_duplex::<Bytes>()
        .map_err(|e| match e.kind() {
            // The first instance is demanded, and another process has one.
            ErrorKind::PermissionDenied => BindError::InUse(path.to_owned()),
            _ => io(e),
        })?;
    Ok(Bound { listener, path: path.to_owned() })
}

impl Bound {
    /// The name of the pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection, whose peer has proved nothing.
    ///
    /// # Errors
    /// What the system says.
    pub async fn accept(&self) -> io::Result<Stream> {
        self.listener.accept().await.map(Stream::new)
    }
}

impl Listening for Bound {
    type Stream = Stream;

    async fn accept(&self) -> io::Result<Stream> {
        Self::accept(self).await
    }

    fn address(&self) -> String {
        self.path.display().to_string()
    }
}

/// Connects to the pipe at `path`.
///
/// # Errors
/// `NotFound` when no process listens, and what else the system says.
pub async fn connect(path: &Path) -> io::Result<Stream> {
    let mut tries = BUSY_TRIES;
    loop {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(OVERLAPPED).security_qos_flags(IDENTIFICATION);
        match options.open(path) {
            Ok(file) => {
                let stream = DuplexPipeStream::try_from(OwnedHandle::from(file));
                return stream.map(Stream::new).map_err(|e| io::Error::other(e.to_string()));
            }
            Err(e) if e.raw_os_error() == Some(PIPE_BUSY) && tries > 0 => tries -= 1,
            Err(e) => return Err(e),
        }
        sleep(BUSY_PAUSE).await;
    }
}

/// A connection over a named pipe.
#[derive(Debug)]
pub struct Stream {
    pipe: Pipe,
    /// What was written last may still wait for the peer.
    written: bool,
}

impl Stream {
    fn new(pipe: DuplexPipeStream<Bytes>) -> Self {
        Self { pipe: Pipe(Some(pipe)), written: false }
    }

    /// The peer is believed from now on. Nothing changes here: there is no reset to be prepared for.
    pub fn proven(&mut self) {}

    /// Waits until all that was written was read, at most so long; `false` when it was not, or when
    /// the peer closed first.
    pub async fn is_read_to_the_end(&self, time_max: Duration) -> bool {
        timeout(time_max, self.pipe.rest()).await.unwrap_or(false)
    }

    /// Refuses the peer so that it cannot be overlooked, and closes.
    ///
    /// A pipe knows no reset. A line that is not UTF-8 is an error to today's clients, where an end without a line
    /// would look like "no message" to them. Does not wait; a peer that does not read loses the words.
    pub fn close_with_reset(mut self, last_words: &[u8]) {
        let words = [last_words, b"\xff\n"].concat();
        let mut cx = Context::from_waker(Waker::noop());
        // The peer may be gone or deaf; it is refused either way.
        let _said = Pin::new(&mut self).poll_write(&mut cx, &words);
    }
}

impl Drop for Stream {
    /// What was written last gets a moment to be read; a peer that does not read cannot hold the pipe for longer.
    fn drop(&mut self) {
        let pipe = Pipe(self.pipe.0.take());
        if let (true, Ok(runtime)) = (self.written, Handle::try_current()) {
            runtime.spawn(async move {
                let _read = timeout(LAST_WORDS_TIME_MAX, pipe.rest()).await;
            });
        }
    }
}

/// The pipe itself, which is closed when this is dropped, whether or not what was written was read. There is one
/// in every stream until the stream is dropped.
#[derive(Debug)]
struct Pipe(Option<DuplexPipeStream<Bytes>>);

impl Pipe {
    fn get_ref(&self) -> &DuplexPipeStream<Bytes> {
        self.0.as_ref().expect("only dropping a stream takes its pipe away")
    }

    /// Waits until all that was written was read; `false` when the peer closed before that.
    async fn rest(&self) -> bool {
        let mut pipe = self.get_ref();
        // A write begins when the one before it has ended, and says how that went.
        match poll_fn(|cx| Pin::new(&mut pipe).poll_write(cx, &[])).await {
            Ok(_) => true,
            // This one could not begin, since the peer has closed: the one before had been read. If it had not,
            // its own error would have come, which is another one.
            Err(e) => e.raw_os_error() == Some(NO_DATA),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Some(pipe) = &self.0 {
            // Without this a thread would wait for each peer that has not read everything.
            pipe.assume_flushed();
            system::cancel_io(pipe.as_handle());
        }
    }
}

impl AsHandle for Stream {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.pipe.get_ref().as_handle()
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.get_mut().pipe.get_ref();
        Pin::new(&mut pipe).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let this = self.get_mut();
        this.written = true;
        let mut pipe = this.pipe.get_ref();
        Pin::new(&mut pipe).poll_write(cx, buf)
    }

    /// In one piece: of two, the second would wait until the peer has read the first.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let whole: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.poll_write(cx, &whole)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// As with a socket: what was written is on its way.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// A pipe has no half that could be closed.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
