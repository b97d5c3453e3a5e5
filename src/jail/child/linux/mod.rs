//! Jails on Linux. The order of the files is the order of the steps.
//!
//! ```text
//! daemon ── supervisor ── first process of the namespaces ── worker      (tier ns)
//!                    └──────────────────────────────────────  worker      (tier ll)
//! ```
//!
//! The supervisor is single-threaded from its first instruction to its last, so it may fork and allocate. It
//! stays outside of the jail, so that it can end the jail and clean up after it.

mod confined;
mod counts;
mod daemon;
mod failure_pipe;
mod groups;
mod growth;
mod home;
mod landlock;
mod limits;
mod mount_stubs;
mod mounts;
mod namespaces;
mod newcomers;
mod pipes;
mod process_tree;
mod restricted;
mod seccomp;
mod sockets;
mod spare_stubs;
mod supervisor;
mod sys;
mod terminals;
mod watch;

use std::fmt;
use std::io;

pub(crate) use daemon::{First, host_facts};
pub use daemon::{become_subreaper, harden_daemon, sweep_orphans};
pub(crate) use groups::{clear as clear_group, prepare as prepare_groups};
pub use restricted::start_restricted;
pub(super) use supervisor::main;
pub use sys::inherited_socket;

use crate::control::{SetupError, Step};
use crate::plan::Plan;

/// Does one step of the setup. Every failure of a step, by itself or for a test, goes through here.
fn step<T, E: fmt::Display>(
    plan: &Plan,
    step: Step,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, SetupError> {
    if cfg!(debug_assertions) && plan.fail_at == Some(step) {
        return Err(SetupError::new(step, "made to fail"));
    }
    work().map_err(|cause| SetupError::new(step, cause))
}

/// Adds the path to an error.
fn about(path: &std::path::Path) -> impl Fn(io::Error) -> io::Error {
    move |e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}
