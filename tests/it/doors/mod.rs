//! The common behaviour of the doors, or of several of them together, and below it a folder for each door.

mod a6s;
#[cfg(unix)]
mod absolute_paths;
mod agent_protocol;
mod agree;
mod broker;
mod devit;
mod heads;
mod hostile;
mod imitation;
mod listening;
mod loopback;
mod mcp;
mod names;
#[cfg(target_os = "linux")]
mod names_crossed;
#[cfg(target_os = "linux")]
mod origins;
mod own;
mod own_answers;
#[cfg(unix)]
mod paths_behind_links;
mod peers;
#[cfg(unix)]
mod proof_ended;
#[cfg(unix)]
mod scrape;
#[cfg(target_os = "linux")]
mod shares_at_doors;
#[cfg(target_os = "linux")]
mod shares_of_hosts;
mod table;
mod tokens;
mod transport;
#[cfg(unix)]
mod unclear;
#[cfg(target_os = "linux")]
mod web;
mod wit;
