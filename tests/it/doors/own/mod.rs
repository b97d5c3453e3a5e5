//! The door of Provost's own API.

mod enrolment;
mod event_stream;
mod passkey_attacks;
mod signed_answers;
mod views;
