//! The peer of a TCP connection within this machine, by the kernel's data.
//!
//! This module asks the kernel over netlink (`sock_diag`) about exactly this connection, by both of its ends,
//! from the peer's side. Only an established one with an inode counts: the kernel attributes a closed socket,
//! or one in a waiting state, to the superuser, and it may have been any user's.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::peer::same_namespace;
use super::{Rejected, unless_busy};

/// Whether this system can tell the peers.
pub const KNOWS_PEERS: bool = true;

/// `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST` and `NLMSG_ERROR`.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const ERROR: u16 = 2;

/// `TCP_ESTABLISHED`, as the kernel numbers states.
const ESTABLISHED: u8 = 1;

/// The sizes of a netlink header, of a socket's identification, and of a question and an answer about one.
const HEADER: usize = 16;
const SOCKET_ID: usize = 48;
const QUESTION: usize = HEADER + 8 + SOCKET_ID;
const ANSWER: usize = HEADER + 4 + SOCKET_ID + 20;

/// The most answers to abandoned questions of this thread that are skipped.
const STALE_MAX: u32 = 16;

/// Programs that carry connections of containers and virtual machines to this machine without root's help, by the
/// beginning of the name that the kernel keeps for a program. Each runs as its user, but the processes behind it do
/// not.
const CARRIERS: [&str; 8] =
    ["gvproxy", "passt", "pasta", "qemu-system-", "rootlesskit", "rootlessport", "slirp4netns", "vpnkit"];

/// A peer's end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopbackPeer {
    /// The user that owns the socket.
    pub uid: u32,
    /// The socket's number, by which the processes that hold it can be found.
    pub inode: u32,
}

impl LoopbackPeer {
    /// Asks the kernel which socket has connected from `peer` to `us`.
    ///
    /// # Errors
    /// [`Rejected::Gone`] if the connection no longer exists, or the kernel does not say; [`Rejected::Busy`].
    pub fn of(peer: SocketAddr, us: SocketAddr) -> Result<Self, Rejected> {
        thread_local! {
            /// Open for as long as the thread runs: a question then takes about a microsecond.
            static KERNEL: RefCell<Option<Kernel>> = const { RefCell::new(None) };
        }
        KERNEL.with_borrow_mut(|kernel| {
            let open = match kernel.take() {
                Some(open) => Ok(open),
                None => Kernel::open(),
            };
            let gone = |error: io::Error| unless_busy(&error, Rejected::Gone);
            let mut open = open.map_err(gone)?;
            let answer = open.ask(peer, us).map_err(gone)?;
            // A socket that could not answer is not asked again.
            *kernel = Some(open);
            answer.ok_or(Rejected::Gone)
        })
    }

    /// Checks that the peer runs as this user.
    ///
    /// # Errors
    /// [`Rejected::OtherUser`].
    pub fn check_same_user(self, our_uid: u32) -> Result<Self, Rejected> {
        if self.uid == our_uid { Ok(self) } else { Err(Rejected::OtherUser) }
    }

    /// Checks that the peer is a process in the daemon's pid namespace, and not the daemon, which connects only on
    /// behalf of a worker. Searches the descriptors of other processes, the newest first, and takes the first
    /// process that has the socket for the peer: any process that has the socket can speak for all that share it.
    /// Blocking; a millisecond if the peer is new, ten if it is old.
    ///
    /// # Errors
    /// [`Rejected::Jailed`]; [`Rejected::Gone`] if no visible process has the socket; [`Rejected::Busy`].
    pub fn check_not_jailed(self) -> Result<Self, Rejected> {
        let gone = |error: io::Error| unless_busy(&error, Rejected::Gone);
        let jailed = |error: io::Error| unless_busy(&error, Rejected::Jailed);
        match holders(BTreeSet::from([self.inode])).map_err(gone)?.get(&self.inode) {
            // An unknown namespace counts as another one.
            Some(pid) if same_namespace(*pid).map_err(jailed)? => Ok(self),
            Some(_) => Err(Rejected::Jailed),
            None if sockets_of("self").map_err(gone)?.any(|it| it == self.inode) => Err(Rejected::Jailed),
            None => Err(Rejected::Gone),
        }
    }
}

impl LoopbackPeer {
    /// Checks that the peer speaks for itself, and carries no other program's connection. Blocks as long as
    /// [`LoopbackPeer::check_not_jailed`].
    ///
    /// # Errors
    /// [`Rejected::Carried`]; [`Rejected::Gone`] if no visible process has the socket; [`Rejected::Busy`].
    pub fn check_not_carried(self) -> Result<Self, Rejected> {
        let gone = |error: io::Error| unless_busy(&error, Rejected::Gone);
        match holders(BTreeSet::from([self.inode])).map_err(gone)?.get(&self.inode) {
            Some(pid) if is_carrier(&pid.to_string()) => Err(Rejected::Carried),
            Some(_) => Ok(self),
            None => Err(Rejected::Gone),
        }
    }
}

/// Checks whether a program runs that carries others' connections to this machine. Blocking; a millisecond or two.
pub fn carriers_are_about() -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = processes.filter_map(|it| it.file_name().to_str().map(str::to_owned));
    pids.any(|pid| pid.starts_with(|c: char| c.is_ascii_digit()) && is_carrier(&pid))
}

fn is_carrier(pid: &str) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    CARRIERS.iter().any(|carrier| name.starts_with(carrier))
}

/// Returns the other process that has each of these sockets: of several that share one, the newest. A socket that
/// no visible process has is left out. Blocking; searches the descriptors of processes once for all sockets. It
/// skips the daemon's own process, which has most of the sockets and is no peer.
///
/// # Errors
/// If there is no descriptor left to look with.
pub fn holders(mut sockets: BTreeSet<u32>) -> io::Result<BTreeMap<u32, i32>> {
    let mut found = BTreeMap::new();
    let processes = std::fs::read_dir("/proc")?.flatten();
    let mut pids: Vec<i32> =
        processes.filter_map(|it| it.file_name().to_str().and_then(|it| it.parse().ok())).collect();
    pids.retain(|pid| u32::try_from(*pid) != Ok(std::process::id()));
    pids.sort_unstable_by(|a, b| b.cmp(a));
    for pid in pids {
        for socket in sockets_of(&pid.to_string())? {
            if sockets.remove(&socket) {
                found.insert(socket, pid);
            }
            if sockets.is_empty() {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// Returns the numbers of the sockets among a process's descriptors, as far as the daemon may see them. Those that
/// were opened last mostly come first, since the wanted socket is new.
fn sockets_of(process: &str) -> io::Result<impl Iterator<Item = u32>> {
    let folder = format!("/proc/{process}/fd");
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if provost_system::is_out_of_something(&error) => return Err(error),
        // The process has ended, or belongs to a user whose processes the daemon may not look at.
        entries => entries.into_iter().flatten().flatten(),
    };
    let mut descriptors: Vec<u32> = entries.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect();
    descriptors.sort_unstable_by(|a, b| b.cmp(a));
    Ok(descriptors.into_iter().filter_map(move |it| {
        let to = std::fs::read_link(format!("{folder}/{it}")).ok()?;
        to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    }))
}

/// A netlink socket for questions to the kernel.
struct Kernel {
    socket: OwnedFd,
    questions: u32,
}

impl Kernel {
    fn open() -> io::Result<Self> {
        let kind = netlink::SOCK_DIAG;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(kind))?;
        Ok(Self { socket, questions: 0 })
    }

    /// Asks for a connection; `None` if it does not exist or is not established.
    ///
    /// # Errors
    /// If the kernel's answer cannot be understood.
    fn ask(&mut self, peer: SocketAddr, us: SocketAddr) -> io::Result<Option<LoopbackPeer>> {
        self.questions = self.questions.wrapping_add(1);
        let question = question(self.questions, peer, us);
        send(&self.socket, &question, SendFlags::NOSIGNAL)?;
        let mut buffer = [0; 1024];
        for _ in 0..STALE_MAX {
            // The kernel answers before sending returns; there is nothing to wait for.
            let (len, _) = recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
            let answer = &buffer[..len];
            if word(answer, 8) == Some(self.questions) {
                return read(answer, peer, us);
            }
        }
        Err(io::Error::other("the kernel answers other questions"))
    }
}

/// Builds `struct inet_diag_req_v2` behind a header, in the byte order of this machine's kernel.
fn question(number: u32, peer: SocketAddr, us: SocketAddr) -> [u8; QUESTION] {
    let mut it = [0; QUESTION];
    let mut put = |at: usize, bytes: &[u8]| it[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &(QUESTION as u32).to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST.to_ne_bytes());
    put(8, &number.to_ne_bytes());
    let family = match us.ip() {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    put(16, &[family.as_raw() as u8, libc::IPPROTO_TCP as u8]);
    put(20, &u32::MAX.to_ne_bytes());
    // From the peer's side: its own address first. Any interface, any cookie.
    put(24, &peer.port().to_be_bytes());
    put(26, &us.port().to_be_bytes());
    for (at, address) in [(28, peer.ip()), (44, us.ip())] {
        match address {
            IpAddr::V4(address) => put(at, &address.octets()),
            IpAddr::V6(address) => put(at, &address.octets()),
        }
    }
    put(64, &u64::MAX.to_ne_bytes());
    it
}

/// Reads `struct inet_diag_msg` behind a header, or an error's number.
fn read(answer: &[u8], peer: SocketAddr, us: SocketAddr) -> io::Result<Option<LoopbackPeer>> {
    let unknown = || io::Error::other("the kernel's answer has an unknown form");
    let kind = answer.get(4..6).and_then(|it| it.try_into().ok()).map(u16::from_ne_bytes);
    match kind {
        // Most likely there is no such socket.
        Some(ERROR) => return Ok(None),
        Some(BY_FAMILY) if answer.len() >= ANSWER => {}
        _ => return Err(unknown()),
    }
    let port = |at: usize| answer.get(at..at + 2).and_then(|it| it.try_into().ok()).map(u16::from_be_bytes);
    // If no peer is connected, the kernel names a listener at the same port instead.
    if (port(20), port(22)) != (Some(peer.port()), Some(us.port())) {
        return Ok(None);
    }
    let (Some(state), Some(uid), Some(inode)) = (answer.get(17), word(answer, 80), word(answer, 84)) else {
        return Err(unknown());
    };
    Ok((*state == ESTABLISHED && inode != 0).then_some(LoopbackPeer { uid, inode }))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|it| it.try_into().ok()).map(u32::from_ne_bytes)
}
