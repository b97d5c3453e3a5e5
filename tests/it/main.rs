//! The one test crate: every promise that Provost makes, tried through real files, sockets and processes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; that holds for what it is built of"
)]

mod approvals;
mod cli;
mod cli_json;
mod config;
mod coordinating;
mod crash;
mod descriptor;
mod desktop;
mod destinations;
mod devit_document;
mod devit_door;
mod devit_fields;
mod devit_policy;
mod devit_shell;
mod devitd_form;
mod docs;
mod engine;
mod frames;
mod greed;
mod guarded;
mod handoff;
mod hooks;
mod hostile;
mod hostile_work;
mod in_force;
mod inside_words;
mod jail;
mod journal;
mod keys;
mod layers;
mod lifetime;
mod listening;
mod mail;
mod mcp_workers;
mod network;
mod peers;
mod policy;
mod policy_files;
mod policy_random;
mod replay;
mod results;
mod runs;
mod screens;
mod screenshots;
mod script;
mod secrets;
mod sessions;
mod sim;
mod slow;
mod source;
mod store;
mod store_sqlite;
mod storm;
mod support;
mod tasks;
mod tidy;
mod transport;
mod trial;
mod watching;
mod webserver;
mod worker_door;
mod workers;
