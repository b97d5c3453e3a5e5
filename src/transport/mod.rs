//! PIPES: bytes in and out, within bounds.
//!
//! Promises: no peer can make us hold more than was allowed, wait longer than was allowed, or stop listening;
//! sockets are ours alone from their first instant, and nothing is removed that is not ours. Leaves who the
//! peer is to `auth` and what the bytes mean to the doors.
#![forbid(unsafe_code)]

pub mod accept;
mod connections;
pub mod http;
pub mod lines;
#[cfg(unix)]
pub mod listen;
pub mod loopback;
pub mod patient;
#[cfg(windows)]
pub mod pipe;
pub mod sse;
#[cfg(unix)]
mod stream;
pub mod websocket;

#[cfg(windows)]
pub use pipe as listen;
#[cfg(windows)]
pub use pipe::Stream;
#[cfg(unix)]
pub use stream::Stream;
