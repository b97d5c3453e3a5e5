//! Keeps connections open for the next request.
//!
//! A connection that has brought an answer waits here for a while. The daemon closes connections that are silent for
//! longer; the client stops using them before that, so that no request goes into a connection that is about to end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

use provost_base::limits::{OWN_IDLE_MS_MAX, OWN_KEPT_MAX};

/// The sending side of one connection.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// Open connections without a pending request.
#[derive(Default)]
pub(super) struct IdleConnections(Mutex<Vec<(Sender, Instant)>>);

impl IdleConnections {
    /// Takes the connection that was used last, if it can be used again.
    pub(super) async fn take(&self) -> Option<Sender> {
        loop {
            let (mut sender, since) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            let is_fresh = since.elapsed() < Duration::from_millis(OWN_IDLE_MS_MAX);
            if is_fresh && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub(super) fn put(&self, sender: Sender) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < OWN_KEPT_MAX && !sender.is_closed() {
            all.push((sender, Instant::now()));
        }
    }
}
