//! Systems other than Linux, where some functions have nothing to do. If workers cannot be confined, every
//! function refuses, so that nothing runs unconfined.
#![forbid(unsafe_code)]

use std::io;

use crate::control::REFUSED;
#[cfg(not(any(target_os = "macos", windows)))]
use crate::control::{SetupError, Step};
use crate::launch::{Groups, Handle};
#[cfg(not(any(target_os = "macos", windows)))]
use crate::launch::{Running, Supervisor};
#[cfg(not(windows))]
use crate::machine::Facts;
#[cfg(not(any(target_os = "macos", windows)))]
use crate::output::LiveOutput;
#[cfg(not(any(target_os = "macos", windows)))]
use crate::plan::Plan;

/// Refuses, since there is no supervisor on this system.
pub(super) fn main() -> ! {
    std::process::exit(REFUSED)
}

/// Refuses every request.
#[cfg(not(any(target_os = "macos", windows)))]
pub(crate) async fn start(
    _supervisor: &Supervisor,
    _request: (Vec<u8>, Vec<Handle>),
    _plan: &Plan,
    _output: LiveOutput,
) -> Result<Running, SetupError> {
    Err(SetupError::new(
        Step::Supervisor,
        "workers can only be confined on Linux, macOS and Windows in this version",
    ))
}

/// Returns the host's facts: there are none that are used.
#[cfg(not(windows))]
pub(crate) fn host_facts() -> Facts {
    Facts { seatbelt: cfg!(target_os = "macos"), ..Facts::default() }
}

/// Does nothing on this system.
///
/// # Errors
/// Never: nothing is tried.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Does nothing on this system.
///
/// # Errors
/// Never: nothing is tried.
pub fn harden_daemon() -> io::Result<()> {
    Ok(())
}

/// Fails, since no worker gets a door of its own on this system.
///
/// # Errors
/// Always fails with `Unsupported`.
pub fn inherited_socket(_number: i32) -> io::Result<Handle> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: where workers run here, they end with the daemon.
pub fn sweep_orphans() -> u32 {
    0
}

/// Returns `None`: this system has no control groups.
pub(crate) fn prepare_groups() -> Option<Groups> {
    None
}
