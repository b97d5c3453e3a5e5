//! The door of Provost's own API.

mod event_stream;
