//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; that holds for what it is built of"
)]

mod cli;
mod code;
mod core;
mod doors;
mod gates;
mod jail;
#[cfg(target_os = "linux")]
mod real_agents;
mod support;
mod workspace;
