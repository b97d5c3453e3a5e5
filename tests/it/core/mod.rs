//! The parts behind every door: rules, judgement, the engine, the store, the names and keys of agents, settings, and a
//! daemon's life.

#[cfg(unix)]
mod ages;
mod approvals;
mod asked_again;
mod changes;
#[cfg(target_os = "linux")]
mod clock;
mod config;
mod conversations;
mod coordinating;
mod coordinating_files;
mod coordinating_storm;
mod crash;
mod crew;
#[cfg(target_os = "linux")]
mod daemon_faults;
#[cfg(target_os = "linux")]
mod daemon_moved;
#[cfg(target_os = "linux")]
mod daemon_postgres;
#[cfg(target_os = "linux")]
mod daemons_of_hosts;
#[cfg(unix)]
mod damage;
#[cfg(target_os = "linux")]
mod database_told;
mod engine;
mod engine_live;
#[cfg(target_os = "linux")]
mod faults;
mod frames;
#[cfg(target_os = "linux")]
mod host_signatures;
#[cfg(target_os = "linux")]
mod hosts_failover;
#[cfg(target_os = "linux")]
mod hosts_faults;
#[cfg(target_os = "linux")]
mod hosts_upgrade;
mod in_force;
mod inside_words;
mod jobs;
mod journal;
mod jsonc;
mod keys;
mod lifetime;
#[cfg(target_os = "linux")]
mod live_of_hosts;
mod looks;
mod mail;
mod memory;
mod merges;
#[cfg(target_os = "linux")]
mod names_of_hosts;
mod one_truth;
mod outgoing;
mod passkey_answers;
#[cfg(unix)]
mod passkey_list;
mod passkeys;
#[cfg(target_os = "linux")]
mod passkeys_of_hosts;
mod policy;
mod policy_files;
mod policy_random;
mod posts;
mod prompts;
mod push;
mod queue;
mod replay;
mod replies;
#[cfg(target_os = "linux")]
mod repo_row_of_hosts;
mod resources;
mod results_of_hosts;
mod roles;
#[cfg(target_os = "linux")]
mod rows_of_hosts;
mod scarce;
mod search;
mod selections;
mod sessions;
mod shared_engine;
mod shared_log;
mod shares;
mod sim;
mod spending;
mod store;
mod store_inboxes;
#[cfg(target_os = "linux")]
mod store_move;
#[cfg(target_os = "linux")]
mod store_postgres;
mod store_sqlite;
#[cfg(target_os = "linux")]
mod supervised;
mod talk;
mod tasks;
mod tasks_of_hosts;
#[cfg(unix)]
mod telemetry;
#[cfg(target_os = "linux")]
mod texts_of_hosts;
mod traces;
mod transcripts;
#[cfg(target_os = "linux")]
mod users_of_hosts;
mod view;
mod view_beside;
mod view_lists;
mod view_repositories;
mod view_waits;
mod view_words;
mod waiters;
#[cfg(target_os = "linux")]
mod work_trees_of_hosts;
mod worker_machines;
mod writing;
