//! What tests share: a world with a daemon, clients of each door, scripts over the core, screens, servers.

pub(crate) mod a6s_client;
pub(crate) mod desk;
pub(crate) mod loopback_client;
pub(crate) mod mcp_fixtures;
pub(crate) mod mcp_host;
pub(crate) mod screens;
pub(crate) mod script;
pub(crate) mod source;
pub(crate) mod storm;
pub(crate) mod webserver;
pub(crate) mod wit_client;
mod world;

pub(crate) use world::*;
