//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.
#![expect(clippy::unwrap_used, reason = "an unwrap that fails is a test that fails")]

mod frames;
mod keys;
mod listening;
mod peers;
mod replay;
mod transport;
