//! Finds the ports of Provost's own doors. It asks the kernel, since a list could be incomplete.

use std::collections::BTreeSet;
use std::fs;
use std::io;

/// The kernel's number for a socket that listens.
const LISTENING: &str = "0A";

/// Returns whether this process itself listens at a TCP port, at any address. Blocking.
///
/// # Errors
/// The kernel's tables cannot be read; the port must not be granted then.
pub fn is_our_door(port: u16) -> io::Result<bool> {
    let mut sockets = BTreeSet::new();
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        match fs::read_to_string(table) {
            Ok(text) => sockets.extend(text.lines().filter_map(|line| listener_at(line, port))),
            // This is a kernel without IPv6.
            Err(e) if e.kind() == io::ErrorKind::NotFound && table.ends_with('6') => {}
            Err(e) => return Err(e),
        }
    }
    if sockets.is_empty() {
        return Ok(false);
    }
    for entry in fs::read_dir("/proc/self/fd")? {
        // A descriptor that was closed meanwhile is no door.
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        let socket = target.to_str().and_then(|it| it.strip_prefix("socket:[")?.strip_suffix(']'));
        if socket.is_some_and(|socket| sockets.contains(socket)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the socket in a line of the kernel's table, if it listens at the port.
fn listener_at(line: &str, port: u16) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (at, state, socket) = (words.get(1)?, words.get(3)?, words.get(9)?);
    let its_port = u16::from_str_radix(at.rsplit(':').next()?, 16).ok()?;
    (*state == LISTENING && its_port == port).then(|| (*socket).to_owned())
}
