//! Work trees on disk: private copies, scans, watched files, and the parts of an apply that need no engine.
//!
//! Promises: files are opened by handles that follow no link; every walk and every read has a bound; nothing here talks
//! to the engine, so that all of it can be called on a thread that may block. Left to others: when a copy is made or a
//! scan is run (`effects`), and whether a file may be written (`service` and `policy`).
#![forbid(unsafe_code)]

pub mod apply_record;
pub mod approval_diff;
pub mod artifact_path;
pub mod change_hints;
pub mod change_plan;
pub mod collect;
#[cfg_attr(windows, path = "copy_windows.rs")]
pub mod copy;
pub mod diff;
pub mod file;
#[cfg_attr(windows, path = "file_watch_windows.rs")]
pub mod file_watch;
pub mod git_objects;
mod git_process;
pub mod git_refs;
mod ground;
#[cfg_attr(windows, path = "integrity_scan_windows.rs")]
pub mod integrity_scan;
pub mod orphaned_copies;
pub mod path_text;
pub mod quiet_git;
#[cfg(not(windows))]
mod sensitive_paths;
#[cfg(unix)]
mod set_aside;
#[cfg(not(windows))]
pub mod shared_file;
pub mod size_quota;
pub mod snapshot;
mod tracked;
pub mod trunk;
#[cfg(not(windows))]
pub mod unshare;
pub mod versions;
pub mod work_trees;

pub use git_process::GitError;
pub use versions::Versions;
