//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; that holds for what it is built of"
)]

mod cli;
mod config;
mod devit_door;
mod frames;
mod jail;
mod journal;
mod keys;
mod layers;
mod listening;
mod peers;
mod policy;
mod policy_files;
mod policy_random;
mod replay;
mod results;
mod runs;
mod source;
mod store;
mod store_sqlite;
mod storm;
mod support;
mod tidy;
mod transport;
