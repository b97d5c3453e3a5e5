//! The stream of events over all repositories: the kind of each change and its repository, and the state of each
//! repository; no content.
//!
//! It begins with `hello`, which identifies this process and this page, and with `repository` for the state of each. Then comes
//! `change` for each event of a journal. A returning reader continues after its `Last-Event-ID`, a cursor over all repositories
//! (`log.rs`); for a repository where that is not possible it gets `gap`, and fetches that repository again.

use std::time::Duration;

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use std::sync::{Arc, PoisonError};

use super::known::Hub;
use super::log::{Change, Cursor, HubMessage};
use crate::query::Query;
use crate::{WebError, assets};
use provost_api::wire::LAST_EVENT_HEADER;
use provost_base::limits::{WEB_BEAT_EVERY_S, WEB_RETRY_MS};
use provost_protocols::event_streams::TOO_MANY;
use provost_protocols::loopback::{Answer, empty, stream};
use provost_transport::sse::{EventSender, KeepAlive};

/// A reader with its position.
struct Reader {
    sender: EventSender,
    cursor: Cursor,
}

impl Reader {
    /// Sends an event; `false` when the reader has gone.
    async fn send(&mut self, told: &HubMessage) -> bool {
        let (name, data) = match told {
            HubMessage::Change(Change { id, seq, data }) => {
                self.cursor.0.insert(Arc::clone(id), *seq);
                let mut data = data.clone();
                data["repository"] = json!(id);
                ("change", data)
            }
            HubMessage::Gap(id, head) => {
                self.cursor.0.insert(Arc::clone(id), *head);
                ("gap", json!({ "repository": id }))
            }
            HubMessage::Standing(data) => ("repository", data.clone()),
        };
        self.say(name, &data).await
    }

    async fn say(&self, name: &str, data: &Value) -> bool {
        let text = format!("id: {}\nevent: {name}\ndata: {data}\n\n", self.cursor.text());
        self.sender.send_in_turn(text.into()).await.is_ok()
    }

    /// Sends messages until the reader goes.
    async fn each(mut self, hub: Hub, missed: Vec<HubMessage>, mut news: Receiver<Arc<HubMessage>>) {
        let hello = json!({ "daemon": hub.0.identity, "page": assets::version() });
        let retry = format!("retry: {WEB_RETRY_MS}\n\n");
        if self.sender.send_in_turn(retry.into()).await.is_err() || !self.say("hello", &hello).await {
            return;
        }
        let standing = hub.all().into_iter().map(|it| HubMessage::Standing(it.as_told()));
        for told in standing.chain(missed) {
            if !self.send(&told).await {
                return;
            }
        }
        loop {
            let told = tokio::select! {
                () = self.sender.gone() => return,
                () = hub.0.stop.cancelled() => return,
                told = news.recv() => told,
            };
            let goes_on = match told {
                Ok(told) => self.send(&told).await,
                // The dropped messages may concern any repository.
                Err(RecvError::Lagged(_)) => self.catch_up(&hub).await,
                Err(RecvError::Closed) => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    async fn catch_up(&mut self, hub: &Hub) -> bool {
        let now = hub.0.log.lock().unwrap_or_else(PoisonError::into_inner).now();
        let gaps = now.0.into_iter().map(|(id, head)| HubMessage::Gap(id, head));
        let standing = hub.all().into_iter().map(|it| HubMessage::Standing(it.as_told()));
        for told in standing.chain(gaps) {
            if !self.send(&told).await {
                return false;
            }
        }
        true
    }
}

impl Hub {
    /// Answers a request for the stream.
    pub(super) fn stream(&self, head: &Parts, query: &Query) -> Result<Answer, WebError> {
        if head.method != Method::GET {
            return Ok(empty(StatusCode::OK));
        }
        let said = head.headers.get(LAST_EVENT_HEADER).map(|it| it.to_str().unwrap_or_default());
        let resumed = said.or_else(|| query.text("after")).map(Cursor::read);
        let pulse = KeepAlive::beat(Duration::from_secs(WEB_BEAT_EVERY_S));
        let Some((sender, body)) = self.0.readers.enter(Some(pulse)) else {
            return Err(WebError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", TOO_MANY));
        };
        let (missed, cursor, news) = {
            let log = self.0.log.lock().unwrap_or_else(PoisonError::into_inner);
            // The log is locked: an event is either in it, or still to come.
            let news = self.0.told.subscribe();
            match resumed {
                Some(resumed) => {
                    let (missed, now) = log.missed(&resumed);
                    let is_known = |(id, _): &(Arc<str>, u64)| now.0.contains_key(id);
                    (missed, Cursor(resumed.0.into_iter().filter(is_known).collect()), news)
                }
                None => (Vec::new(), log.now(), news),
            }
        };
        tokio::spawn(Reader { sender, cursor }.each(self.clone(), missed, news));
        Ok(stream(body))
    }
}
