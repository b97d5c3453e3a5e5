//! A counted model call: it counts from the moment when it is passed on, so also when the worker goes before the
//! answer begins, and the answer is counted as it passes by. The answer is neither kept nor delayed.

use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use flate2::write::{GzDecoder, ZlibDecoder};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

use super::RunProxy;
use super::http::Body;
use super::meter::{CallCount, RunMeter};
use super::usage_scan::UsageScan;

/// The bytes of a request that count as one token if the service reports none.
const BYTES_A_TOKEN: u64 = 4;
/// The most bytes to which an answer is unpacked; the rest passes by uncounted.
const UNPACKED_MAX: u64 = 256 << 20;

/// The data of a request, for an answer that reports nothing.
pub(super) struct RequestCount {
    bytes: AtomicU64,
    /// Reads the model that the request names, until it is found.
    scan: Mutex<UsageScan>,
    /// The model in the request's path.
    named: Option<Box<str>>,
}

impl RequestCount {
    pub(super) fn new(named: Option<Box<str>>) -> Self {
        Self { bytes: AtomicU64::default(), scan: Mutex::new(UsageScan::new(None)), named }
    }

    fn take(&self, piece: &[u8]) {
        self.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        let mut scan = self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        if self.named.is_none() && scan.model().is_none() {
            scan.feed(piece);
        }
    }

    fn model(&self) -> Option<Box<str>> {
        let scan = self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        self.named.clone().or_else(|| scan.model().map(Into::into))
    }

    /// Returns the guessed number of tokens.
    fn guessed(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).div_ceil(BYTES_A_TOKEN)
    }

    /// Returns the count of a call without an answer. A request that was not sent counts as no call.
    fn alone(&self) -> CallCount {
        match self.guessed() {
            0 => CallCount::default(),
            guessed_input => {
                CallCount { model: self.model(), calls: 1, guessed_input, ..CallCount::default() }
            }
        }
    }
}

/// A request body that is counted as it passes by.
pub(super) struct SizedRequest {
    inner: Body,
    count: Arc<RequestCount>,
}

impl SizedRequest {
    pub(super) fn new(inner: Body, count: Arc<RequestCount>) -> Self {
        Self { inner, count }
    }
}

impl HttpBody for SizedRequest {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.count.take(data);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The reader of an answer, by its encoding.
enum Reading {
    Plain(UsageScan),
    Gzip(GzDecoder<Unpacked>),
    Zlib(ZlibDecoder<Unpacked>),
    /// The encoding is unknown, or the data is broken.
    Not,
}

/// The scan of unpacked data.
struct Unpacked {
    scan: UsageScan,
    left: u64,
}

impl Write for Unpacked {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        let length = piece.len() as u64;
        if length > self.left {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.left -= length;
        self.scan.feed(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Reading {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|it: &hyper::header::HeaderValue| it.to_str().ok());
        let scan = UsageScan::new(text(CONTENT_TYPE));
        let packed = text(CONTENT_ENCODING).map(|it| it.trim().to_ascii_lowercase());
        let unpacked = |scan| Unpacked { scan, left: UNPACKED_MAX };
        match packed.as_deref() {
            None if headers.contains_key(CONTENT_ENCODING) => Reading::Not,
            None | Some("" | "identity") => Reading::Plain(scan),
            Some("gzip" | "x-gzip") => Reading::Gzip(GzDecoder::new(unpacked(scan))),
            Some("deflate") => Reading::Zlib(ZlibDecoder::new(unpacked(scan))),
            Some(_) => Reading::Not,
        }
    }

    fn scan(&self) -> Option<&UsageScan> {
        match self {
            Reading::Plain(scan) => Some(scan),
            Reading::Gzip(it) => Some(&it.get_ref().scan),
            Reading::Zlib(it) => Some(&it.get_ref().scan),
            Reading::Not => None,
        }
    }

    /// Reads the next piece. Data that cannot be unpacked ends the reading: earlier reports still count.
    fn feed(&mut self, piece: &[u8]) {
        // Unpacked data is scanned at once, so that a stream is counted as it passes, not at its end.
        let _rest = match self {
            Reading::Plain(scan) => return scan.feed(piece),
            Reading::Gzip(it) => it.write_all(piece).and_then(|()| it.flush()),
            Reading::Zlib(it) => it.write_all(piece).and_then(|()| it.flush()),
            Reading::Not => return,
        };
    }
}

/// A call in progress. If it is dropped before it is settled, it counts by its request alone: the service may have
/// carried it out, and otherwise a worker that goes before the answer begins would evade its budgets.
pub(super) struct OpenCall {
    way: Arc<RunProxy>,
    meter: Arc<RunMeter>,
    number: u64,
    request: Arc<RequestCount>,
    is_settled: bool,
}

impl OpenCall {
    /// Opens the call's line in the run's book.
    pub(super) fn new(way: &Arc<RunProxy>, meter: Arc<RunMeter>, request: Arc<RequestCount>) -> Self {
        let number = meter.open();
        Self { way: way.clone(), meter, number, request, is_settled: false }
    }

    /// Returns the answer, which is counted as it passes by.
    pub(super) fn answered(self, answer: Response<Body>) -> Response<Body> {
        let (head, body) = answer.into_parts();
        // A service that has refused has used nothing, unless it says so.
        let is_made = head.status.is_success();
        let body = CountedAnswer::new(body, &head.headers, self, is_made).boxed();
        Response::from_parts(head, body)
    }

    fn settle(&mut self, count: CallCount) {
        if !std::mem::replace(&mut self.is_settled, true) {
            self.meter.write(self.number, count, true);
            self.tell();
        }
    }

    /// Starts a report of new counts, without waiting for it.
    fn tell(&self) {
        let meter = self.meter.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.way.tasks.spawn_on(async move { meter.tell().await }, &runtime);
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if !self.is_settled {
            let alone = self.request.alone();
            self.settle(alone);
        }
    }
}

/// The answer of a model's service.
struct CountedAnswer {
    inner: Body,
    call: OpenCall,
    reading: Reading,
    /// Whether the call was carried out, so that its usage is guessed if the answer reports none.
    is_made: bool,
    received: u64,
    had_told: bool,
    /// Whether the answer was complete.
    is_whole: bool,
    is_over: bool,
}

impl CountedAnswer {
    fn new(inner: Body, headers: &HeaderMap, call: OpenCall, is_made: bool) -> Self {
        Self {
            inner,
            call,
            reading: Reading::of(headers),
            is_made,
            received: 0,
            had_told: false,
            is_whole: false,
            is_over: false,
        }
    }

    fn count(&self) -> CallCount {
        let scan = self.reading.scan();
        let named: Option<Box<str>> = scan.and_then(UsageScan::model).map(Into::into);
        // If a service does not name the answering model, the requested one counts.
        let model = named.or_else(|| self.call.request.model());
        let told = scan.and_then(|scan| match self.is_over {
            true => scan.has_told().then(|| (scan, scan.told())),
            false => scan.settled().map(|told| (scan, told.clone())),
        });
        match told {
            Some((scan, told)) => {
                CallCount {
                    model,
                    calls: 1,
                    input: told.input,
                    output: told.output,
                    reasoning: told.reasoning,
                    cache_read: told.cache_read,
                    cache_write: told.cache_write,
                    guessed_input: 0,
                    // A truncated answer has reported only a part of its output.
                    guessed_output: match self.is_over && !self.is_whole {
                        true => scan.guessed_output().saturating_sub(told.output),
                        false => 0,
                    },
                }
            }
            None if self.is_over && self.is_made => CallCount {
                model,
                calls: 1,
                guessed_input: self.call.request.guessed(),
                guessed_output: match scan {
                    Some(scan) => scan.guessed_output(),
                    None => self.received.div_ceil(BYTES_A_TOKEN),
                },
                ..CallCount::default()
            },
            None => CallCount { model, ..CallCount::default() },
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.received = self.received.saturating_add(piece.len() as u64);
        self.reading.feed(piece);
        let has_told = self.reading.scan().is_some_and(|it| it.settled().is_some());
        if has_told {
            self.call.meter.write(self.call.number, self.count(), false);
        }
        if has_told && !std::mem::replace(&mut self.had_told, true) {
            self.call.tell();
        }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            let count = self.count();
            self.call.settle(count);
        }
    }
}

impl HttpBody for CountedAnswer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.take(data);
                }
                // This comes before the worker gets the last piece: its next request comes after the count.
                if self.inner.is_end_stream() {
                    self.is_whole = true;
                    self.end();
                }
            }
            Poll::Ready(last) => {
                self.is_whole = last.is_none();
                self.end();
            }
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for CountedAnswer {
    fn drop(&mut self) {
        self.end();
    }
}
