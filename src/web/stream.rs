//! The stream of events of a page: the kind of each change, and no content.
//!
//! It begins with `hello`, which has the end of the journal and identifies this daemon and this page. Each event
//! then is `id: SEQ`, `event: change` and its kind, task and approval. A returning reader continues after its
//! `Last-Event-ID`; if that is too far back, or ahead of the journal, it gets `gap` instead, and fetches everything
//! again. `database` tells the age of what the daemon shows, as long as its database does not answer it.

use std::sync::Arc;
use std::time::Duration;

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::query::Query;
use super::session::Reader;
use super::{Web, WebError, assets};
use provost_api::wire::LAST_EVENT_HEADER;
use provost_base::EventSeq;
use provost_base::limits::{WEB_BEAT_EVERY_S, WEB_RESUME_MAX, WEB_RETRY_MS};
use provost_client::Client;
use provost_domain::{Event, EventKind};
use provost_engine::{Encoded, Engine, Follower};
use provost_protocols::event_streams::{EventStreams, EventText, TOO_MANY};
use provost_protocols::loopback::{Answer, empty, stream};
use provost_transport::sse::{CutOff, EventSender, KeepAlive};

/// The path of the stream.
pub(super) const PATH: &str = "/event-stream";

/// Makes the streams of this door.
pub(super) fn streams() -> EventStreams {
    EventStreams::new(|event| Some(changed(event)))
}

/// Encodes an event as a change with its kind, without its content.
fn changed(event: &Event) -> EventText {
    EventText::of(event, "change", &without_content(event))
}

/// Returns the kind of an event, and its task and approval.
pub(super) fn without_content(event: &Event) -> Value {
    let approval = match &event.kind {
        EventKind::ApprovalAsked { approval, .. }
        | EventKind::ApprovalAskedAgain { approval, .. }
        | EventKind::ApprovalAnswered { approval, .. }
        | EventKind::ApprovalExpired { approval }
        | EventKind::GrantFailed { approval, .. } => Some(approval.0),
        _ => None,
    };
    let task = event.kind.task().map(ToString::to_string);
    json!({ "kind": event.kind.name(), "task": task, "approval": approval })
}

/// Returns the first frames of a stream, and the number of the event after which it continues.
fn greeting(last: Option<u64>, head: u64, daemon: &str) -> (String, u64) {
    let hello = json!({ "head": head, "daemon": daemon, "page": assets::version() });
    let from = last.filter(|last| *last <= head && head - last <= WEB_RESUME_MAX);
    let gap = last.is_some() && from.is_none();
    let id = from.unwrap_or(head);
    let mut text = format!("retry: {WEB_RETRY_MS}\nid: {id}\nevent: hello\ndata: {hello}\n\n");
    if gap {
        text.push_str(&format!("id: {id}\nevent: gap\ndata: {}\n\n", json!({ "head": head })));
    }
    (text, id)
}

impl Web {
    /// Answers a request for the stream.
    pub(super) async fn stream(
        &self,
        head: &Parts,
        query: &Query,
        client: Client,
        reader: Reader,
    ) -> Result<Answer, WebError> {
        if head.method != Method::GET {
            return Ok(empty(StatusCode::OK));
        }
        let resumed = match head.headers.get(LAST_EVENT_HEADER) {
            // This door has sent only numbers.
            Some(said) => Some(said.to_str().ok().and_then(|it| it.trim().parse().ok()).unwrap_or(u64::MAX)),
            None => query.number("after")?,
        };
        let about = client.about().await?;
        let busy = || WebError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", TOO_MANY);
        let place = match reader.is_signed_in() {
            true => Some(Arc::clone(&self.signed_in).try_acquire_owned().map_err(|_| busy())?),
            false => None,
        };
        let pulse = KeepAlive::beat(Duration::from_secs(WEB_BEAT_EVERY_S));
        let (sender, body) = self.streams.readers.enter(Some(pulse)).ok_or_else(busy)?;
        let daemon = format!("{} {} {}", about.root, about.pid, about.started_at);
        let (first, from) = greeting(resumed, about.journal_seq, &daemon);
        // A new queue has room for it.
        let _sent = sender.send(first.into());
        let follower = self.streams.events.follow(&self.engine, Some(EventSeq(from)));
        let (stop, api, engine) = (self.stop.clone(), self.api.clone(), self.engine.clone());
        tokio::spawn(async move {
            let _place = place;
            let ended = tokio::select! {
                () = sender.gone() => return,
                () = stop.cancelled() => "the daemon stops",
                () = reader.over(&api) => "this browser is not signed in any more",
                CutOff::Gone | CutOff::TooSlow = tell_age(&engine, &sender) => return,
                why = each(follower, &client, &sender) => match why {
                    Some(why) => why,
                    None => return,
                },
            };
            tracing::debug!(door = "web", why = ended, "a stream of events ends");
            // A reader that is gone does not get it.
            let _sent = sender.send(format!("event: end\ndata: {}\n\n", json!({ "why": ended })).into());
        });
        Ok(stream(body))
    }
}

/// Tells the reader how old what the daemon shows may be, each second for which the database does not answer the daemon, and once
/// that it answers again; returns if the reader cannot be told.
async fn tell_age(engine: &Engine, sender: &EventSender) -> CutOff {
    let mut each = interval(Duration::from_secs(WEB_BEAT_EVERY_S));
    // A reader that takes nothing for a while needs only the newest age.
    each.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_old = false;
    loop {
        each.tick().await;
        let age = engine.stale();
        if age.is_some() || was_old {
            let age_ms = age.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
            let told = format!("event: database\ndata: {}\n\n", json!({ "age_ms": age_ms }));
            if let Err(why) = sender.send_in_turn(told.into()).await {
                return why;
            }
        }
        was_old = age.is_some();
    }
}

/// Sends each event at the reader's pace; returns the reason of the end, if the reader is still there.
async fn each(
    mut follower: Follower<Encoded<EventText>>,
    client: &Client,
    sender: &EventSender,
) -> Option<&'static str> {
    loop {
        let Ok(next) = follower.next().await else { return Some("the journal cannot be read") };
        // An event that has ended the proof was committed before this one.
        if client.is_shut_out() {
            return Some("the name as which this page reads is another agent's now");
        }
        let sent = sender.send_in_turn(next.frame.0.clone()).await;
        if let Err(CutOff::Gone | CutOff::TooSlow) = sent {
            return None;
        }
    }
}
