//! HANDS: what the core owes to the outside world, carried out after the commit that owes it.
//!
//! Promises: a worker is started at most once for each effect, and never before its start is on record; what it
//! left reaches the core even when the core is busy at that moment; a run that this daemon did not see end is
//! reported as lost, never as done. A hook runs at least once, and nothing of it outlives it. What a worker says is
//! bounded and cleaned before it becomes a report.
//!
//! Left to others: whether a task may run (`policy`), how it is confined (`jail`), who hears of it (`domain`).
#![forbid(unsafe_code)]

#[cfg_attr(windows, path = "ack_windows.rs")]
mod ack;
mod apart;
#[cfg(not(windows))]
mod aside;
mod budget;
mod camera;
mod capture;
mod compact;
#[cfg_attr(windows, path = "copy_windows.rs")]
mod copy;
mod desk;
#[cfg_attr(not(target_os = "linux"), path = "desktop_elsewhere.rs")]
mod desktop;
mod door;
mod errand;
#[cfg(target_os = "linux")]
mod gallery;
mod gather;
mod git;
mod ground;
mod grown;
mod handoff;
mod heavy;
mod hints;
mod hook;
#[cfg_attr(windows, path = "keeper_windows.rs")]
mod keeper;
mod led;
mod lent;
mod lines;
mod mcp;
mod network;
mod outside;
mod prepare;
mod programs;
mod reaper;
mod reason;
mod rehearse;
mod remains;
mod result;
mod router;
mod run;
mod secrets;
#[cfg(not(windows))]
mod shared;
mod shell;
mod shield;
#[cfg_attr(not(target_os = "linux"), path = "snap_elsewhere.rs")]
mod snap;
#[cfg_attr(windows, path = "sockets_windows.rs")]
mod sockets;
#[cfg_attr(windows, path = "survey_windows.rs")]
mod survey;
#[cfg(not(windows))]
mod suspects;
mod talk;
mod told;
mod tracked;
mod unseen;
mod usage;
#[cfg_attr(windows, path = "watch_windows.rs")]
mod watch;
mod watcher;
mod worker;

pub use camera::{Backend, Camera, Gallery};
pub use desktop::{DesktopOptions, DesktopParts, TaskNotices};
pub use door::{OpenDoor, WorkersDoor};
pub use errand::Keep;
pub use hook::{HookCommand, HookParts, Told};
pub use keeper::keep_if_asked;
pub use network::not_ours;
pub use rehearse::{Left, Rehearsal, Rehearsed, rehearse};
pub use result::{End, Outcome, Output, Run, Spoken, outcome};
pub use router::{Hands, Parts};
pub use shell::shell_profile;
pub use shield::held_outside;
pub use worker::{Profiles, WorkerParts};
