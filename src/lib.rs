//! Provost: one local daemon through which many AI coding agents work on one repository.
//!
//! Read in this order: `base` (words), `domain` (rules), `engine` and `store` (order and rest), then the edges.
//! `docs/architecture.md` is the map; each module here is a crate, whose manifest says
//! what it may use.

pub use provost_agents as agents;
pub use provost_api as api;
pub use provost_auth as auth;
pub use provost_base as base;
pub use provost_cli as cli;
pub use provost_client as client;
pub use provost_config as config;
pub mod daemon;
pub use provost_domain as domain;
pub use provost_effects as effects;
pub use provost_egress as egress;
pub use provost_engine as engine;
pub use provost_graph as graph;
pub use provost_index as index;
pub use provost_jail as jail;
pub use provost_mcp as mcp;
pub use provost_passkey as passkey;
pub use provost_policy as policy;
pub use provost_protocols as protocols;
pub use provost_service as service;
pub use provost_store as store;
pub use provost_syntax as syntax;
pub use provost_system as system;
pub use provost_telemetry as telemetry;
pub use provost_transport as transport;
pub use provost_ui as ui;
pub use provost_vault as vault;
pub use provost_view as view;
pub use provost_web as web;
pub use provost_workspace as workspace;
