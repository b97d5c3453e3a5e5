//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; that holds for what it is built of"
)]

#[cfg(unix)]
mod config;
mod layers;
mod source;
mod tidy;
