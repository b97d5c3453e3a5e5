//! Answers over loopback HTTP, and the headers that every answer has.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};

use provost_transport::accept::Busy;
use provost_transport::sse::EventStream;

/// The answer of a door to a request.
pub type Answer = Response<Reply>;

/// The body of an answer. Its connection is not closed to make room while it is sent.
#[derive(Debug)]
pub struct Reply {
    content: Content,
    _busy: Option<Busy>,
}

#[derive(Debug)]
enum Content {
    /// An answer that is complete before it is sent.
    Whole(Full<Bytes>),
    /// A stream of events.
    Events(EventStream),
    /// The body of an answer that a library has made.
    Foreign(BoxBody<Bytes, Infallible>),
}

impl Reply {
    fn new(content: Content) -> Self {
        Self { content, _busy: None }
    }

    /// Returns the same body, which keeps its connection open while it is sent.
    pub(crate) fn keeping(self, busy: Option<Busy>) -> Self {
        Self { _busy: busy, ..self }
    }
}

/// Makes an answer with a whole body.
pub fn whole(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Reply::new(Content::Whole(Full::new(body.into()))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Makes an answer without a body.
pub fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Reply::new(Content::Whole(Full::default())));
    *answer.status_mut() = status;
    answer
}

/// Makes an answer that goes on until its reader or its sender ends it.
pub fn stream(events: EventStream) -> Answer {
    let mut answer = Response::new(Reply::new(Content::Events(events)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// Converts an answer that a library has made.
pub fn foreign(answer: Response<BoxBody<Bytes, Infallible>>) -> Answer {
    answer.map(|body| Reply::new(Content::Foreign(body)))
}

/// Makes a redirect to another address.
pub(super) fn led_on(to: &str) -> Answer {
    let mut answer = empty(StatusCode::TEMPORARY_REDIRECT);
    // The target has passed through a parser of addresses already.
    if let Ok(to) = HeaderValue::from_str(to) {
        answer.headers_mut().insert(LOCATION, to);
    }
    answer
}

/// Marks an answer as the last one on its connection.
pub fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Forbids browsers and caches to store an answer, to guess its content type, and to
/// show it inside of a page.
pub(crate) fn dressed(mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let is_page = headers.get(CONTENT_TYPE).is_some_and(|it| it.as_bytes().starts_with(b"text/html"));
    if is_page {
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        let frames = HeaderValue::from_static("frame-ancestors 'none'");
        headers.entry("content-security-policy").or_insert(frames);
    }
    answer
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().content {
            Content::Whole(body) => Pin::new(body).poll_frame(cx),
            Content::Events(events) => events.poll_next(cx).map(|next| next.map(|it| Ok(Frame::data(it)))),
            Content::Foreign(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(body) => body.is_end_stream(),
            Content::Events(_) => false,
            Content::Foreign(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(body) => body.size_hint(),
            Content::Events(_) => SizeHint::default(),
            Content::Foreign(body) => body.size_hint(),
        }
    }
}
