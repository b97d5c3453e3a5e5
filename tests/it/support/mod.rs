//! What tests share: a world with a daemon, clients of each door, scripts over the core, screens, servers.

pub(crate) mod a6s_artifacts;
pub(crate) mod a6s_client;
pub(crate) mod a6s_desk;
pub(crate) mod adapter;
pub(crate) mod agent_protocol;
pub(crate) mod authenticator;
pub(crate) mod broker_client;
#[cfg(target_os = "linux")]
pub(crate) mod browser;
pub(crate) mod commands;
pub(crate) mod coordinating;
pub(crate) mod desk;
pub(crate) mod graphs;
pub(crate) mod host_hooks;
#[cfg(target_os = "linux")]
pub(crate) mod hub;
pub(crate) mod jails;
pub(crate) mod loopback_client;
pub(crate) mod mcp_examiners;
pub(crate) mod mcp_fixtures;
pub(crate) mod mcp_host;
pub(crate) mod own_answers;
pub(crate) mod own_api;
pub(crate) mod passkeys;
pub(crate) mod processes;
pub(crate) mod receiver;
pub(crate) mod repositories;
pub(crate) mod rules;
pub(crate) mod runs;
#[cfg(target_os = "linux")]
pub(crate) mod sample;
pub(crate) mod screens;
pub(crate) mod script;
pub(crate) mod source;
pub(crate) mod storm;
pub(crate) mod terminal;
pub(crate) mod tokens;
pub(crate) mod waits;
pub(crate) mod ways_outside;
pub(crate) mod webserver;
pub(crate) mod wit_client;
pub(crate) mod wit_world;
mod world;

pub(crate) use world::*;
