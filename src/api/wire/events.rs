//! The types for events and their stream.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Query of `GET /events`: the daemon answers when there are events after `after`, or after `wait_ms`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsQuery {
    /// The last sequence number that the caller has seen; absent means the newest.
    pub after: Option<u64>,
    /// The most events to return; the daemon's page size when absent, and never more than that.
    pub limit: Option<u16>,
    /// How long to wait, in milliseconds; bounded.
    pub wait_ms: Option<u64>,
}

/// Path of the stream of events, the only answer without an end: server-sent events with `id`, `event` and `data`.
pub const EVENT_STREAM: &str = "/event-stream";

/// Header with the number of the last event that a reader of the stream has.
pub const LAST_EVENT_HEADER: &str = "last-event-id";

/// Query of `GET /event-stream`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventStreamQuery {
    /// The last number that the caller has; absent means the newest. The header `last-event-id` takes precedence.
    pub after: Option<u64>,
    /// Only events of these kinds, with commas between them.
    pub kinds: Option<String>,
}

/// `GET /events`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Events {
    /// The events in order, as stored.
    pub events: Vec<Value>,
    /// The number after which the next request continues.
    pub next: u64,
}
