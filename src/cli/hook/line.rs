//! The connection at which a hook waits, over a Unix socket.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The variable in which a hook finds its address. DevIt 1.9.
pub(super) const VARIABLE: &str = "DEVIT_ACK_SOCKET";

pub(super) struct Line(UnixStream);

impl Line {
    pub(super) fn to(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).map(Self)
    }

    /// Reads, and fails with `WouldBlock` or `TimedOut` after this long.
    pub(super) fn read_within(&mut self, buffer: &mut [u8], most: Duration) -> io::Result<usize> {
        self.0.set_read_timeout(Some(most))?;
        self.0.read(buffer)
    }
}
