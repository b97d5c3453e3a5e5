//! Carries out the core's pending effects in the outside world, after the commit that stored them.
//!
//! Promises: a worker is started at most once for each effect, and never before its start is recorded; its result
//! reaches the core even if the core is busy at that moment; a run whose end this daemon did not see is reported as
//! lost, never as done. A hook runs at least once, and none of its processes outlives it. A worker's output is
//! bounded and cleaned before it becomes a report.
//!
//! Left to others: whether a task may run (`policy`), how it is confined (`jail`), which agents are notified
//! (`domain`), and the deeds for which the wiring gives the hands: jobs (`agents`) and applies (`service`).
#![forbid(unsafe_code)]

mod ack;
mod acp;
mod agent_run;
mod budget;
mod capture;
#[cfg_attr(not(target_os = "linux"), path = "capture_backend_elsewhere.rs")]
mod capture_backend;
mod capture_config;
mod command_lines;
mod compact;
mod conversation;
mod cut_off;
mod deeds;
#[cfg_attr(not(target_os = "linux"), path = "desktop_elsewhere.rs")]
mod desktop;
mod desktop_command;
mod desktop_options;
mod door;
mod engine_handle;
mod git;
mod heavy;
mod hook;
mod interrupted_runs;
#[cfg_attr(windows, path = "keeper_windows.rs")]
mod keeper;
mod kept_sessions;
mod line;
mod link_targets;
mod mcp;
mod mcp_result;
mod needs;
mod network;
mod notices;
mod other_trees;
mod outside;
mod prepare;
mod programs;
mod read_only_paths;
mod reaper;
mod reason;
mod rehearse;
mod result;
mod resume;
mod router;
mod run;
mod run_outside;
mod scan_report;
#[cfg(target_os = "linux")]
mod screenshot_folder;
mod secrets;
mod shared_checkout;
mod shell;
#[cfg_attr(windows, path = "sockets_windows.rs")]
mod sockets;
mod spending;
mod tree_turns;
mod usage;
mod watcher;
mod work_tree_run;
mod worker;

pub use acp::{Asker as QuestionAsker, Judge as PermissionJudge, Verdict as PermissionVerdict};
pub use agent_run::{Keep, WriteTree};
pub use capture_config::{Backend, CaptureConfig, ScreenshotFolder};
pub use deeds::{DeedHands, Undertaking};
pub use desktop_command::{DesktopCommand, DesktopSystem};
pub use desktop_options::{DesktopOptions, DesktopParts, PageAddress, TaskNotices};
pub use door::{OpenDoor, WorkersDoor};
pub use hook::{HookCommand, HookMessage, HookParts};
pub use keeper::keep_if_asked;
pub use network::not_ours;
pub use notices::{
    Agreed, Attempt, NO_SUBJECT, NoticeAddress, NoticeParts, NoticeService, NoticeSettings, NoticeUrl,
    Notices, PushSending, Recipient, ServerKey, seal, seal_with, webhook_signatures,
};
pub use rehearse::{Left, Rehearsal, Rehearsed, rehearse};
pub use result::{End, Outcome, Output, Spoken, TaskRun, outcome};
pub use router::{EffectParts, EffectRunner};
pub use run_outside::runs_outside;
pub use shell::shell_profile;
pub use work_tree_run::Withhold;
pub use worker::{Profiles, RoomNow, Share, TraceParent, WorkerParts};
