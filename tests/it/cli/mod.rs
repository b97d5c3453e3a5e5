//! The command line, and the programs that call it: hooks of agents' hosts, adapters, notices.

mod adapt;
mod commands;
mod desktop;
mod hooks;
pub(crate) mod host_hooks;
mod json;
pub(crate) mod locking;
pub(crate) mod permissions;
mod screenshots;
