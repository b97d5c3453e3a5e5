//! System calls that no safe library wraps. Each function is one call, safe to use, and says why.
#![expect(unsafe_code, reason = "system calls that rustix and std do not offer")]

use std::ffi::{CStr, CString, c_int, c_long, c_uint};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use std::os::unix::ffi::OsStrExt;

/// Read-only mount.
pub(super) const RDONLY: u64 = 1;
/// Set-user-id bits mean nothing.
pub(super) const NOSUID: u64 = 2;
/// Device files do not work.
pub(super) const NODEV: u64 = 4;
/// Nothing can be executed.
pub(super) const NOEXEC: u64 = 8;

const OPEN_TREE_CLONE: c_uint = 1;
const AT_RECURSIVE: c_uint = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 0x04;
const MOVE_MOUNT_T_EMPTY_PATH: c_uint = 0x40;
const FSOPEN_CLOEXEC: c_uint = 1;
const FSMOUNT_CLOEXEC: c_uint = 1;
const FSCONFIG_SET_STRING: c_uint = 1;
const FSCONFIG_CMD_CREATE: c_uint = 6;
/// libc has this flag in a type that is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// The kernel's `struct mount_attr`, which libc has only for some C libraries.
#[repr(C)]
#[derive(Default)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

fn done(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

fn owned(result: c_long) -> io::Result<OwnedFd> {
    let fd = RawFd::try_from(done(result)?).map_err(io::Error::other)?;
    // SAFETY: the call that returned this number has just opened it for us, and no object owns it yet.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a path or word a C string, as the kernel needs it.
pub(super) fn c_string(bytes: impl AsRef<[u8]>) -> io::Result<CString> {
    CString::new(bytes.as_ref()).map_err(io::Error::other)
}

/// The process in which a fork has returned.
pub(super) enum Forked {
    /// The process that the fork has made.
    Child,
    /// The old process, with the id of the new one.
    Parent(i32),
}

/// Forks, and puts the child into new namespaces if `flags` name some.
pub(super) fn fork_into(flags: c_int) -> io::Result<Forked> {
    let flags = c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without a stack of its own the child continues here on a copy of ours, exactly as after fork(2);
    // this process has one thread, so no lock can be held by a thread that the child lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
    forked(pid)
}

/// Forks likewise, with the child born into a control group.
pub(super) fn fork_into_group(flags: c_int, group: impl AsFd) -> io::Result<Forked> {
    // SAFETY: all-zero arguments are valid and mean nothing; those that matter are set below.
    let mut args: libc::clone_args = unsafe { zeroed() };
    args.flags = u64::from(flags.cast_unsigned()) | CLONE_INTO_CGROUP;
    args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    args.cgroup = u64::from(group.as_fd().as_raw_fd().cast_unsigned());
    // SAFETY: as for the call above; `args` has the kernel's layout and lives through the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    forked(pid)
}

fn forked(pid: c_long) -> io::Result<Forked> {
    match done(pid)? {
        0 => Ok(Forked::Child),
        pid => i32::try_from(pid).map(Forked::Parent).map_err(io::Error::other),
    }
}

/// Ends this process at once, without running anything that was registered for its end.
pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: takes a number and does not come back.
    unsafe { libc::_exit(code) }
}

/// Makes descriptor `onto` a duplicate of `fd`; it stays open over an exec.
pub(super) fn redirect(fd: impl AsFd, onto: RawFd) -> io::Result<()> {
    // SAFETY: plain numbers; `onto` is one of the three standard descriptors, which no object of ours owns.
    done(unsafe { libc::dup2(fd.as_fd().as_raw_fd(), onto) }).map(drop)
}

/// Returns the socket that this process was given under a number when it was started, as another descriptor that no
/// other part of this process knows.
///
/// # Errors
/// The system's error, if no descriptor has that number, and `InvalidInput` if it is no local socket.
pub fn inherited_socket(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers; the kernel makes a new descriptor, whatever the old one is.
    let fd = owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) }.into())?;
    match rustix::net::sockopt::socket_domain(&fd) {
        Ok(rustix::net::AddressFamily::UNIX) => Ok(fd),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a local socket")),
    }
}

/// Marks every descriptor from `first` on to be closed at the next exec.
pub(super) fn close_at_exec(first: c_uint) -> io::Result<()> {
    // SAFETY: plain numbers; nothing is closed now.
    done(unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) })
        .map(drop)
}

/// Closes every descriptor from `first` on. Only for a process that from now on only waits and ends by [`exit`], so
/// that no owner of such a descriptor is used or dropped any more.
pub(super) fn close_from(first: c_uint) {
    // SAFETY: plain numbers; see above for those who own them.
    unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) };
}

/// Sets the default disposition for every signal, and unblocks all of them.
pub(super) fn reset_signals() -> io::Result<()> {
    for signal in 1..=64 {
        // SAFETY: the default disposition runs no code of ours. Some numbers cannot be set; they are default.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an all-zero signal set is the empty set.
    let none: libc::sigset_t = unsafe { zeroed() };
    // SAFETY: `none` is a valid set for the time of the call, and no old set is asked for.
    done(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) }).map(drop)
}

/// Makes writing to a pipe or socket without a reader an error, as usual in Rust, instead of the end of the process.
pub(super) fn ignore_broken_pipes() {
    // SAFETY: ignoring runs no code of ours, and this signal can be ignored.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Sends a signal to one process; 0 only checks whether it could be sent.
pub(super) fn signal(pid: i32, signal: c_int) -> io::Result<()> {
    // SAFETY: plain numbers; the callers name a process that they have started or found below themselves.
    done(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Kills every process that this one may signal, except itself. Only for use inside a Landlock signal scope, which
/// contains the jail's processes and no others.
pub(super) fn kill_everything_in_scope() {
    // SAFETY: plain numbers; the scope was proven to hold before a worker was started.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Asks every process that this one may signal to end, except itself. Only for use inside a Landlock signal
/// scope, which contains the jail's processes and no others.
pub(super) fn ask_everything_in_scope() {
    // SAFETY: plain numbers; the scope was proven to hold before a worker was started.
    unsafe { libc::kill(-1, libc::SIGTERM) };
}

/// The signal by which a supervisor orders the first process of a jail to ask all others to end.
pub(super) const TIME_TO_END: c_int = libc::SIGUSR1;

/// Makes [`TIME_TO_END`] ask every other process to end. Only for use in the first process of a process
/// namespace, which contains the jail's processes and no others.
pub(super) fn pass_on_the_end() {
    extern "C" fn ask_all(_signal: c_int) {
        // SAFETY: kill may be called here, and only the jail's processes can be seen from here. The interrupted code
        // finds its error number as it was.
        unsafe {
            let number = *libc::__errno_location();
            libc::kill(-1, libc::SIGTERM);
            *libc::__errno_location() = number;
        }
    }
    let handler: extern "C" fn(c_int) = ask_all;
    // SAFETY: the handler does nothing that a handler may not do.
    unsafe { libc::signal(TIME_TO_END, handler as libc::sighandler_t) };
}

/// Collects one ended child without waiting; returns its process id and its raw status.
pub(super) fn collect(pid: i32) -> io::Result<Option<(i32, c_int)>> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing during the call.
    match done(unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) })? {
        0 => Ok(None),
        pid => Ok(Some((i32::try_from(pid).map_err(io::Error::other)?, status))),
    }
}

/// Waits for any child to end; returns its process id and its raw status.
pub(super) fn wait_for_any() -> io::Result<(i32, c_int)> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing during the call.
    let pid = done(unsafe { libc::waitpid(-1, &raw mut status, 0) })?;
    Ok((i32::try_from(pid).map_err(io::Error::other)?, status))
}

/// Stops all mounts below `/` from propagating in either direction.
pub(super) fn make_mounts_private() -> io::Result<()> {
    let null = std::ptr::null();
    // SAFETY: the target is a C string that lives for ever; the null pointers are what this form asks for.
    let result =
        unsafe { libc::mount(null, c"/".as_ptr(), null, libc::MS_REC | libc::MS_PRIVATE, std::ptr::null()) };
    done(result).map(drop)
}

/// Returns a detached copy of the mount that an open directory or file is on, with all mounts below it.
pub(super) fn clone_mount(at: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::AT_EMPTY_PATH as c_uint | libc::O_CLOEXEC as c_uint;
    let fd = at.as_fd().as_raw_fd();
    // SAFETY: an open descriptor and an empty C string.
    owned(unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) })
}

/// Sets attributes on a mount and, if asked, on everything mounted below it.
pub(super) fn restrict_mount(mount: impl AsFd, set: u64, recursive: bool) -> io::Result<()> {
    let attributes = MountAttr { set, ..MountAttr::default() };
    let flags = libc::AT_EMPTY_PATH as c_uint | if recursive { AT_RECURSIVE } else { 0 };
    let fd = mount.as_fd().as_raw_fd();
    let size = size_of::<MountAttr>();
    // SAFETY: `attributes` has the kernel's layout and lives through the call, `size` is its length.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, fd, c"".as_ptr(), flags, &raw const attributes, size)
    };
    done(result).map(drop)
}

/// Attaches a detached mount on an open directory or file.
pub(super) fn attach_mount(mount: impl AsFd, onto: impl AsFd) -> io::Result<()> {
    let (from, to) = (mount.as_fd().as_raw_fd(), onto.as_fd().as_raw_fd());
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    let empty = c"".as_ptr();
    // SAFETY: two open descriptors and empty C strings.
    done(unsafe { libc::syscall(libc::SYS_move_mount, from, empty, to, empty, flags) }).map(drop)
}

/// Makes a new, detached file system.
pub(super) fn new_filesystem(
    kind: &CStr,
    options: &[(&CStr, CString)],
    attributes: u64,
) -> io::Result<OwnedFd> {
    // SAFETY: `kind` is a C string.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) })?;
    let fd = context.as_raw_fd();
    for (key, value) in options {
        let (key, value) = (key.as_ptr(), value.as_ptr());
        // SAFETY: an open context and two C strings that live through the call.
        done(unsafe { libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_SET_STRING, key, value, 0) })?;
    }
    // SAFETY: an open context; this command takes neither key nor value.
    done(unsafe { libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, 0_usize, 0_usize, 0) })?;
    // SAFETY: an open context for which the file system has been created.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, fd, FSMOUNT_CLOEXEC, attributes) })
}

/// Removes the mount at a path, now or when its last user has gone.
pub(super) fn detach(path: &CStr) -> io::Result<()> {
    // SAFETY: a C string and a flag.
    done(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Sets this host's name inside its own namespace.
pub(super) fn set_hostname(name: &CStr) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the same C string.
    done(unsafe { libc::sethostname(name.as_ptr(), name.count_bytes()) }).map(drop)
}

/// Switches the loopback interface of this network namespace on.
pub(super) fn loopback_up(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: an all-zero request is valid; the fields that matter are set below.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: this request reads one `ifreq`, which lives through the call.
    done(unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request) }).map(drop)
}

/// Returns Landlock's version on the running kernel; 0 if the kernel has no Landlock.
pub(super) fn landlock_abi() -> i32 {
    // SAFETY: with a null attribute and this flag the call only answers a number.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0_usize, 0_usize, 1_u32) };
    i32::try_from(abi).unwrap_or(0).max(0)
}

/// Checks whether this process leads its session. A leader in another process namespace has the number 0 here, which
/// rustix does not expect.
pub(super) fn leads_its_session() -> bool {
    // SAFETY: plain numbers.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Returns the bytes of a page of memory.
pub(super) fn page_size() -> u64 {
    // SAFETY: asks for a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Executes an open program. Returns only with an error.
pub(super) fn execute(program: impl AsFd, args: &[CString], environment: &[CString]) -> io::Error {
    let (args, environment) = (pointers(args), pointers(environment));
    let fd = program.as_fd().as_raw_fd();
    let empty = c"".as_ptr();
    // SAFETY: an open descriptor, and two null-terminated lists of C strings that live through the call.
    unsafe {
        libc::execveat(fd, empty, args.as_ptr().cast(), environment.as_ptr().cast(), libc::AT_EMPTY_PATH)
    };
    io::Error::last_os_error()
}

/// Executes a script, whose interpreter has to open it by name. Returns only with an error.
pub(super) fn execute_script(path: &Path, args: &[CString], environment: &[CString]) -> io::Error {
    let path = match c_string(path.as_os_str().as_bytes()) {
        Ok(path) => path,
        Err(e) => return e,
    };
    let (args, environment) = (pointers(args), pointers(environment));
    // SAFETY: a C string, and two null-terminated lists of C strings that live through the call.
    unsafe { libc::execve(path.as_ptr(), args.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}
