//! HTTP on a connection: bounds for heads, for each body, and for all bodies of a door together.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::accept::{Busy, Guard};
use provost_base::limits::HTTP_HEAD_BYTES_MAX;

/// The unit in which bodies are counted, in bytes.
const UNIT: usize = 1 << 10;

/// How long a body may pause.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Makes the server for connections, with the bounds of heads; `head_time` limits a head, and also silence.
pub fn server(head_time: Duration) -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        // The buffer alone would accept a larger head that comes in a few pieces.
        .max_buf_size(HTTP_HEAD_BYTES_MAX)
        .max_header_size(HTTP_HEAD_BYTES_MAX);
    server
}

/// Answers the requests of one connection to a door until it ends; see [`server`].
pub async fn converse<I, S>(door: &'static str, stream: I, head_time: Duration, guard: &Guard, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::ResBody: 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let connection = server(head_time).serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(err) = ended {
                tracing::debug!(door, %err, "connection ended");
            }
            return;
        }
        () = guard.stopping() => connection.as_mut().graceful_shutdown(),
    }
    // Requests from before the stop are still answered; the accept loop bounds how long.
    let _ended = connection.await;
}

/// The body of an answer, which keeps its connection busy until it has been sent; see [`Guard::busy`].
#[derive(Debug)]
pub struct BusyBody<B> {
    body: B,
    _busy: Busy,
}

impl<B> BusyBody<B> {
    /// Keeps the connection busy for as long as this body lasts.
    pub fn new(body: B, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl<B: Body + Unpin> Body for BusyBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The bounds for the bodies at a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyLimits {
    /// The largest body, in bytes.
    pub most: usize,
    /// All bodies together, in bytes; further ones wait for room.
    pub total: usize,
    /// A body up to this size, in bytes, is not counted.
    pub small: usize,
    /// The time for a body, including the wait for room.
    pub time: Duration,
}

/// The memory for bodies, over all connections of a door.
#[derive(Clone, Debug)]
pub struct Room {
    limits: BodyLimits,
    free: Arc<Semaphore>,
}

/// A whole body, and its share of the room for bodies.
#[derive(Debug)]
pub struct Taken {
    /// The bytes of the body.
    pub bytes: Vec<u8>,
    /// The share, which is given back when this is dropped.
    pub share: Held,
}

/// A share of the room for bodies.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "it is there to be dropped")] Option<OwnedSemaphorePermit>);

/// The reason why a body was not received. The rest of it is not read, so no request can follow on its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untaken {
    /// The body is larger than allowed, or announces that.
    TooLarge,
    /// The body paused for too long, or took longer than allowed.
    TooSlow,
    /// The connection ended, or its framing is wrong.
    BrokeOff,
}

impl Room {
    /// Makes the room for bodies within these limits.
    pub fn new(limits: BodyLimits) -> Self {
        Self { limits, free: Arc::new(Semaphore::new(limits.total / UNIT)) }
    }

    /// Reads a whole body.
    ///
    /// # Errors
    /// [`Untaken`].
    pub async fn take(&self, mut body: Incoming) -> Result<Taken, Untaken> {
        let most = self.limits.most;
        let announced = body.size_hint();
        if announced.lower() > most as u64 {
            return Err(Untaken::TooLarge);
        }
        let until = Instant::now() + self.limits.time;
        let mut share = self.share();
        let announced = usize::try_from(announced.lower()).unwrap_or(0);
        share.cover(announced, until).await?;
        let mut bytes = Vec::with_capacity(announced.min(most));
        loop {
            let pause = until.min(Instant::now() + PAUSE_MAX);
            let frame = timeout_at(pause, body.frame()).await.map_err(|_| Untaken::TooSlow)?;
            let Some(frame) = frame else { return Ok(Taken { bytes, share: share.held() }) };
            let Ok(data) = frame.map_err(|_| Untaken::BrokeOff)?.into_data() else { continue };
            if bytes.len() + data.len() > most {
                return Err(Untaken::TooLarge);
            }
            share.cover(bytes.len() + data.len(), until).await?;
            bytes.extend_from_slice(&data);
        }
    }
}

impl Room {
    /// Makes an empty share for a body.
    pub(super) fn share(&self) -> Share {
        Share { room: self.clone(), held: None, covered: self.limits.small }
    }

    /// Returns the bounds of a body, and of all together.
    pub(super) fn limits(&self) -> BodyLimits {
        self.limits
    }
}

/// A body's share of the room.
#[derive(Debug)]
pub(super) struct Share {
    room: Room,
    held: Option<OwnedSemaphorePermit>,
    covered: usize,
}

impl Share {
    /// Returns the held memory, until it is dropped.
    pub(super) fn held(self) -> Held {
        Held(self.held)
    }

    /// Makes the share large enough, as soon as other bodies have given back enough.
    pub(super) async fn cover(&mut self, bytes: usize, until: Instant) -> Result<(), Untaken> {
        if bytes <= self.covered {
            return Ok(());
        }
        // A growing vector may take twice its content; larger steps mean fewer requests for permits.
        let more = (bytes - self.covered).max(self.covered).min(self.room.limits.most);
        let units = u32::try_from(more.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let turn = timeout_at(until, self.room.free.clone().acquire_many_owned(units)).await;
        // The semaphore is never closed; only the time may run out.
        let Ok(Ok(more_units)) = turn else { return Err(Untaken::TooSlow) };
        match &mut self.held {
            Some(held) => held.merge(more_units),
            None => self.held = Some(more_units),
        }
        self.covered += more;
        Ok(())
    }
}
