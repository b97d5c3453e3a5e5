//! Systems other than Linux, where some functions have nothing to do. Where workers cannot be confined, every
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

/// There is no supervisor on this system.
pub(super) fn main() -> ! {
    std::process::exit(REFUSED)
}

/// Refuses, whatever is asked.
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

/// What the host offers: nothing that is used yet.
#[cfg(not(windows))]
pub(crate) fn host_facts() -> Facts {
    Facts { seatbelt: cfg!(target_os = "macos"), ..Facts::default() }
}

/// Nothing to do on this system.
///
/// # Errors
/// Never fails: there is nothing to do.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Nothing to do on this system.
///
/// # Errors
/// Never fails: there is nothing to do.
pub fn harden_daemon() -> io::Result<()> {
    Ok(())
}

/// There is none: no worker gets a door of its own on this system.
///
/// # Errors
/// Always fails with `Unsupported`.
pub fn inherited_socket(_number: i32) -> io::Result<Handle> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing to do: where workers run here, they end with the daemon.
pub fn sweep_orphans() -> u32 {
    0
}

/// Nothing to make ready on this system.
pub(crate) fn prepare_groups() -> Option<Groups> {
    None
}
