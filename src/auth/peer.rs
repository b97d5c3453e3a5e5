//! The peer of a Unix socket, by the kernel's data.
//!
//! The uid gives the user; a pidfd holds the process, so that its number cannot stand for another one. A
//! process in another pid namespace counts as jailed, regardless of its uid: workers in a jail have a door of
//! their own. A socket that its opener has passed on counts as the opener's.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, test_kill_process};

use super::line::Line;
use super::{Rejected, unless_busy};
use provost_base::limits::ANCESTORS_MAX;
use provost_domain::ProcessMark;
use provost_system::{process_of, user_number};

/// The process that connected.
#[derive(Debug)]
pub struct PeerId {
    /// Its effective user when it connected.
    pub uid: u32,
    /// Its number in the daemon's pid namespace; it means this process only as long as the process lives.
    pub pid: i32,
    pidfd: OwnedFd,
    line: OnceLock<Line>,
}

impl PeerId {
    /// Asks the kernel which process connected this Unix stream.
    ///
    /// # Errors
    /// [`Rejected::Gone`] if the process has ended or cannot be seen from here; [`Rejected::Busy`].
    pub fn of(stream: &impl AsFd) -> Result<Self, Rejected> {
        let gone = |error: io::Error| unless_busy(&error, Rejected::Gone);
        let credentials = rustix::net::sockopt::socket_peercred(stream).map_err(|e| gone(e.into()))?;
        let pidfd = match peer_pidfd(stream.as_fd()) {
            // Kernels before 6.5 do not know the option: only the number remains, and it may mean another process
            // by now.
            Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                pidfd_open(credentials.pid, PidfdFlags::empty()).map_err(|e| gone(e.into()))?
            }
            other => other.map_err(gone)?,
        };
        Ok(Self {
            uid: credentials.uid.as_raw(),
            pid: credentials.pid.as_raw_nonzero().get(),
            pidfd,
            line: OnceLock::new(),
        })
    }

    /// Checks that the peer runs as this user.
    ///
    /// # Errors
    /// [`Rejected::OtherUser`].
    pub fn check_same_user(&self, our_uid: u32) -> Result<(), Rejected> {
        if self.uid == our_uid { Ok(()) } else { Err(Rejected::OtherUser) }
    }

    /// Checks that the peer runs in the daemon's pid namespace and is alive.
    ///
    /// # Errors
    /// [`Rejected::Jailed`], [`Rejected::Gone`]; an unknown namespace counts as another one, unless the error is
    /// [`Rejected::Busy`].
    pub fn check_not_jailed(&self) -> Result<(), Rejected> {
        let jailed = |error: io::Error| unless_busy(&error, Rejected::Jailed);
        let peer = pids(self.pidfd.as_fd()).map_err(jailed)?;
        match peer.first() {
            Some(1..) => {}
            Some(0) => return Err(Rejected::Jailed),
            _ => return Err(Rejected::Gone),
        }
        let ours = our_depth().map_err(jailed)?;
        // Alone in the list: it is in the namespace that /proc shows, and so is the daemon. Deeper down, the depth
        // does not tell siblings apart.
        let same = peer.len() == ours && (ours == 1 || same_namespace(self.pid).map_err(jailed)?);
        if same { Ok(()) } else { Err(Rejected::Jailed) }
    }

    /// Checks that the peer runs in a pid namespace below the daemon's, as the workers of tier `ns` do, and is alive.
    ///
    /// # Errors
    /// [`Rejected::NotJailed`], [`Rejected::Gone`]; an unknown namespace counts as the daemon's, unless the error
    /// is [`Rejected::Busy`].
    pub fn check_jailed(&self) -> Result<(), Rejected> {
        let not_jailed = |error: io::Error| unless_busy(&error, Rejected::NotJailed);
        let peer = pids(self.pidfd.as_fd()).map_err(not_jailed)?;
        let ours = our_depth().map_err(not_jailed)?;
        match peer.first() {
            Some(1..) if peer.len() > ours => Ok(()),
            Some(0..) => Err(Rejected::NotJailed),
            _ => Err(Rejected::Gone),
        }
    }

    /// Checks that the peer and all its ancestors could be seen. The daemon asks as soon as the peer has connected:
    /// a process that ends leaves its socket to others, and no trace to recognise them by.
    ///
    /// # Errors
    /// [`Rejected::Unseen`]; [`Rejected::Busy`].
    pub fn check_seen(&self) -> Result<(), Rejected> {
        if !self.line().is_empty() {
            return Ok(());
        }
        let unseen = |error: &io::Error| unless_busy(error, Rejected::Unseen);
        Err(Stat::of(self.pid).err().as_ref().map_or(Rejected::Unseen, unseen))
    }

    /// Checks whether a person may be behind the peer: it has a controlling terminal, and neither it nor an
    /// ancestor, now or at the first look, is one of `agents`, the processes known to be agents or workers.
    pub fn is_at_terminal_outside(&self, agents: &HashSet<i32>) -> bool {
        let at_terminal = controlling_tty(self.pid).is_ok_and(|tty| tty.is_some());
        let outside = !agents.contains(&self.pid)
            && ancestors(self.pid).is_ok_and(|chain| chain.iter().all(|pid| !agents.contains(pid)));
        let was_outside = !self.line().is_empty() && !self.line().has_one_of(agents);
        // The liveness check is last: if the process still lives, its number has meant it all along.
        at_terminal && outside && was_outside && self.is_alive()
    }

    /// Returns the peer and its ancestors, as they were at the first call; empty if the peer had ended.
    pub fn line(&self) -> &Line {
        self.line.get_or_init(|| {
            let line = line_of(self.pid);
            if self.is_alive() { line } else { Line::default() }
        })
    }

    /// Returns the process that started the peer; `None` if the peer has ended.
    pub fn parent(&self) -> Option<i32> {
        let parent = Stat::of(self.pid).ok()?.parent;
        self.is_alive().then_some(parent)
    }

    /// Checks whether the process still runs.
    pub fn is_alive(&self) -> bool {
        pids(self.pidfd.as_fd()).is_ok_and(|pids| pids.first().is_some_and(|pid| *pid >= 0))
    }

    /// Returns the pidfd, which becomes readable when the process ends.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Returns the mark of a running process of this user, by which it can be recognised: its number may mean another one later.
pub fn process_of_ours(pid: u32) -> Option<ProcessMark> {
    let (started, owner) = process_of(pid).ok()??;
    (owner == user_number()).then_some(ProcessMark { pid, started })
}

/// Returns a process and its ancestors; empty if it has ended, or has too many ancestors. A partial line would
/// present the wrong process as the first of its session.
pub fn line_of(pid: i32) -> Line {
    // If a process ends between two looks, those below it have another parent by then.
    (0..LOOKS_MAX).find_map(|_| look(pid)).unwrap_or_default()
}

/// The most looks at a line in which processes end meanwhile.
const LOOKS_MAX: u32 = 8;

/// Looks at a line once; `None` if one of its processes ended meanwhile.
fn look(pid: i32) -> Option<Line> {
    let (mut line, mut next, mut begun_below) = (Line::default(), pid, u64::MAX);
    while next > 1 {
        if !line.has_room() {
            return Some(Line::default());
        }
        let stat = match Stat::of(next) {
            Ok(stat) if stat.started <= begun_below => stat,
            // The number now means another process.
            Ok(_) => return None,
            // The system hides the processes of other users; those belong to no session of this user.
            Err(_) if is_hidden(next) => break,
            Err(_) => return None,
        };
        let number = u32::try_from(next).unwrap_or_default();
        line.rises(ProcessMark { pid: number, started: stat.started }, stat.session, stat.tty != 0);
        (next, begun_below) = (stat.parent, stat.started);
    }
    Some(line)
}

/// Checks whether a process runs as another user and is hidden in /proc (`hidepid`).
fn is_hidden(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
}

/// Returns the parent of a process, its parent, and so on up to the first process of the namespace.
///
/// # Errors
/// If a process of the chain ends meanwhile, or the chain has no end.
pub fn ancestors(pid: i32) -> io::Result<Vec<i32>> {
    let mut chain = Vec::new();
    let mut next = Stat::of(pid)?.parent;
    while next > 0 {
        if chain.len() >= ANCESTORS_MAX {
            return Err(io::Error::other("a process has more ancestors than can be"));
        }
        chain.push(next);
        next = Stat::of(next)?.parent;
    }
    Ok(chain)
}

/// Returns the device number of the terminal that controls a process, if one does.
///
/// # Errors
/// If the process has ended.
pub fn controlling_tty(pid: i32) -> io::Result<Option<i32>> {
    Ok(Some(Stat::of(pid)?.tty).filter(|tty| *tty != 0))
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    parent: i32,
    session: i32,
    tty: i32,
    started: u64,
}

impl Stat {
    fn of(pid: i32) -> io::Result<Self> {
        let text = read_short(&format!("/proc/{pid}/stat"))?;
        // The name is in parentheses and may contain anything, even parentheses and spaces; the last parenthesis
        // closes it. State, parent, group, session and terminal follow, and the start time is the twentieth.
        let after_name = text.iter().rposition(|byte| *byte == b')').map_or(&[][..], |at| &text[at + 1..]);
        let after_name = String::from_utf8_lossy(after_name);
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        let started = fields.get(19).and_then(|field| field.parse().ok());
        match (number(1), number(3), number(4), started) {
            (Some(parent), Some(session), Some(tty), Some(started)) => {
                Ok(Self { parent, session, tty, started })
            }
            _ => Err(io::Error::other("/proc has an unknown form")),
        }
    }
}

/// Returns the numbers of a pidfd's process in the namespace of the daemon's /proc and in those below it, outermost
/// first. -1 means that it has ended, 0 that it cannot be seen from here.
fn pids(pidfd: BorrowedFd<'_>) -> io::Result<Vec<i32>> {
    let info = read_short(&format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let info = String::from_utf8_lossy(&info);
    let numbers = |name: &str| -> Option<Vec<i32>> {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
    };
    let pid = numbers("Pid:").unwrap_or_default();
    match pid.as_slice() {
        [..=0] => Ok(pid),
        [_] => numbers("NSpid:").ok_or_else(|| io::Error::other("/proc does not show namespaces")),
        _ => Err(io::Error::other("this is not a pidfd")),
    }
}

/// Returns the depth of the daemon's namespace, counted from that of its /proc. A failure is not kept: it may be momentary.
fn our_depth() -> io::Result<usize> {
    static DEPTH: OnceLock<usize> = OnceLock::new();
    if let Some(depth) = DEPTH.get() {
        return Ok(*depth);
    }
    let me = pidfd_open(getpid(), PidfdFlags::empty())?;
    let depth = pids(me.as_fd())?.len();
    Ok(*DEPTH.get_or_init(|| depth))
}

/// Checks whether a process is in the daemon's pid namespace.
pub(super) fn same_namespace(pid: i32) -> io::Result<bool> {
    Ok(std::fs::read_link(format!("/proc/{pid}/ns/pid"))? == std::fs::read_link("/proc/self/ns/pid")?)
}

fn read_short(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(512);
    File::open(path)?.take(4096).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Asks for `SO_PEERPIDFD` of Linux 6.5, which none of the crates in use knows yet.
#[expect(unsafe_code, reason = "one system call that rustix does not wrap")]
fn peer_pidfd(stream: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut fd: libc::c_int = -1;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as it is borrowed; the kernel writes at most `len` bytes to
    // `fd`, which has exactly that size, and both outlive the call.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut len,
        )
    };
    if done != 0 || fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so `fd` is a new descriptor that no other value owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
