//! HTTP around the messages: one path, one method, bounded bodies. wit, 3.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::Wit;
use super::asked::Asked;
use super::map::Fault;
use super::wire::{BadEnvelope, Envelope, response};
use crate::base::limits::{WIT_BODIES_BYTES_MAX, WIT_BODY_BYTES_MAX, WIT_BODY_MS_MAX, WIT_SMALL_BODY_BYTES};

/// What bodies are counted in.
const UNIT: usize = 1 << 10;

/// How long one body may pause.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Memory for bodies, over all connections of the door.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

impl Room {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(WIT_BODIES_BYTES_MAX / UNIT)))
    }
}

/// One body's share of that memory.
struct Share {
    room: Room,
    held: Option<OwnedSemaphorePermit>,
    covered: usize,
}

impl Share {
    fn of(room: &Room) -> Self {
        Self { room: room.clone(), held: None, covered: WIT_SMALL_BODY_BYTES }
    }

    /// Makes it large enough, as soon as others have given back what they had.
    async fn cover(&mut self, bytes: usize, until: Instant) -> Result<(), Untaken> {
        if bytes <= self.covered {
            return Ok(());
        }
        // Growing, a vector may have twice what is in it; more than asked for at once is not asked for often.
        let more = (bytes - self.covered).max(self.covered).min(WIT_BODY_BYTES_MAX);
        let units = u32::try_from(more.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let turn = timeout_at(until, self.room.0.clone().acquire_many_owned(units)).await;
        // Nobody closes it; time may run out.
        let Ok(Ok(more_units)) = turn else { return Err(Untaken::TooSlow) };
        match &mut self.held {
            Some(held) => held.merge(more_units),
            None => self.held = Some(more_units),
        }
        self.covered += more;
        Ok(())
    }
}

/// A whole body, and its share of the room for bodies.
struct Taken {
    bytes: Vec<u8>,
    held: Option<OwnedSemaphorePermit>,
}

/// Why a body was not taken in.
enum Untaken {
    TooLarge,
    TooSlow,
    BrokeOff,
}

async fn take(mut body: Incoming, room: &Room) -> Result<Taken, Untaken> {
    let announced = body.size_hint();
    if announced.lower() > WIT_BODY_BYTES_MAX as u64 {
        return Err(Untaken::TooLarge);
    }
    let until = Instant::now() + Duration::from_millis(WIT_BODY_MS_MAX);
    let mut share = Share::of(room);
    let announced = usize::try_from(announced.lower()).unwrap_or(0);
    share.cover(announced, until).await?;
    let mut bytes = Vec::with_capacity(announced.min(WIT_BODY_BYTES_MAX));
    loop {
        let pause = until.min(Instant::now() + PAUSE_MAX);
        let frame = timeout_at(pause, body.frame()).await.map_err(|_| Untaken::TooSlow)?;
        let Some(frame) = frame else { return Ok(Taken { bytes, held: share.held }) };
        let Ok(data) = frame.map_err(|_| Untaken::BrokeOff)?.into_data() else { continue };
        if bytes.len() + data.len() > WIT_BODY_BYTES_MAX {
            return Err(Untaken::TooLarge);
        }
        share.cover(bytes.len() + data.len(), until).await?;
        bytes.extend_from_slice(&data);
    }
}

/// Answers one request. Errors of methods are answers like others; only what is no request has another status.
pub(super) async fn serve(wit: Wit, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.version() == Version::HTTP_11 && !request.headers().contains_key(HOST) {
        return Ok(empty(StatusCode::BAD_REQUEST));
    }
    if !is_rpc(request.uri().path()) {
        let mut answer = Response::new(Full::from("404 Not Found"));
        *answer.status_mut() = StatusCode::NOT_FOUND;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
        return Ok(answer);
    }
    if request.method() != Method::POST {
        let fault = Fault::invalid(&json!({ "message": "requests are sent with POST" }));
        let mut answer = in_json(StatusCode::METHOD_NOT_ALLOWED, response(None, &Err(fault.0)));
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Ok(answer);
    }
    Ok(match take(request.into_body(), &wit.0.room).await {
        Ok(taken) => {
            let (status, text) = respond(&wit, taken).await;
            in_json(status, text)
        }
        Err(Untaken::TooLarge) => closing(empty(StatusCode::PAYLOAD_TOO_LARGE)),
        Err(Untaken::TooSlow) => closing(empty(StatusCode::REQUEST_TIMEOUT)),
        Err(Untaken::BrokeOff) => closing(empty(StatusCode::BAD_REQUEST)),
    })
}

async fn respond(wit: &Wit, taken: Taken) -> (StatusCode, String) {
    let Taken { bytes, mut held } = taken;
    let read = Envelope::parse(&bytes).map(|envelope| {
        let asked = Asked::read(&envelope);
        (envelope.id, asked)
    });
    drop(bytes);
    let bad = |fault: Fault| (StatusCode::BAD_REQUEST, response(None, &Err(fault.0)));
    match read {
        Ok((id, asked)) => {
            // Whoever waits for a lock keeps nobody's request out.
            held.take_if(|_| matches!(asked, Ok(Asked::Acquire(..))));
            let outcome = match asked {
                Ok(asked) => wit.perform(asked).await,
                Err(fault) => Err(fault),
            };
            (StatusCode::OK, response(Some(&id), &outcome.map_err(|fault| fault.0)))
        }
        Err(BadEnvelope::NotJson) => bad(Fault::not_json()),
        Err(BadEnvelope::NotARequest) => bad(Fault::not_a_request()),
        Err(BadEnvelope::OtherVersion(received)) => bad(Fault::other_version(received.as_deref())),
    }
}

fn in_json(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

/// What is left of the body is not read, so nothing can follow it.
fn closing(mut answer: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Whether a path is `/rpc`, plain or percent-encoded.
fn is_rpc(path: &str) -> bool {
    let mut rest = path.as_bytes();
    "/rpc".bytes().all(|wanted| {
        let (byte, after) = match rest {
            [b'%', high, low, after @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok();
                (digits.and_then(|it| u8::from_str_radix(it, 16).ok()), after)
            }
            [byte, after @ ..] => (Some(*byte), after),
            [] => (None, rest),
        };
        rest = after;
        byte == Some(wanted)
    }) && rest.is_empty()
}
