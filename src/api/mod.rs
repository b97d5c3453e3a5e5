//! Provost's own API: one table of endpoints, and the types of requests and answers.
//!
//! Promises: each path, with the types of its request and its answer, is in `table.rs` and nowhere else. The server
//! (`protocols/own`), the client (`client`), the command line and the MCP tools are generated from the table or
//! checked against it. The server carries requests out; server and client make the connections.
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
