//! Named pipes of Windows, in the place of `listen` and `stream`.
//!
//! A pipe's descriptor admits only the current user, so that no process of another user, none across the network
//! and none with a restricted token can open it. The first instance must be the daemon's: the daemon refuses a name
//! that another process holds, and never joins it. A pipe is not in a file system, so there is nothing to clean up.
#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::replace;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::accept::Listening;
use provost_system::{self as system, Token};

/// The number of tries for a busy pipe, and the pause between them.
const BUSY_TRIES: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// `ERROR_NO_DATA`: the peer has closed.
const NO_DATA: i32 = 232;

/// How long the last written data may wait for the peer after the daemon has closed.
const LAST_WORDS_TIME_MAX: Duration = Duration::from_secs(2);

/// A flag of `CreateFileW` that shows the server of the pipe only this client's identity.
const IDENTIFICATION: u32 = 0x0001_0000;

/// The most bytes that a peer can write before the daemon reads.
const INBOUND_BYTES: u32 = 64 << 10;

/// The owner of a pipe's address; both kinds are protected alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketFolder {
    /// An address of the daemon's own.
    Ours,
    /// An address that a caller has named.
    Given,
}

/// The reason why a pipe cannot be opened. The texts are for the person who starts the daemon.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens at the pipe, or has taken the name to keep the daemon from it.
    #[error("{}: another process has this pipe; stop that daemon or choose another name", .0.display())]
    InUse(PathBuf),
    /// The text is not the name of a pipe.
    #[error(r"{}: is not the name of a pipe; write \\.\pipe\NAME", .0.display())]
    NotAName(PathBuf),
    /// A system call has failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The name of the pipe, as the caller wrote it.
        path: PathBuf,
        /// The error of the call.
        source: io::Error,
    },
}

/// A listening pipe, which exists until it and its connections are closed.
#[derive(Debug)]
pub struct Bound {
    /// The instance that waits for the next client.
    waiting: NamedPipeServer,
    path: PathBuf,
    descriptor: String,
}

/// Returns a descriptor that admits only one user. DevIt 1.1, "pipe security".
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
    let is_name = |name: &&str| name.starts_with(r"\\.\pipe\") && !name.contains('\0');
    path.to_str().filter(is_name).ok_or_else(not_a_name)?;
    let user = Token::of_this_process().and_then(|token| token.user()).map_err(io)?;
    let descriptor = descriptor_for(&user);
    let first = system::pipe_instance(instances().first_pipe_instance(true), path, &descriptor);
    let waiting = first.map_err(|e| match e.kind() {
        // The first instance is demanded, and another process has one.
        ErrorKind::PermissionDenied => BindError::InUse(path.to_owned()),
        _ => io(e),
    })?;
    Ok(Bound { waiting, path: path.to_owned(), descriptor })
}

/// Returns the common options of all instances.
fn instances() -> ServerOptions {
    let mut options = ServerOptions::new();
    // There is no buffer for outgoing data: so a write ends only when the peer has read it, and fails if the peer
    // closes before. Then the end of a write shows that it was read.
    options.reject_remote_clients(true).in_buffer_size(INBOUND_BYTES).out_buffer_size(0);
    options
}

impl Bound {
    /// Returns the name of the pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the next connection, whose peer has proved nothing. May be dropped while it waits.
    ///
    /// # Errors
    /// The system's error.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        self.waiting.connect().await?;
        let next = system::pipe_instance(&instances(), &self.path, &self.descriptor)?;
        Ok(Stream::new(End::Server(replace(&mut self.waiting, next))))
    }
}

impl Drop for Bound {
    /// Disconnects a client that has just arrived, and admits no other one.
    ///
    /// The runtime closes an instance only after it has learnt how the wait for a client ended. If a client has
    /// come, it begins to read from that client, and keeps the instance although its owner has dropped it: the
    /// client would wait for as long as this process lives.
    fn drop(&mut self) {
        // An instance without a client may refuse to be disconnected, and would admit the next one. So this process
        // becomes its client; this fails if it has one.
        let _client = OpenOptions::new().read(true).security_qos_flags(IDENTIFICATION).open(&self.path);
        // This fails if it was disconnected before.
        let _cut_off = self.waiting.disconnect();
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

/// Connects to the pipe at `path`.
///
/// # Errors
/// `NotFound` when no process listens, and other errors of the system.
pub async fn connect(path: &Path) -> io::Result<Stream> {
    let mut tries = BUSY_TRIES;
    loop {
        match ClientOptions::new().security_qos_flags(IDENTIFICATION).open(path) {
            Ok(pipe) => return Ok(Stream::new(End::Client(pipe))),
            Err(e) if system::is_pipe_busy(&e) && tries > 0 => tries -= 1,
            Err(e) => return Err(e),
        }
        sleep(BUSY_PAUSE).await;
    }
}

/// A connection over a named pipe.
#[derive(Debug)]
pub struct Stream {
    pipe: Pipe,
    /// Whether the last written data may still wait for the peer.
    written: bool,
}

impl Stream {
    fn new(end: End) -> Self {
        Self { pipe: Pipe(Some(end)), written: false }
    }

    /// Marks the peer as proven. This has no effect, since a pipe has no reset.
    pub fn proven(&mut self) {}

    /// Waits until all written data was read, at most `time_max`; `false` if it was not, or if the peer closed
    /// first.
    pub async fn is_read_to_the_end(&self, time_max: Duration) -> bool {
        timeout(time_max, self.pipe.rest()).await.unwrap_or(false)
    }

    /// Refuses the peer in a way that it cannot overlook, and closes.
    ///
    /// A pipe knows no reset. A line that is not UTF-8 is an error to present clients, while an end without a line
    /// would look like "no message" to them. Does not wait; a peer that does not read loses the words.
    pub fn close_with_reset(mut self, last_words: &[u8]) {
        let words = [last_words, b"\xff\n"].concat();
        let mut cx = Context::from_waker(Waker::noop());
        // The peer may be gone or may not read; it is refused either way.
        let _said = Pin::new(&mut self).poll_write(&mut cx, &words);
    }
}

impl Drop for Stream {
    /// Gives the last written data a moment to be read; a peer that does not read cannot hold the pipe for longer.
    fn drop(&mut self) {
        let pipe = Pipe(self.pipe.0.take());
        if let (true, Ok(runtime)) = (self.written, Handle::try_current()) {
            runtime.spawn(async move {
                let _read = timeout(LAST_WORDS_TIME_MAX, pipe.rest()).await;
            });
        }
    }
}

/// The reason why every stream has its pipe.
const ALWAYS: &str = "only dropping a stream takes its pipe away";

/// The pipe itself, which is closed on drop, whether or not written data was read. Every stream has one until the
/// stream is dropped.
#[derive(Debug)]
struct Pipe(Option<End>);

impl Pipe {
    fn get_ref(&self) -> &End {
        self.0.as_ref().expect(ALWAYS)
    }

    fn get_mut(&mut self) -> &mut End {
        self.0.as_mut().expect(ALWAYS)
    }

    /// Waits until all written data was read; `false` if the peer closed before that.
    async fn rest(&self) -> bool {
        // A write begins when the one before it has ended, and returns its outcome.
        match poll_fn(|cx| self.get_ref().poll_write(cx, &[])).await {
            Ok(_) => true,
            // This write could not begin, since the peer has closed: the one before had been read. Otherwise its
            // own error would have come, which is another one.
            Err(e) => e.raw_os_error() == Some(NO_DATA),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Some(end) = &self.0 {
            // Without this, the runtime would keep the pipe until the peer has read everything.
            system::cancel_io(end.as_handle());
        }
    }
}

/// This process's end of a pipe.
#[derive(Debug)]
enum End {
    Server(NamedPipeServer),
    Client(NamedPipeClient),
}

impl End {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Server(pipe) => Pin::new(pipe).poll_read(cx, buf),
            Self::Client(pipe) => Pin::new(pipe).poll_read(cx, buf),
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let written = match self {
                Self::Server(pipe) => {
                    ready!(pipe.poll_write_ready(cx))?;
                    pipe.try_write(buf)
                }
                Self::Client(pipe) => {
                    ready!(pipe.poll_write_ready(cx))?;
                    pipe.try_write(buf)
                }
            };
            match written {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsHandle for End {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        match self {
            Self::Server(pipe) => pipe.as_handle(),
            Self::Client(pipe) => pipe.as_handle(),
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
        match ready!(self.get_mut().pipe.get_mut().poll_read(cx, buf)) {
            Err(e) if system::is_end_of_pipe(&e) => Poll::Ready(Ok(())),
            done => Poll::Ready(done),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let this = self.get_mut();
        this.written = true;
        this.pipe.get_ref().poll_write(cx, buf)
    }

    /// Writes in one piece: of two pieces, the second would wait until the peer has read the first.
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

    /// Does nothing, as with a socket: written data is on its way.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: a pipe has no half that could be closed.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
