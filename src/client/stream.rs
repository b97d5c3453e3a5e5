//! Reads the stream of events.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::{Bytes, Incoming};
use serde_json::Value;

use super::{Client, ClientError, DaemonRoute, failure, is_ours};
use provost_api::wire;
use provost_base::limits::{OWN_ANSWER_BYTES_MAX, OWN_COMMENT_EVERY_S};

/// The time for which the daemon may be silent: it sends three comments in this time.
const SILENCE_MAX: Duration = Duration::from_secs(3 * OWN_COMMENT_EVERY_S);

/// A reader of the stream of events.
pub struct EventReader {
    body: Incoming,
    read: Vec<u8>,
}

impl Client {
    /// Opens a stream of the events after number `after`: those of the journal first, then each as it is committed.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn event_stream(&self, after: u64) -> Result<EventReader, ClientError> {
        let DaemonRoute::Socket(socket) = &self.way else {
            return Err(ClientError::Broken("events are streamed over a connection alone".into()));
        };
        let target = format!("{}?after={after}", wire::EVENT_STREAM);
        let mut sender = super::connect(socket).await?;
        let request = self.message(Method::GET, &target, Bytes::new())?;
        let response = sender.send_request(request).await.map_err(ClientError::broken)?;
        let (head, body) = response.into_parts();
        is_ours(&head)?;
        if head.status.is_success() {
            return Ok(EventReader { body, read: Vec::new() });
        }
        Err(failure(head.status, body).await)
    }
}

impl EventReader {
    /// Waits for the next event, in the shape of `/events`.
    ///
    /// # Errors
    /// [`ClientError`]; also when the stream ends: the daemon gives a reason, or has ended itself.
    pub async fn next(&mut self) -> Result<Value, ClientError> {
        loop {
            if let Some(event) = self.taken()? {
                return Ok(event);
            }
            let frame = tokio::time::timeout(SILENCE_MAX, self.body.frame()).await;
            let frame = frame.map_err(|_| ClientError::Slow)?;
            let frame = frame.ok_or_else(|| ClientError::Broken("the daemon has ended the stream".into()))?;
            let Ok(data) = frame.map_err(ClientError::broken)?.into_data() else { continue };
            if self.read.len() + data.len() > OWN_ANSWER_BYTES_MAX {
                return Err(ClientError::Broken("an event is larger than any is".into()));
            }
            self.read.extend_from_slice(&data);
        }
    }

    /// Takes the next whole event out of the bytes that were read; comments are skipped.
    fn taken(&mut self) -> Result<Option<Value>, ClientError> {
        while let Some(end) = self.read.windows(2).position(|it| it == b"\n\n") {
            let frame: Vec<u8> = self.read.drain(..end + 2).collect();
            let frame = String::from_utf8_lossy(&frame);
            let Some(data) = frame.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let broken =
                |why: serde_json::Error| ClientError::Broken(format!("an event makes no sense ({why})"));
            if frame.lines().any(|line| line == "event: error") {
                let fault: wire::ErrorBody = serde_json::from_str(data).map_err(broken)?;
                return Err(ClientError::Ended(fault));
            }
            return serde_json::from_str(data).map(Some).map_err(broken);
        }
        Ok(None)
    }
}
