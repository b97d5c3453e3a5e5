//! Doors. Each translates one protocol into verbs and back, and decides nothing.
//!
//! In every folder, `mod.rs` serves connections, `wire.rs` has the types of the messages, and `map.rs` is the
//! dictionary between the protocol's words and Provost's, including refusals. `loopback` is shared by the doors
//! over TCP; `scrape` is no door: it gives numbers to collectors and probes.
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
    /// Returns its name, for people and logs.
    fn name(&self) -> &'static str;

    /// Serves one connection until it ends. No peer can end more than its own connection.
    fn serve(&self, stream: Stream, guard: Guard) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>>;
}
