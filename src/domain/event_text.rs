//! An event as JSON. The code that reads all kinds of events is large: it is compiled here, once, and not in each crate that reads events.

use super::Event;

impl Event {
    /// Reads an event from its stored text.
    ///
    /// # Errors
    /// The text is not an event, or is one of a newer version.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
