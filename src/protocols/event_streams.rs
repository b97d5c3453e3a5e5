//! What the doors with a stream of the journal's events share: their readers, and each event's text, which is written once for all
//! of them.

use hyper::body::Bytes;

use provost_domain::Event;
use provost_engine::{Fanout, Frame};
use provost_transport::sse::Readers;

/// What a reader is told where no place is left.
pub const TOO_MANY: &str = "there are as many readers of events as there may be";

/// The streams of one door.
pub struct EventStreams {
    /// Those who read.
    pub readers: Readers,
    /// What they are sent.
    pub events: Fanout<EventText>,
}

impl EventStreams {
    /// Streams of what this writes of an event.
    pub fn new(write: fn(&Event) -> Option<EventText>) -> Self {
        Self { readers: Readers::default(), events: Fanout::new(write) }
    }
}

/// An event as it travels, in the form of server-sent events.
pub struct EventText(pub Bytes);

impl EventText {
    /// The text of an event under this name, with its number as the cursor.
    pub fn of(event: &Event, name: &str, data: &serde_json::Value) -> Self {
        Self(format!("id: {}\nevent: {name}\ndata: {data}\n\n", event.seq.0).into())
    }
}

impl Frame for EventText {
    fn bytes(&self) -> usize {
        self.0.len()
    }
}
