//! Whether a process is the page over all repositories: it serves that page's port, and runs the program that this process runs.
//!
//! The kernel is asked at each use, so that nothing that was true before counts. It tells the page from every other program that
//! takes its port. A process of the same user that runs this very program with code of its own inside it is not told apart.

use provost_system::{is_this_program_at, listener_at};

use super::peer::PeerId;

/// Whether the process that has connected serves that page at this port. Blocking, for less than a millisecond.
pub fn is_served_by(peer: &PeerId, port: u16) -> bool {
    // Asked last: if it still runs, the number has meant it all along.
    u32::try_from(peer.pid).is_ok_and(|pid| is_this_program_at(pid, port)) && peer.is_alive()
}

/// Whether any process serves it. Blocking; where one listens there, it is looked for among all processes.
pub fn is_served(port: u16) -> bool {
    let process = listener_at(port).and_then(|it| it.process);
    process.is_some_and(|(pid, _)| is_this_program_at(pid, port))
}
