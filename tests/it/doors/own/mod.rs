//! The door of Provost's own API.

mod enrolment;
mod event_stream;
mod signed_answers;
mod views;
