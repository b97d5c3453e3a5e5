//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.

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
