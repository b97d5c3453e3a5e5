//! Attempts to gain privileges, to make or join namespaces, and to reach corners of the kernel that have a
//! history.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};

use super::calls::{self, address, c, call, signed, text};
use super::intruder::{Attempt, Facts, Outcome, Own, by, leak, open, shut};

/// Puts a character into a terminal's input.
const TIOCSTI: usize = 0x5412;

/// Fields of `passwd -S` when it could read the password file, which only root can.
const FIELDS_FOR_ROOT: usize = 7;

/// In the order in which they are tried.
pub(super) const ATTEMPTS: &[Attempt] = &[
    ("priv.setuid_exec", setuid_exec),
    ("priv.no_new_privs", |_, _| match rustix::thread::no_new_privs() {
        Ok(true) => shut("set"),
        _ => open("not set"),
    }),
    ("priv.caps_empty", caps_empty),
    ("ns.unshare_user", |_, _| by(call(libc::SYS_unshare, [flag(libc::CLONE_NEWUSER)]), "made")),
    ("ns.clone_user", |_, _| {
        child_or_not(call(libc::SYS_clone, [flag(libc::CLONE_NEWUSER | libc::SIGCHLD), 0, 0, 0, 0]))
    }),
    ("ns.clone3_user", |_, _| {
        let mut request = [0_u64; 11];
        (request[0], request[4]) = (flag(libc::CLONE_NEWUSER) as u64, libc::SIGCHLD as u64);
        child_or_not(call(libc::SYS_clone3, [address(&mut request), size_of_val(&request)]))
    }),
    ("ns.setns_daemon", |f, _| join(&format!("/proc/{}/ns/net", f.daemon))),
    ("ns.setns_pid1_mnt", |_, _| join("/proc/1/ns/mnt")),
    ("ns.mount_tmpfs", |f, _| mount("tmpfs", &f.workspace, 0)),
    ("ns.umount_proc", |_, _| {
        by(call(libc::SYS_umount2, [text(&c("/proc")), libc::MNT_DETACH as usize]), "taken away")
    }),
    ("ns.remount_rw", |f, _| {
        mount("none", &f.workspace.join(".git/hooks"), libc::MS_REMOUNT | libc::MS_BIND)
    }),
    ("ns.chroot", |_, _| by(call(libc::SYS_chroot, [text(&c("/tmp"))]), "moved")),
    ("ns.open_tree", |_, _| {
        by(call(libc::SYS_open_tree, [signed(libc::AT_FDCWD), text(&c("/")), 1]), "cloned")
    }),
    ("ns.fsopen", |_, _| by(call(libc::SYS_fsopen, [text(&c("tmpfs")), 0]), "opened")),
    ("kern.bpf", |_, _| {
        let mut attributes = [0_u8; 128];
        let asked = call(libc::SYS_bpf, [0, address(&mut attributes), attributes.len()]);
        reached(asked, libc::EINVAL, "the verifier answers")
    }),
    ("kern.perf", |_, _| {
        let mut event = [0_u8; 128];
        (event[0], event[4]) = (1, 128);
        by(call(libc::SYS_perf_event_open, [address(&mut event), 0, signed(-1), signed(-1), 0]), "counts")
    }),
    ("kern.userfaultfd", |_, _| by(call(libc::SYS_userfaultfd, [1]), "made")),
    ("kern.module", |_, _| by(call(libc::SYS_finit_module, [0, text(&c("")), 0]), "loaded")),
    // Opened only: a word written there would change the host.
    ("kern.core_pattern", |_, _| writable("/proc/sys/kernel/core_pattern")),
    ("kern.sysrq", |_, _| writable("/proc/sysrq-trigger")),
    ("kern.dmesg", |_, _| {
        let mut block = [0_u8; 64];
        by(call(libc::SYS_syslog, [3, address(&mut block), block.len()]), "read")
    }),
    ("kern.core_dump", |_, _| match rustix::process::getrlimit(rustix::process::Resource::Core).maximum {
        // No file is as small, and no program is started that would take it.
        Some(1) => shut("none is made"),
        _ => leak("one can be made"),
    }),
    ("kern.personality", |_, _| {
        by(call(libc::SYS_personality, [0x40_0000]), "what is readable can be executed")
    }),
    ("kern.x32_abi", |_, _| by(call(0x4000_0000 + libc::SYS_getpid, []), "answered")),
    ("kern.int80_abi", int80),
    ("tty.tiocsti", |_, _| type_into_the_terminal(TIOCSTI)),
    ("tty.tiocsti_highbits", |_, _| type_into_the_terminal(1 << 32 | TIOCSTI)),
    ("tty.dev_tty", |_, _| by(File::open("/dev/tty"), "the daemon's terminal")),
    // Not in the table of the first suite.
    ("tty.pty_allocate", |f, _| {
        of_the_host(f, OpenOptions::new().read(true).write(true).open("/dev/ptmx"), "made")
    }),
    ("tty.pts_list", |f, _| of_the_host(f, fs::read_dir("/dev/pts"), "seen")),
    ("ns.clone_pid", |_, _| {
        child_or_not(call(
            libc::SYS_clone,
            [flag(libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::SIGCHLD), 0, 0, 0, 0],
        ))
    }),
    ("ns.move_mount", |_, _| {
        let (here, root) = (signed(libc::AT_FDCWD), c("/proc"));
        by(call(libc::SYS_move_mount, [here, text(&root), here, text(&root), 0]), "moved")
    }),
    ("ns.mount_setattr", |_, _| {
        let mut attributes = [0_u64; 4];
        let (here, root) = (signed(libc::AT_FDCWD), c("/"));
        by(call(libc::SYS_mount_setattr, [here, text(&root), 0, address(&mut attributes), 32]), "changed")
    }),
    ("ns.pivot_root", |_, _| by(call(libc::SYS_pivot_root, [text(&c(".")), text(&c("."))]), "moved")),
    ("kern.fanotify", |_, _| by(call(libc::SYS_fanotify_init, [0x200, 0]), "made")),
    ("kern.modify_ldt", modify_ldt),
    ("kern.hostname", |_, _| by(call(libc::SYS_sethostname, [text(&c("pwned")), 5]), "renamed")),
    ("kern.clock", |_, _| {
        let mut now = [0_i64; 2];
        by(call(libc::SYS_clock_settime, [0, address(&mut now)]), "set")
    }),
    ("kern.set_mm", |_, _| {
        reached(call(libc::SYS_prctl, [35, 100, 0, 0, 0]), libc::EINVAL, "the call answers")
    }),
    ("kern.memfd_setuid", memfd_setuid),
];

/// The number of the file system that `/dev/pts` is.
pub(super) fn terminals() -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/dev/pts").map(|it| it.dev())
}

/// Those of a jail's own count for nothing.
fn of_the_host<T>(f: &Facts, done: std::io::Result<T>, what: &str) -> Outcome {
    match (done, terminals()) {
        (Err(error), _) => shut(error),
        (Ok(_), Ok(own)) if own != f.terminals => shut(format!("{what} among its own")),
        (Ok(_), _) => open(what),
    }
}

fn flag(flags: i32) -> usize {
    flags as usize
}

/// A set-user-id program of the system shows a line that needs what only root can read.
fn setuid_exec(_: &Facts, _: &Own) -> Outcome {
    let said = Command::new("/usr/bin/passwd").arg("-S").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match said.map(|said| String::from_utf8_lossy(&said.stdout).split_whitespace().count()) {
        Ok(FIELDS_FOR_ROOT..) => open("it ran as root"),
        Ok(_) => shut("it ran as ourselves"),
        Err(error) => shut(error),
    }
}

/// In a user namespace of the jail's own the bounding set has to be empty as well: outside, it is what any
/// ordinary process has.
fn caps_empty(f: &Facts, _: &Own) -> Outcome {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ours = fs::read_link("/proc/self/ns/user").is_ok_and(|link| link.to_string_lossy() != f.users);
    let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:", "CapBnd:"];
    let sets = &sets[..if ours { 5 } else { 4 }];
    let held = |line: &&str| {
        let field = sets.iter().find_map(|name| line.strip_prefix(name));
        field.is_some_and(|set| u64::from_str_radix(set.trim(), 16) != Ok(0))
    };
    match status.lines().find(held) {
        Some(line) => open(line),
        None => shut("every set is empty"),
    }
}

/// The child of a successful clone ends here and says nothing.
fn child_or_not(made: io::Result<usize>) -> Outcome {
    if let Ok(0) = made {
        calls::leave(0);
    }
    by(made, "made")
}

fn join(path: &str) -> Outcome {
    match File::open(path) {
        Ok(namespace) => by(call(libc::SYS_setns, [namespace.as_raw_fd() as usize, 0]), "joined"),
        Err(error) => shut(error),
    }
}

fn mount(kind: &str, at: &Path, flags: u64) -> Outcome {
    let (kind, at) = (c(kind), c(at));
    by(call(libc::SYS_mount, [text(&kind), text(&at), text(&kind), flags as usize, 0]), "mounted")
}

/// An error that only the call itself gives says that it was reached.
fn reached(result: io::Result<usize>, own: i32, what: &str) -> Outcome {
    match result {
        Err(error) if error.raw_os_error() != Some(own) => shut(error),
        _ => open(what),
    }
}

fn writable(path: &str) -> Outcome {
    by(OpenOptions::new().write(true).open(path), "open for writing")
}

#[cfg(target_arch = "x86_64")]
fn int80(_: &Facts, _: &Own) -> Outcome {
    match calls::unshare_as_a_32_bit_program() {
        0.. => open("made"),
        error => shut(io::Error::from_raw_os_error(-error)),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn int80(_: &Facts, _: &Own) -> Outcome {
    shut("no such door on this machine")
}

#[cfg(target_arch = "x86_64")]
fn modify_ldt(_: &Facts, _: &Own) -> Outcome {
    let mut table = [0_u8; 64];
    by(call(libc::SYS_modify_ldt, [0, address(&mut table), table.len()]), "read")
}

#[cfg(not(target_arch = "x86_64"))]
fn modify_ldt(_: &Facts, _: &Own) -> Outcome {
    shut("no such call on this machine")
}

fn type_into_the_terminal(command: usize) -> Outcome {
    let mut letter = *b"x";
    let terminal = File::open("/dev/tty");
    // Without a terminal, whatever standard input is.
    let onto = terminal.as_ref().map_or(0, AsRawFd::as_raw_fd) as usize;
    by(call(libc::SYS_ioctl, [onto, command, address(&mut letter)]), "typed")
}

/// A program that never was a file, with the setuid bit.
fn memfd_setuid(_: &Facts, _: &Own) -> Outcome {
    let made = call(libc::SYS_memfd_create, [text(&c("program")), 0]).map(calls::file);
    let marked = made.and_then(|file| {
        call(libc::SYS_fchmod, [file.as_raw_fd() as usize, 0o4755])?;
        Ok(file)
    });
    by(marked, "marked")
}
