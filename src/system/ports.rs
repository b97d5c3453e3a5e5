//! The process that listens at a port of this machine, as far as the kernel's tables show it. Blocking.

use std::fs;

/// The kernel's number for a socket that listens.
const LISTENING: &str = "0A";

/// Longest command line that is told, in characters.
const COMMAND_LEN_MAX: usize = 120;

/// The owner of a socket that listens at a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// The user that owns the socket.
    pub uid: u32,
    /// The process that has it, and its command line; none when we may not see whose descriptors it is among.
    pub process: Option<(u32, String)>,
}

/// The process that listens at a TCP port, if one does and the system tells.
pub fn listener_at(port: u16) -> Option<Listener> {
    let (uid, inode) = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| entry(line, port))
    })?;
    Some(Listener { uid, process: holder_of(&inode).map(|pid| (pid, command_of(pid))) })
}

/// The owner and the number of the socket in a line of the kernel's table, if it listens at the port.
fn entry(line: &str, port: u16) -> Option<(u32, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (at, state, uid, inode) = (words.get(1)?, words.get(3)?, words.get(7)?, words.get(9)?);
    let its_port = u16::from_str_radix(at.rsplit(':').next()?, 16).ok()?;
    let found = *state == LISTENING && its_port == port;
    found.then_some((uid.parse().ok()?, (*inode).to_owned()))
}

/// The first process among whose descriptors the socket is.
fn holder_of(inode: &str) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok()).find(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors.into_iter().any(|it| fs::read_link(it.path()).is_ok_and(|to| to.as_os_str() == &*wanted))
    })
}

fn command_of(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let plain = text.trim().chars().map(|it| if it.is_control() { '?' } else { it });
    plain.take(COMMAND_LEN_MAX).collect()
}
