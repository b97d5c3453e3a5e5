//! The stream of events: `GET /event-stream`, server-sent events with a cursor that outlives connections and restarts.
//!
//! Each event of the journal is `id: SEQ`, `event: KIND` and `data:` with the same JSON as at `/events`. A reader
//! continues after the number in `Last-Event-ID`, else in `after`, else after the newest event. It gets each event
//! once and in order: missed events come from the store, at the reader's pace.

use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::handle::Answered;
use super::in_process::VerifiedCaller;
use super::map::{self, OwnError};
use super::{Own, read};
use crate::event_streams::{EventStreams, EventText, TOO_MANY};
use crate::proven::ended;
use provost_api::wire;
use provost_base::limits::OWN_COMMENT_EVERY_S;
use provost_base::{EventSeq, visible};
use provost_domain::{Event, event_kinds};
use provost_transport::accept::Guard;
use provost_transport::sse::{CutOff, EventSender, KeepAlive};

/// Makes the streams of this door.
pub(super) fn streams() -> EventStreams {
    EventStreams::new(|event| Some(EventText::of(event, event.kind.name(), &shape(event))))
}

/// Returns an event in the form of this API: as it is stored, with its time as text.
pub(super) fn shape(event: &Event) -> Value {
    let mut value = serde_json::to_value(event).unwrap_or(Value::Null);
    value["at"] = json!(event.at.rfc3339());
    value
}

fn stops() -> OwnError {
    OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the daemon stops")
        .hint("read on behind the last number, once it runs again")
}

/// The events that a reader wants.
struct Wanted {
    after: EventSeq,
    kinds: Vec<Box<str>>,
}

impl Wanted {
    fn takes(&self, event: &Event) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| **kind == *event.kind.name())
    }
}

impl Own {
    /// Answers a request for the stream. The head of the answer is sent at once, and events when there are any.
    pub(super) async fn stream(
        &self,
        known: VerifiedCaller,
        guard: &Guard,
        head: &Parts,
    ) -> Answered<Response<Body>> {
        if head.method != Method::GET {
            let message = "questions are GET, verbs are POST";
            return Err(OwnError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message));
        }
        let wanted = self.wanted(head).await?;
        let comments = KeepAlive::comment(Duration::from_secs(OWN_COMMENT_EVERY_S));
        let Some((sender, stream)) = self.0.streams.readers.enter(Some(comments)) else {
            let busy = OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", TOO_MANY);
            return Err(busy.hint("try again in a moment"));
        };
        tokio::spawn(self.clone().send_all(known, wanted, sender, guard.stopping()));
        let mut answer = Response::new(Body::new(stream));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Ok(answer)
    }

    async fn wanted(&self, head: &Parts) -> Answered<Wanted> {
        let query: wire::EventStreamQuery = read::of_query(head)?;
        let newest = self.0.provost.engine().journal_head().await.map_err(map::fault)?.seq;
        let resumed = match head.headers.get(wire::LAST_EVENT_HEADER) {
            Some(it) => Some(it.to_str().ok().and_then(|it| it.trim().parse::<u64>().ok()).ok_or_else(|| {
                OwnError::invalid("last-event-id is the number of no event: leave it out, or name the last `id` that was read")
            })?),
            None => query.after,
        };
        let after = resumed.map_or(newest, EventSeq);
        if after > newest {
            let message = format!("the journal ends at event {newest}, before the cursor {after}");
            return Err(OwnError::new(StatusCode::CONFLICT, "cursor_ahead", message)
                .hint("it belongs to another repository, or to a journal that was restored since: read again from the beginning, with after=0"));
        }
        let kinds = query.kinds.unwrap_or_default();
        let kinds: Vec<Box<str>> =
            kinds.split(',').map(str::trim).filter(|it| !it.is_empty()).map(Into::into).collect();
        // Its reader would wait for ever.
        if let Some(it) = kinds.iter().find(|it| event_kinds().all(|kind| kind != &***it)) {
            let message = format!("kinds: no event is of the kind `{}`", visible(it));
            return Err(OwnError::invalid(message).hint("`kind` of each event at GET /events names its kind"));
        }
        Ok(Wanted { after, kinds })
    }

    /// Sends a reader its events until it disconnects, its proof ends, or the daemon stops.
    async fn send_all(
        self,
        known: VerifiedCaller,
        wanted: Wanted,
        sender: EventSender,
        stopping: impl Future<Output = ()> + Send,
    ) {
        let why = tokio::select! {
            () = sender.gone() => return,
            () = stopping => stops(),
            fault = ended(&self.0.names, || self.still(&known)) => fault,
            Err(why) = self.send_each(&known, &wanted, &sender) => match why {
                Some(fault) => fault,
                None => return,
            },
        };
        tracing::debug!(door = "own", error = why.body.error, "a stream of events ends");
        let data = serde_json::to_string(&why.body).unwrap_or_default();
        // A reader that is gone does not get it.
        let _sent = sender.send(format!("event: error\ndata: {data}\n\n").into());
    }

    /// Sends each event; ends with the error for the reader, if it is still connected.
    async fn send_each(
        &self,
        known: &VerifiedCaller,
        wanted: &Wanted,
        sender: &EventSender,
    ) -> Result<std::convert::Infallible, Option<OwnError>> {
        let mut follower = self.0.streams.events.follow(self.0.provost.engine(), Some(wanted.after));
        loop {
            let next = follower.next().await.map_err(|why| {
                Some(OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why.to_string()))
            })?;
            if !wanted.takes(&next.event) {
                continue;
            }
            // The change that has ended the proof was committed before this event.
            self.still(known).map_err(Some)?;
            let sent = sender.send_in_turn(next.frame.0.clone()).await;
            sent.map_err(|_: CutOff| None)?;
        }
    }
}
