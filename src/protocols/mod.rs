//! Doors. Each translates one protocol into verbs and back, and decides nothing.
//!
//! In every folder `mod.rs` serves connections, `wire.rs` has the messages as they travel, and `map.rs` is the
//! dictionary between the protocol's words and ours, refusals included. `loopback` is what doors over TCP share; `scrape` is no door: it tells
//! collectors and probes numbers.
#![forbid(unsafe_code)]

pub mod a6s;
pub mod agent_protocol;
pub mod broker;
pub mod devit;
pub mod event_streams;
pub mod loopback;
pub mod own;
mod proven;
pub mod scrape;
pub mod wit;

use std::future::Future;
use std::pin::Pin;

use provost_transport::Stream;
use provost_transport::accept::Guard;

/// A protocol, ready to serve connections.
pub trait FrontDoor: Send + Sync {
    /// Its name, for people and logs.
    fn name(&self) -> &'static str;

    /// Serves one connection until it ends. Nothing a peer does ends more than its own connection.
    fn serve(&self, stream: Stream, guard: Guard) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>>;
}
