//! Workers and their jails: what a jail promises, what a worker gets in it, what it does there and leaves
//! behind.

mod acp;
mod agents;
mod attempts;
mod descriptor;
mod destinations;
mod ends;
mod errands;
#[cfg(target_os = "linux")]
mod escapes;
mod greed;
mod groups;
mod guarded;
mod hogs;
mod job;
mod kept_out;
mod later;
#[cfg(target_os = "linux")]
mod left_behind;
mod metered;
mod needs;
mod nested_repositories;
mod network;
mod output;
mod pipes;
mod plan;
mod protected;
#[cfg(target_os = "linux")]
mod queue;
mod refusals;
mod repositories;
mod root;
mod run_outside;
mod runs;
mod scan_report;
mod seatbelt;
mod secrets;
mod shared_files;
#[cfg(target_os = "linux")]
mod terminals;
mod trial;
mod walls;
mod worker_door;
