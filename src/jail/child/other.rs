//! Systems other than Linux. Where workers cannot be confined, everything refuses; nothing runs unconfined.
#![forbid(unsafe_code)]

use std::io;

use crate::jail::control::REFUSED;
#[cfg(not(target_os = "macos"))]
use crate::jail::control::{SetupError, Step};
use crate::jail::host::Facts;
use crate::jail::launch::Groups;
#[cfg(not(target_os = "macos"))]
use crate::jail::launch::{Handle, Running, Supervisor};
#[cfg(not(target_os = "macos"))]
use crate::jail::output::LiveOutput;
#[cfg(not(target_os = "macos"))]
use crate::jail::plan::Plan;

/// There is no supervisor on this system.
pub(super) fn main() -> ! {
    std::process::exit(REFUSED)
}

/// Refuses, whatever is asked. A job object and a token with which only the workspace can be written would leave
/// reading and the network open, and every plan promises more than that.
#[cfg(not(target_os = "macos"))]
pub(in crate::jail) async fn start(
    _supervisor: &Supervisor,
    _request: (Vec<u8>, Vec<Handle>),
    _plan: &Plan,
    _output: LiveOutput,
) -> Result<Running, SetupError> {
    Err(SetupError::new(
        Step::Supervisor,
        "workers can only be confined on Linux and macOS in this version: here reading and the network would stay open; run the daemon in WSL",
    ))
}

/// What the host offers: nothing that is used yet.
pub(in crate::jail) fn host_facts() -> Facts {
    Facts { seatbelt: cfg!(target_os = "macos"), ..Facts::default() }
}

/// Nothing to do: no worker runs on this system.
///
/// # Errors
/// Never.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Nothing to do on this system.
///
/// # Errors
/// Never.
pub fn harden_daemon() -> io::Result<()> {
    Ok(())
}

/// There is none: no worker runs on this system.
///
/// # Errors
/// Always.
pub fn inherited_socket(_number: i32) -> io::Result<Handle> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nothing to do: no worker runs on this system.
pub fn sweep_orphans() -> u32 {
    0
}

/// Nothing to make ready: no worker runs on this system.
pub(in crate::jail) fn prepare_groups() -> Option<Groups> {
    None
}
