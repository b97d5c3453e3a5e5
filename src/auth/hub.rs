//! Checks whether a process is the page over all repositories: it serves that page's port, and runs this process's own program.
//!
//! Each use asks the kernel, so that no earlier answer counts. The check tells the page from every other program
//! that takes its port, but not from a process of the same user that runs this very program with injected code.

use provost_system::{is_this_program_at, listener_at};

use super::peer::PeerId;

/// Checks whether the connected process serves that page at this port. Blocking, for less than a millisecond.
pub fn is_served_by(peer: &PeerId, port: u16) -> bool {
    // The liveness check is last: if the process still runs, its number has meant it all along.
    u32::try_from(peer.pid).is_ok_and(|pid| is_this_program_at(pid, port)) && peer.is_alive()
}

/// Checks whether any process serves the page. Blocking: if the port has a listener, this searches all processes for it.
pub fn is_served(port: u16) -> bool {
    let process = listener_at(port).and_then(|it| it.process);
    process.is_some_and(|(pid, _)| is_this_program_at(pid, port))
}
