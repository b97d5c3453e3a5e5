//! An event as JSON. Reading each kind of event is much code: it is compiled here, once, and not in each crate that reads some.

use super::Event;

impl Event {
    /// The event that a text has, as it is stored.
    ///
    /// # Errors
    /// What is no event, or one of a newer version.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
