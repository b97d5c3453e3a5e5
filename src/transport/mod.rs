//! Input and output of bytes, within bounds.
//!
//! Promises: no peer can make the daemon hold more memory or wait longer than permitted, or stop listening; sockets
//! are private from their first instant, and only the daemon's own files are removed. `auth` identifies the peer,
//! and the doors interpret the bytes.
#![forbid(unsafe_code)]

pub mod accept;
mod connections;
pub mod http;
pub mod lines;
#[cfg(unix)]
pub mod listen;
pub mod loopback;
#[cfg(windows)]
pub mod pipe;
pub mod sse;
#[cfg(unix)]
mod stream;
pub mod tcp;
pub mod websocket;
pub mod write_timeout;

#[cfg(windows)]
pub use pipe as listen;
#[cfg(windows)]
pub use pipe::Stream;
#[cfg(unix)]
pub use stream::Stream;
