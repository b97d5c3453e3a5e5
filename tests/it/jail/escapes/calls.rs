//! System calls as an intruder makes them: by number, with arguments that no decent wrapper would take.
#![expect(unsafe_code, reason = "the attempts are system calls that nothing offers safely")]

use std::collections::BTreeSet;
use std::ffi::{CString, c_long};
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a call. Arguments that are addresses come from [`address`] or [`text`], and what they point to has
/// to live until this returns.
pub(super) fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> io::Result<usize> {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: every address among the arguments is that of a live value that is large enough for its call; where a
    // call would free or remap memory of this process it is one that must fail, in a process that then ends.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        -1 => Err(io::Error::last_os_error()),
        value => usize::try_from(value).map_err(io::Error::other),
    }
}

/// Where a value is.
pub(super) fn address<T: ?Sized>(value: &mut T) -> usize {
    std::ptr::from_mut(value).cast::<u8>() as usize
}

/// Where a C string is.
pub(super) fn text(value: &CString) -> usize {
    value.as_ptr() as usize
}

/// A path as the kernel wants it.
pub(super) fn c(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap()
}

/// A number that may be negative, as an argument.
pub(super) fn signed(value: i32) -> usize {
    value as isize as usize
}

/// The descriptor that a call has answered, as something that closes itself.
pub(super) fn owned(descriptor: usize) -> OwnedFd {
    // SAFETY: the call has just opened it for us, and nobody else in this process knows it.
    unsafe { OwnedFd::from_raw_fd(RawFd::try_from(descriptor).unwrap()) }
}

/// The same as a file.
pub(super) fn file(descriptor: usize) -> File {
    File::from(owned(descriptor))
}

/// A new process that does one thing and ends with what it returns. Answers its id.
pub(super) fn fork(work: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: this process has one thread, so that the child finds no lock held by somebody who is not there.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => leave(work()),
        child => Ok(child),
    }
}

/// Ends this process without anything else.
pub(super) fn leave(code: i32) -> ! {
    // SAFETY: takes a number and does not come back.
    unsafe { libc::_exit(code) }
}

/// Waits for a child. Answers its raw status.
pub(super) fn collect(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is valid for writing during the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    status
}

/// Whether a raw status is that of a process that a signal has ended, and which.
pub(super) fn killed_by(status: i32) -> Option<i32> {
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

/// Lets a signal pass without a trace.
pub(super) fn ignore(signal: i32) {
    // SAFETY: this disposition runs no code.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Ends this process after some seconds, even if it waits.
pub(super) fn end_after(seconds: u32) {
    // SAFETY: a number.
    unsafe { libc::alarm(seconds) };
}

/// Lets a signal wait from here on, each time that it comes.
pub(super) fn block(signal: i32) {
    // SAFETY: an all-zero set is valid and empty, and lives through both calls; no old set is asked for.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Sends standard input as often as asked, in one message. Answers how often.
pub(super) fn send_descriptors(to: &impl std::os::fd::AsFd, count: usize) -> io::Result<usize> {
    let input = io::stdin();
    let descriptors = vec![std::os::fd::AsFd::as_fd(&input); count];
    let mut space = vec![std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut ancillary = rustix::net::SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(rustix::net::SendAncillaryMessage::ScmRights(&descriptors)));
    let byte = [io::IoSlice::new(b"x")];
    rustix::net::sendmsg(to, &byte, &mut ancillary, rustix::net::SendFlags::empty())?;
    Ok(count)
}

static HEARD: AtomicU64 = AtomicU64::new(0);

extern "C" fn hear(signal: i32) {
    HEARD.fetch_or(1 << signal, Ordering::SeqCst);
}

/// Remembers from here on whether a signal has come.
pub(super) fn listen_for(signal: i32) {
    let handler: extern "C" fn(i32) = hear;
    // SAFETY: the handler only changes an atomic number.
    unsafe { libc::signal(signal, handler as usize) };
}

/// The signals that have come.
pub(super) fn heard() -> BTreeSet<i32> {
    let heard = HEARD.load(Ordering::SeqCst);
    (1..64).filter(|signal| heard & (1 << signal) != 0).collect()
}

/// A terminal of our own: its other end, and ours, which controls this session afterwards.
pub(super) fn take_a_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let (mut other, mut ours) = (0, 0);
    let (name, settings, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
    // SAFETY: two numbers to write to; no name, settings or size are asked for or given.
    let made = unsafe { libc::openpty(&raw mut other, &raw mut ours, name, settings, size) };
    if made != 0 {
        return Err(io::Error::last_os_error());
    }
    let (other, ours) = (owned(other as usize), owned(ours as usize));
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(&ours)?;
    Ok((other, ours))
}

/// `unshare` with a new user namespace, through the door for 32-bit programs.
#[cfg(target_arch = "x86_64")]
pub(super) fn unshare_as_a_32_bit_program() -> i32 {
    let answer: i32;
    // SAFETY: the registers that the call uses are saved or named; it touches no memory.
    unsafe {
        std::arch::asm!(
            "push rbx", "mov ebx, 0x10000000", "int 0x80", "pop rbx",
            inlateout("eax") 310_i32 => answer, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    answer
}

/// Runs before `main` of this executable, in every process of it: the test runner's `main` starts threads, and a
/// supervisor must have none.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn before_main() {
        super::roles::become_what_is_asked();
    }
    before_main
};
