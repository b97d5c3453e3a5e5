//! Systems on which workers cannot be confined yet. Everything refuses; nothing runs unconfined.
#![forbid(unsafe_code)]

use crate::jail::control::{REFUSED, Said, SetupError, Step, frame};
use std::io::Write;

/// Refuses, whatever the plan says.
pub(super) fn main() -> ! {
    let why = "workers can only be confined on Linux in this version";
    let mut error = SetupError::new(Step::Supervisor, why);
    error.exit = Some(REFUSED);
    if let Ok(frame) = frame(&Said::Refused(error)) {
        let _nobody_listens = std::io::stdout().write_all(&frame);
    }
    std::process::exit(REFUSED)
}

/// What the host offers: nothing that is used yet.
pub(in crate::jail) fn host_facts() -> crate::jail::host::Facts {
    crate::jail::host::Facts::default()
}

/// Nothing to do: no worker runs on this system.
///
/// # Errors
/// Never.
pub fn become_subreaper() -> std::io::Result<()> {
    Ok(())
}

/// Nothing to do on this system.
///
/// # Errors
/// Never.
pub fn harden_daemon() -> std::io::Result<()> {
    Ok(())
}

/// Nothing to do: no worker runs on this system.
pub fn sweep_orphans() -> u32 {
    0
}
