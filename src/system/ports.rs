//! The process that listens at a port of this machine, as far as the kernel's tables show it. Blocking.

use std::fs;

/// The kernel's number for a socket that listens.
const LISTENING: &str = "0A";

/// Longest command line that is reported, in characters.
const COMMAND_LEN_MAX: usize = 120;

/// The owner of a socket that listens at a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// The user that owns the socket.
    pub uid: u32,
    /// The process that has the socket, and its command line; `None` if we may not see its descriptors.
    pub process: Option<(u32, String)>,
}

/// Returns the process that listens at a TCP port, if one does and the system shows it.
pub fn listener_at(port: u16) -> Option<Listener> {
    let (uid, inode) = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| entry(line, port))
    })?;
    Some(Listener { uid, process: holder_of(&inode).map(|pid| (pid, command_of(pid))) })
}

/// The loopback addresses in the kernel's notation, each with its table.
const LOOPBACK: [(&str, &str); 2] =
    [("/proc/self/net/tcp", "0100007F"), ("/proc/self/net/tcp6", "00000000000000000000000001000000")];

/// The kernel's list of addresses of this machine, and the loopback address in its notation.
const ADDRESSES: (&str, &str) = ("/proc/self/net/if_inet6", "00000000000000000000000000000001");

/// Checks whether a process is the only one that listens at this port of both loopback addresses, for this user, and runs the same
/// program as this process. If the machine has no second address, the first is enough. False if the process cannot be examined.
pub fn is_this_program_at(pid: u32, port: u16) -> bool {
    let has_second = fs::read_to_string(ADDRESSES.0).is_ok_and(|it| it.contains(ADDRESSES.1));
    let addresses = if has_second { &LOOPBACK[..] } else { &LOOPBACK[..1] };
    let is_served = || {
        let sockets: Option<Vec<String>> = addresses.iter().map(|at| only_listener(*at, port)).collect();
        sockets.is_some_and(|it| it.iter().all(|inode| has_socket(pid, inode)))
    };
    // The kernel writes its tables in pieces, and leaves out a line if others vanish meanwhile.
    runs_this_program(pid) && (0..LOOKS_MAX).any(|_| is_served())
}

/// How often the tables are read, since other sockets may change them at the same moment.
const LOOKS_MAX: u32 = 4;

/// Returns the number of the only socket that listens at a port of a loopback address, if it is this user's.
fn only_listener((table, address): (&str, &str), port: u16) -> Option<String> {
    let text = fs::read_to_string(table).ok()?;
    let is_there = |line: &&str| line.split_whitespace().nth(1).is_some_and(|it| it.starts_with(address));
    let found = text.lines().skip(1).filter(is_there).filter_map(|line| entry(line, port));
    let mut found: Vec<(u32, String)> = found.collect();
    // A line may be there twice, for the same reason.
    found.dedup();
    match &*found {
        [(uid, inode)] if *uid == super::user_number() => Some(inode.clone()),
        _ => None,
    }
}

fn has_socket(pid: u32, inode: &str) -> bool {
    let wanted = format!("socket:[{inode}]");
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.into_iter().any(|it| fs::read_link(it.path()).is_ok_and(|to| to.as_os_str() == &*wanted))
}

fn runs_this_program(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // The files themselves are compared, since a path may lead to another one by now.
    let file = |process: &str| fs::metadata(format!("/proc/{process}/exe")).map(|it| (it.dev(), it.ino()));
    file("self").is_ok_and(|ours| file(&pid.to_string()).is_ok_and(|its| its == ours))
}

/// Returns the owner and the number of the socket in a line of the kernel's table, if it listens at the port.
fn entry(line: &str, port: u16) -> Option<(u32, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (at, state, uid, inode) = (words.get(1)?, words.get(3)?, words.get(7)?, words.get(9)?);
    let its_port = u16::from_str_radix(at.rsplit(':').next()?, 16).ok()?;
    let found = *state == LISTENING && its_port == port;
    found.then_some((uid.parse().ok()?, (*inode).to_owned()))
}

/// Returns the first process that has the socket among its descriptors.
fn holder_of(inode: &str) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| has_socket(*pid, inode))
}

fn command_of(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let plain = text.trim().chars().map(|it| if it.is_control() { '?' } else { it });
    plain.take(COMMAND_LEN_MAX).collect()
}
