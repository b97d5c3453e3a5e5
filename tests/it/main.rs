//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; that holds for what it is built of"
)]

mod config;
mod frames;
mod jail;
mod keys;
mod layers;
mod policy;
mod replay;
mod results;
mod source;
mod store;
mod storm;
mod tidy;
mod transport;
