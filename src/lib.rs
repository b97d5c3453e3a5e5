//! Provost: one local daemon through which many AI coding agents work on one repository.
//!
//! Read in this order: `base` (words), `domain` (rules), `engine` and `store` (order and rest), then the edges.
//! `docs/architecture.md` is the map; `tests/it/gates/layers.rs` holds the table of who may use whom.

pub mod agents;
pub mod api;
pub mod auth;
pub mod base;
pub mod cli;
pub mod client;
pub mod config;
pub mod daemon;
pub mod domain;
pub mod effects;
pub mod egress;
pub mod engine;
pub mod graph;
pub mod index;
pub mod jail;
pub mod mcp;
pub mod policy;
pub mod protocols;
pub mod service;
pub mod store;
pub mod syntax;
pub mod system;
pub mod transport;
pub mod vault;
pub mod workspace;
