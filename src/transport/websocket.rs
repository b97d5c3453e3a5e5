//! WebSocket connections from the server's side, for hand-written clients. RFC 6455.
//!
//! Promises: an outgoing message is one whole text frame without a mask; the server sends nothing unasked, no
//! pings, no extensions. A peer's message may come in frames with control frames between; memory is allocated only
//! for received bytes, regardless of the announced length. A message that has begun must end in time; an idle
//! connection may stay. The door interprets the messages.

mod frame;
mod outbox;

use std::future::Future;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

pub use outbox::{Outbox, Topic, Unsent, Waiting};

use super::http::{Room, Share, Taken};
use frame::{HEAD_LEN_MAX, Head, Kind, unmask};
use provost_base::limits::SOCKET_LINGER_MS_MAX;

/// The bytes that are read at once while no head is known.
const READ_BYTES: usize = 4 << 10;

/// The bytes of a payload for which memory is allocated at once. A multiple of four, as masks are.
const PART_BYTES: usize = 64 << 10;

/// The reason for closing a connection. RFC 6455, 7.4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub u16);

impl Code {
    /// The conversation is complete.
    pub const NORMAL: Self = Self(1000);
    /// The daemon is stopping.
    pub const GOING_AWAY: Self = Self(1001);
    /// The peer has sent an invalid frame.
    pub const WRONG: Self = Self(1002);
    /// A text frame is not UTF-8.
    pub const NOT_TEXT: Self = Self(1007);
    /// The peer takes longer than allowed, or may not continue.
    pub const NOT_ALLOWED: Self = Self(1008);
    /// A message larger than allowed.
    pub const TOO_LARGE: Self = Self(1009);
}

/// Returns the answer to a client's `Sec-WebSocket-Key`; `None` if that is not valid. RFC 6455, 4.2.2.
pub fn accept_key(key: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let is_key = STANDARD.decode(key).is_ok_and(|it| it.len() == 16);
    is_key.then(|| STANDARD.encode(Sha1::new().chain_update(key).chain_update(NAME).finalize()))
}

/// Serves a connection until it ends: calls `heard` with every message, and sends the messages in `outbox`. `first`
/// has the bytes that were already read.
pub async fn serve<S>(stream: S, first: Bytes, room: &Room, outbox: &Outbox, heard: impl FnMut(Taken))
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (read, mut write) = tokio::io::split(stream);
    let mut incoming = Incoming { stream: read, buffer: first.into(), begun: None, room };
    let mut peer_ends = false;
    {
        let mut writing = std::pin::pin!(outbox.write(&mut write));
        let reading = async {
            peer_ends = hear(&mut incoming, outbox, heard).await;
            std::future::pending().await
        };
        let done = tokio::select! {
            () = outbox.was_cut() => return,
            done = writing.as_mut() => done,
            () = reading => return,
        };
        if done.is_err() {
            outbox.cut();
            return;
        }
    }
    let _shut = write.shutdown().await;
    if !peer_ends {
        incoming.linger().await;
    }
}

/// Reads until no message can follow; returns whether the peer has closed.
async fn hear<R>(incoming: &mut Incoming<'_, R>, outbox: &Outbox, mut heard: impl FnMut(Taken)) -> bool
where
    R: AsyncRead + Unpin,
{
    loop {
        match incoming.next().await {
            Ok(Received::Message(message)) => heard(message),
            Ok(Received::Ping(payload)) => outbox.pong(payload),
            Ok(Received::Close(code)) => {
                outbox.close_now(code);
                return true;
            }
            Err(Broken::Wrong(code)) => {
                outbox.close_now(code);
                return false;
            }
            Err(Broken::Gone) => {
                outbox.cut();
                return true;
            }
        }
    }
}

/// A message or control frame from the peer.
enum Received {
    Message(Taken),
    Ping(Vec<u8>),
    Close(Code),
}

/// The reason why no more is read.
enum Broken {
    /// The connection has ended.
    Gone,
    /// The peer has broken a rule; the connection is closed with this code.
    Wrong(Code),
}

impl From<Code> for Broken {
    fn from(code: Code) -> Self {
        Broken::Wrong(code)
    }
}

/// The reading half of a connection.
struct Incoming<'a, R> {
    stream: R,
    /// The bytes that were read and belong to no frame yet.
    buffer: Vec<u8>,
    begun: Option<Begun>,
    room: &'a Room,
}

/// A message that is not complete yet.
struct Begun {
    bytes: Vec<u8>,
    share: Share,
    is_text: bool,
    /// The time by which it must be complete.
    until: Instant,
}

impl<R: AsyncRead + Unpin> Incoming<'_, R> {
    /// Returns the next message or control frame. Pongs are ignored, with any content.
    async fn next(&mut self) -> Result<Received, Broken> {
        loop {
            let (head, until) = self.head().await?;
            match head.kind {
                Kind::Text | Kind::Binary if self.begun.is_some() => return Err(Code::WRONG.into()),
                Kind::Text | Kind::Binary => {
                    let (share, is_text) = (self.room.share(), head.kind == Kind::Text);
                    self.begun = Some(Begun { bytes: Vec::new(), share, is_text, until });
                }
                Kind::More if self.begun.is_none() => return Err(Code::WRONG.into()),
                Kind::More => {}
                Kind::Pong => {
                    self.control(head, until).await?;
                    continue;
                }
                Kind::Ping => return Ok(Received::Ping(self.control(head, until).await?)),
                Kind::Close => {
                    let payload = self.control(head, until).await?;
                    return Ok(Received::Close(answer_to(&payload)?));
                }
            }
            if let Some(message) = self.part(head).await? {
                return Ok(Received::Message(message));
            }
        }
    }

    /// Returns the next head, and the time by which its frame must be complete: a begun message has its own time,
    /// other frames have it from their first byte on.
    async fn head(&mut self) -> Result<(Head, Instant), Broken> {
        let mut until = self.begun.as_ref().map(|it| it.until);
        loop {
            if !self.buffer.is_empty() {
                until = until.or_else(|| Some(Instant::now() + self.room.limits().time));
            }
            if let Some((head, taken)) = Head::read(&self.buffer)? {
                self.buffer.drain(..taken);
                return Ok((head, until.unwrap_or_else(Instant::now)));
            }
            self.buffer.reserve(READ_BYTES.max(HEAD_LEN_MAX));
            let reading = self.stream.read_buf(&mut self.buffer);
            let read = match until {
                Some(until) => in_time(until, reading).await?,
                None => reading.await.map_err(|_| Broken::Gone)?,
            };
            if read == 0 {
                return Err(Broken::Gone);
            }
        }
    }

    /// Reads the payload of a control frame.
    async fn control(&mut self, head: Head, until: Instant) -> Result<Vec<u8>, Broken> {
        // Its length was checked: it has at most 125 bytes.
        let mut payload = Vec::new();
        let len = usize::try_from(head.len).map_err(|_| Code::WRONG)?;
        self.fill(&mut payload, len, until).await?;
        unmask(&mut payload, head.mask);
        Ok(payload)
    }

    /// Reads the payload of a frame of the begun message; returns the message if that was its last frame.
    async fn part(&mut self, head: Head) -> Result<Option<Taken>, Broken> {
        let Some(mut begun) = self.begun.take() else { return Err(Code::WRONG.into()) };
        let most = self.room.limits().most;
        let left = most - begun.bytes.len().min(most);
        let mut len = usize::try_from(head.len).ok().filter(|it| *it <= left).ok_or(Code::TOO_LARGE)?;
        while len > 0 {
            let (from, part) = (begun.bytes.len(), len.min(PART_BYTES));
            let room = begun.share.cover(from + part, begun.until).await;
            room.map_err(|_| Code::NOT_ALLOWED)?;
            self.fill(&mut begun.bytes, part, begun.until).await?;
            unmask(&mut begun.bytes[from..], head.mask);
            len -= part;
        }
        if !head.last {
            self.begun = Some(begun);
            return Ok(None);
        }
        if begun.is_text && std::str::from_utf8(&begun.bytes).is_err() {
            return Err(Code::NOT_TEXT.into());
        }
        Ok(Some(Taken { bytes: begun.bytes, share: begun.share.held() }))
    }

    /// Reads this many more bytes.
    async fn fill(&mut self, to: &mut Vec<u8>, len: usize, until: Instant) -> Result<(), Broken> {
        let wanted = to.len() + len;
        to.extend(self.buffer.drain(..len.min(self.buffer.len())));
        to.reserve(wanted - to.len());
        while to.len() < wanted {
            let missing = (wanted - to.len()) as u64;
            if in_time(until, (&mut self.stream).take(missing).read_buf(to)).await? == 0 {
                return Err(Broken::Gone);
            }
        }
        Ok(())
    }

    /// Reads on for a moment, so that the peer gets the close frame and not a reset.
    async fn linger(&mut self) {
        let mut nothing = vec![0; READ_BYTES];
        let over = async { while self.stream.read(&mut nothing).await.is_ok_and(|read| read > 0) {} };
        let _over = timeout(Duration::from_millis(SOCKET_LINGER_MS_MAX), over).await;
    }
}

async fn in_time<T>(until: Instant, work: impl Future<Output = std::io::Result<T>>) -> Result<T, Broken> {
    match timeout_at(until, work).await {
        Ok(done) => done.map_err(|_| Broken::Gone),
        Err(_) => Err(Code::NOT_ALLOWED.into()),
    }
}

/// Returns the code for the answer to a close frame: its own code, if it has one. RFC 6455, 5.5.1.
fn answer_to(payload: &[u8]) -> Result<Code, Code> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(Code::NORMAL) } else { Err(Code::WRONG) };
    };
    let code = u16::from_be_bytes(*code);
    let may_be_sent = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
    if !may_be_sent {
        return Err(Code::WRONG);
    }
    std::str::from_utf8(reason).map(|_| Code(code)).map_err(|_| Code::NOT_TEXT)
}
