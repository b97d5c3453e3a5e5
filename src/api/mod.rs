//! Provost's own API: one table of endpoints, and the shapes that travel.
//!
//! Promises: a path, the type of a request and the type of its answer stand in `table.rs` and nowhere else.
//! The server (`protocols/own`), the client (`client`), the command line and the tools of MCP are made from
//! it or checked against it. Leaves carrying requests out to the server, and connections to both.
#![forbid(unsafe_code)]

mod endpoint;
mod exposition;
pub mod metric;
mod print;
mod table;
pub mod wire;

pub use endpoint::{ENDPOINTS, Endpoint, Reach, Reply, Request, Row, Which, endpoints};
pub use exposition::{EXPOSITION, exposition};
pub use print::print_markdown;
