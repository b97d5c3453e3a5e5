//! The command line, and the programs that call it: hooks of agents' hosts, adapters, notices.

mod acp;
mod adapt;
mod agent_programs;
mod commands;
mod desktop;
mod diff_colours;
#[cfg(unix)]
mod everyday;
mod forms;
#[cfg(unix)]
mod held_names;
mod hooks;
mod host_hooks;
mod json;
mod locking;
#[cfg(target_os = "linux")]
mod notices;
mod passkeys;
mod permissions;
mod push;
mod repositories;
#[cfg(unix)]
mod resources;
mod screenshots;
mod speaking;
mod ui;
