//! The common part of the doors with a stream of the journal's events: their readers, and the text of each event,
//! which is encoded once for all readers.

use hyper::body::Bytes;

use provost_domain::Event;
use provost_engine::{Fanout, Frame};
use provost_transport::sse::Readers;

/// The error for a reader beyond the bound.
pub const TOO_MANY: &str = "there are as many readers of events as there may be";

/// The streams of one door.
pub struct EventStreams {
    /// The connected readers.
    pub readers: Readers,
    /// The encoded events.
    pub events: Fanout<EventText>,
}

impl EventStreams {
    /// Makes streams of the events that this function encodes.
    pub fn new(write: fn(&Event) -> Option<EventText>) -> Self {
        Self { readers: Readers::default(), events: Fanout::new(write) }
    }
}

/// An encoded event, in the form of server-sent events.
pub struct EventText(pub Bytes);

impl EventText {
    /// Encodes an event under this name, with its number as the cursor.
    pub fn of(event: &Event, name: &str, data: &serde_json::Value) -> Self {
        Self(format!("id: {}\nevent: {name}\ndata: {data}\n\n", event.seq.0).into())
    }
}

impl Frame for EventText {
    fn bytes(&self) -> usize {
        self.0.len()
    }
}
