//! Work trees on disk: private copies, scans, watched files, and the parts of an apply that need no engine.
//!
//! Promises: files are opened by handles that follow no link; every walk and every read has a bound; nothing here talks
//! to the engine, so that all of it can be called on a thread that may block. Left to others: when a copy is made or a
//! scan is run (`effects`), and whether a file may be written (`service` and `policy`).
#![forbid(unsafe_code)]

pub(crate) mod apply_record;
pub(crate) mod approval_diff;
pub(crate) mod artifact_path;
pub(crate) mod change_hints;
pub(crate) mod change_plan;
pub(crate) mod collect;
#[cfg_attr(windows, path = "copy_windows.rs")]
pub(crate) mod copy;
pub(crate) mod diff;
pub(crate) mod file;
#[cfg_attr(windows, path = "file_watch_windows.rs")]
pub(crate) mod file_watch;
#[cfg_attr(windows, path = "integrity_scan_windows.rs")]
pub(crate) mod integrity_scan;
pub(crate) mod orphaned_copies;
pub(crate) mod path_text;
#[cfg(not(windows))]
mod sensitive_paths;
pub(crate) mod size_quota;
pub(crate) mod snapshot;
mod tracked;
#[cfg(not(windows))]
pub(crate) mod unshare;
pub(crate) mod versions;

pub use versions::Versions;
