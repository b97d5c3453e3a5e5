//! Attempts on descriptors, the environment and other processes, the daemon's before all.
//!
//! The signals are such that nobody dies of: without a jail they reach everything that this user runs.

use std::fs::{self, OpenOptions};
use std::io;

use super::calls::{self, address, call, signed};
use super::files::read;
use super::intruder::{Attempt, Facts, Outcome, Own, by, leak, open, shut};
use super::stand_in::{BY_THE_KERNEL, DIRECT, MARK, TO_ALL};

/// Sets the signal that comes instead of SIGIO.
const F_SETSIG: usize = 10;

/// Attaches to a process without stopping it.
const PTRACE_SEIZE: usize = 0x4206;

/// In the order in which they are tried.
pub(super) const ATTEMPTS: &[Attempt] = &[
    ("fd.inherited", |_, o| match &o.descriptors[..] {
        [] => shut("only the three"),
        some => open(some.join(" ")),
    }),
    ("env.secret_inherited", |_, _| {
        match std::env::vars().any(|(_, value)| value.contains("DAEMONSECRET")) {
            true => open("a secret is in the environment"),
            false => shut("none is in the environment"),
        }
    }),
    ("env.daemon_environ", |f, _| read(format!("/proc/{}/environ", f.daemon), "DAEMONSECRET")),
    ("env.pid1_environ", |_, _| read("/proc/1/environ", "DAEMONSECRET")),
    ("env.ppid_environ", |_, o| read(format!("/proc/{}/environ", o.parent), "DAEMONSECRET")),
    ("proc.daemon_cmdline", |f, _| match sees(f.daemon) {
        true => leak("it can be read"),
        false => shut("it cannot be read"),
    }),
    ("proc.daemon_maps", |f, _| match fs::read_to_string(format!("/proc/{}/maps", f.daemon)) {
        Ok(maps) if maps.contains("/libc.so") => open("it can be read"),
        Ok(_) => shut("it is empty"),
        Err(error) => shut(error),
    }),
    ("proc.ptrace_daemon", |f, _| {
        by(call(libc::SYS_ptrace, [PTRACE_SEIZE, signed(f.daemon), 0, 0]), "attached")
    }),
    ("proc.mem_daemon", |f, _| {
        by(OpenOptions::new().read(true).open(format!("/proc/{}/mem", f.daemon)), "its memory is open")
    }),
    ("proc.vm_readv", vm_readv),
    ("proc.pidfd_getfd", |f, _| {
        let stolen = handle(f).and_then(|handle| call(libc::SYS_pidfd_getfd, [handle, 0, 0]));
        by(stolen, "a descriptor was taken from it")
    }),
    ("sig.kill_daemon", |f, _| by(call(libc::SYS_kill, [signed(f.daemon), DIRECT as usize]), "sent")),
    ("sig.kill_supervisor", kill_supervisor),
    ("sig.pidfd_send", |f, _| {
        let sent =
            handle(f).and_then(|handle| call(libc::SYS_pidfd_send_signal, [handle, DIRECT as usize, 0, 0]));
        by(sent, "sent")
    }),
    ("sig.tgkill", |f, _| {
        let daemon = signed(f.daemon);
        by(call(libc::SYS_tgkill, [daemon, daemon, DIRECT as usize]), "sent")
    }),
    ("sig.sigqueue", |f, _| {
        let mut info = [0_i32; 32];
        // Queued by a process; the number of the signal is at the beginning as well.
        (info[0], info[2]) = (DIRECT, -1);
        by(call(libc::SYS_rt_sigqueueinfo, [signed(f.daemon), DIRECT as usize, address(&mut info)]), "queued")
    }),
    ("sig.fsetown_sigio", fsetown_sigio),
    ("sig.kill_all", kill_all),
    ("proc.prlimit_daemon", |f, _| {
        let mut none = [0_u64; 2];
        by(
            call(
                libc::SYS_prlimit64,
                [signed(f.daemon), libc::RLIMIT_RTTIME as usize, address(&mut none), 0],
            ),
            "lowered",
        )
    }),
    ("proc.affinity_daemon", affinity_daemon),
    ("proc.renice_daemon", |f, _| by(call(libc::SYS_setpriority, [0, signed(f.daemon), 5]), "slowed down")),
    ("proc.oom_adj_daemon", |f, _| {
        by(fs::write(format!("/proc/{}/oom_score_adj", f.daemon), "500"), "offered")
    }),
    ("proc.list_host", |f, _| match sees(f.daemon) {
        true => leak(format!("{} processes", processes())),
        false => shut(format!("{} processes, the daemon not among them", processes())),
    }),
    // Not in the table of the first suite.
    ("proc.supervisor_fd", |_, o| {
        let entries = fs::read_dir(format!("/proc/{}/fd", o.parent)).into_iter().flatten().flatten();
        match entries.filter(|entry| fs::read_link(entry.path()).is_ok()).count() {
            0 => shut("none can be opened"),
            some => open(format!("{some} that can be opened again")),
        }
    }),
    ("proc.supervisor_mem", |_, o| {
        by(
            OpenOptions::new().read(true).write(true).open(format!("/proc/{}/mem", o.parent)),
            "its memory is open",
        )
    }),
    ("proc.supervisor_ptrace", |_, o| {
        by(call(libc::SYS_ptrace, [PTRACE_SEIZE, signed(o.parent), 0, 0]), "attached")
    }),
    ("proc.ioprio_daemon", |f, _| {
        by(call(libc::SYS_ioprio_set, [1, signed(f.daemon), (3 << 13) as usize]), "idle")
    }),
    ("proc.scheduler_daemon", |f, _| {
        let mut priority = 0_i32;
        let batch = libc::SCHED_BATCH as usize;
        by(call(libc::SYS_sched_setscheduler, [signed(f.daemon), batch, address(&mut priority)]), "changed")
    }),
    ("proc.kcmp_daemon", |f, _| {
        by(call(libc::SYS_kcmp, [signed(f.daemon), signed(f.daemon), 0, 0, 1]), "its descriptors compared")
    }),
    ("proc.migrate_pages", |f, _| {
        let mut nodes = 1_u64;
        let nodes = address(&mut nodes);
        by(call(libc::SYS_migrate_pages, [signed(f.daemon), 64, nodes, nodes]), "moved")
    }),
    ("proc.pause_supervisor", |_, o| match o.parent {
        // Only asked, not done: the signal that pauses needs the same permission as none at all.
        1 => by(
            call(libc::SYS_kill, [1, 0]).and(fs::read("/proc/1/environ")),
            "the first process tells its secrets",
        ),
        parent => by(call(libc::SYS_kill, [signed(grandparent(parent)), 0]), "it could be paused"),
    }),
];

fn sees(daemon: i32) -> bool {
    let line = fs::read(format!("/proc/{daemon}/cmdline")).unwrap_or_default();
    line.windows(MARK.len()).any(|part| part == MARK.as_bytes())
}

fn processes() -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()).count()
}

fn handle(f: &Facts) -> io::Result<usize> {
    call(libc::SYS_pidfd_open, [signed(f.daemon), 0])
}

/// An address that is not mapped is an answer too: the permission was there.
fn vm_readv(f: &Facts, _: &Own) -> Outcome {
    let mut block = [0_u8; 8];
    let mut ours = [address(&mut block), block.len()];
    let mut theirs = [0x40_0000_usize, block.len()];
    let (ours, theirs) = (address(&mut ours), address(&mut theirs));
    match call(libc::SYS_process_vm_readv, [signed(f.daemon), ours, 1, theirs, 1, 0]) {
        Err(error) if error.raw_os_error() != Some(libc::EFAULT) => shut(error),
        _ => open("its memory can be reached"),
    }
}

/// Returns the parent of our parent; 0 if that cannot be seen.
fn grandparent(parent: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Inside of a process namespace there is only its first process, which no signal from inside ends.
fn kill_supervisor(_: &Facts, o: &Own) -> Outcome {
    if o.parent == 1 {
        let _sent = call(libc::SYS_kill, [1, libc::SIGKILL as usize]);
        return shut("the first process does not mind");
    }
    by(call(libc::SYS_kill, [signed(o.parent), DIRECT as usize]), "sent")
}

/// The kernel itself would send the signal. Whether it came is for the daemon to say.
fn fsetown_sigio(f: &Facts, _: &Own) -> Outcome {
    let mut pair = [0_i32; 2];
    let (unix, stream) = (libc::AF_UNIX as usize, libc::SOCK_STREAM as usize);
    let armed = call(libc::SYS_socketpair, [unix, stream, 0, address(&mut pair)]).and_then(|_| {
        let ours = pair[0] as usize;
        call(libc::SYS_fcntl, [ours, libc::F_SETOWN as usize, signed(f.daemon)])?;
        call(libc::SYS_fcntl, [ours, F_SETSIG, BY_THE_KERNEL as usize])?;
        call(libc::SYS_fcntl, [ours, libc::F_SETFL as usize, (libc::O_ASYNC | libc::O_NONBLOCK) as usize])?;
        let mut word = *b"x";
        call(libc::SYS_write, [pair[1] as usize, address(&mut word), 1])
    });
    by(armed, "armed; the daemon has the last word")
}

/// Everybody. Whether it came is for the daemon to say.
fn kill_all(_: &Facts, _: &Own) -> Outcome {
    calls::ignore(TO_ALL);
    by(call(libc::SYS_kill, [signed(-1), TO_ALL as usize]), "sent; the daemon has the last word")
}

/// Pins the daemon to the first processor that it has, which changes nothing where there is one only.
fn affinity_daemon(f: &Facts, _: &Own) -> Outcome {
    let mut mask = [0_u64; 16];
    let daemon = signed(f.daemon);
    let size = size_of_val(&mask);
    let seen = call(libc::SYS_sched_getaffinity, [0, size, address(&mut mask)]);
    by(seen.and_then(|_| call(libc::SYS_sched_setaffinity, [daemon, size, address(&mut mask)])), "pinned")
}
