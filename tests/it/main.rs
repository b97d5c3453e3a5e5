//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.

mod config;
mod frames;
mod jail;
mod keys;
mod layers;
mod replay;
mod results;
mod runs;
mod source;
mod tidy;
mod transport;
