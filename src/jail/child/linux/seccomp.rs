//! The system call filter: it refuses calls that no worker needs, and that Landlock and
//! namespaces do not see.
//!
//! There are three programs, all pure BPF. The first answers that a limit was set, and sets none: the limit
//! of core files. With its present value the kernel starts no handler of crashes, and many programs would set it
//! to zero. The second answers "no such call" for calls whose arguments lie in memory, which a filter cannot
//! read, so that C libraries fall back to the older call that it can judge. The third answers "not
//! permitted". Calls of another architecture end the process; the x32 numbers do not exist.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;

use libc::*;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::layer::Layer;
use crate::plan::{Plan, Tier};

/// Proof that all programs are in force.
pub(super) struct Filtered(());

/// Mounts and roots: no worker rearranges the file tree.
const TREE: [c_long; 19] = [
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    OPEN_TREE_ATTR,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_acct,
];

/// Calls that make or enter namespaces.
const NAMESPACES: [c_long; 2] = [SYS_unshare, SYS_setns];

/// Calls that reach into other processes.
const PROCESSES: [c_long; 9] = [
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_process_mrelease,
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_migrate_pages,
    SYS_move_pages,
];

/// Large parts of the kernel with a history of flaws, and calls for the host's owner.
const KERNEL: [c_long; 27] = [
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_fanotify_init,
    SYS_fanotify_mark,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_syslog,
    SYS_vhangup,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_lookup_dcookie,
    SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: [c_long; 7] =
    [SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: [c_long; 0] = [];

/// System V and POSIX queues and memory: without an IPC namespace they belong to the whole host.
const HOST_IPC: [c_long; 13] = [
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_mq_open,
    SYS_mq_unlink,
];

/// Watching files, which includes files of other users.
#[cfg(target_arch = "x86_64")]
const INOTIFY: [c_long; 2] = [SYS_inotify_init, SYS_inotify_init1];
#[cfg(not(target_arch = "x86_64"))]
const INOTIFY: [c_long; 1] = [SYS_inotify_init1];

/// Priorities and limits of other processes of this user, which Landlock does not see: only a zero in the given
/// argument, which means the calling process, passes.
const MYSELF_ONLY: [(c_long, u8); 7] = [
    (SYS_prlimit64, 0),
    (SYS_sched_setaffinity, 0),
    (SYS_sched_setscheduler, 0),
    (SYS_sched_setparam, 0),
    (SYS_sched_setattr, 0),
    (SYS_setpriority, 1),
    (SYS_ioprio_set, 1),
];

/// Calls that take a mode, each with the index of the argument that holds it.
#[cfg(target_arch = "x86_64")]
const MODES: [(c_long, u8); 9] = [
    (SYS_chmod, 1),
    (SYS_fchmod, 1),
    (SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (SYS_mknod, 1),
    (SYS_mknodat, 2),
    (SYS_creat, 1),
    (SYS_mkdir, 1),
    (SYS_mkdirat, 2),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES: [(c_long, u8); 5] =
    [(SYS_fchmod, 1), (SYS_fchmodat, 2), (FCHMODAT2, 2), (SYS_mknodat, 2), (SYS_mkdirat, 2)];

/// Calls that take flags and, if they create a file, a mode.
#[cfg(target_arch = "x86_64")]
const CREATES: [(c_long, u8, u8); 2] = [(SYS_open, 1, 2), (SYS_openat, 2, 3)];
#[cfg(not(target_arch = "x86_64"))]
const CREATES: [(c_long, u8, u8); 1] = [(SYS_openat, 2, 3)];

/// Calls that can also connect, each with the index of the argument with the flags.
const SENDS: [(c_long, u8); 3] = [(SYS_sendto, 3), (SYS_sendmsg, 2), (SYS_sendmmsg, 3)];

/// Terminals: pushing input, redirecting the console, changing the line discipline.
const TERMINAL: [u64; 4] = [0x5412, 0x541c, 0x541d, 0x5423];

// These are missing in the C library's list, and have the same number on every architecture.
const FCHMODAT2: c_long = 452;
const OPEN_TREE_ATTR: c_long = 467;
const MPTCP: u64 = 262;
const FIRST_X32: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Puts the filter of a plan's tier in force, irrevocably.
pub(super) fn filter(plan: &Plan) -> io::Result<Filtered> {
    if plan.lacks(Layer::Seccomp) {
        return Ok(Filtered(()));
    }
    let programs = programs(plan.tier).map_err(|e| io::Error::other(e.to_string()))?;
    // If several programs refuse a call, the last one decides the error.
    for program in &programs {
        seccompiler::apply_filter(program).map_err(|e| io::Error::other(e.to_string()))?;
    }
    Ok(Filtered(()))
}

fn programs(tier: Tier) -> Result<[BpfProgram; 3], BackendError> {
    let mut passed_over = Rules::new();
    when(&mut passed_over, SYS_prlimit64, vec![is(0, 0)?, is(1, RLIMIT_CORE.into())?, is_new_limit()?])?;
    #[cfg(target_arch = "x86_64")]
    when(&mut passed_over, SYS_setrlimit, vec![is(0, RLIMIT_CORE.into())?])?;
    let mut absent = Rules::new();
    deny(&mut absent, &[SYS_clone3, SYS_openat2]);
    if tier == Tier::Ll {
        // The kernel counts watches for the whole user, and only a user namespace has a limit of its own. Without them, programs
        // look for changes by themselves.
        deny(&mut absent, &INOTIFY);
    }
    Ok([compile(passed_over, 0)?, compile(absent, ENOSYS)?, without_x32(compile(refused(tier)?, EPERM)?)])
}

fn compile(rules: Rules, answer: i32) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    // Error numbers are small and positive.
    let answer = SeccompAction::Errno(answer.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()
}

/// Makes every x32 call fail with "no such call": its number would otherwise pass for one of this architecture's own.
fn without_x32(mut program: BpfProgram) -> BpfProgram {
    if cfg!(target_arch = "x86_64") {
        let load_number = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
        let is_x32 = sock_filter { code: 0x35, jt: 0, jf: 1, k: FIRST_X32 };
        let no_such_call =
            sock_filter { code: 0x06, jt: 0, jf: 0, k: SECCOMP_RET_ERRNO | ENOSYS.unsigned_abs() };
        program.splice(0..0, [load_number, is_x32, no_such_call]);
    }
    program
}

fn refused(tier: Tier) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for calls in [&TREE[..], &NAMESPACES, &PROCESSES, &KERNEL, &OF_THIS_MACHINE] {
        deny(&mut rules, calls);
    }
    if tier == Tier::Ll {
        deny(&mut rules, &HOST_IPC);
        for (call, argument) in MYSELF_ONLY {
            when(&mut rules, call, vec![isnt(argument, 0)?])?;
        }
    }
    // The kernel reads only the lower half of an ioctl's command, and so does the filter.
    for command in TERMINAL {
        when(&mut rules, SYS_ioctl, vec![is(1, command)?])?;
    }
    let flags =
        [CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP];
    for flag in flags {
        when(&mut rules, SYS_clone, vec![has(0, bits(flag))?])?;
    }
    for bit in [bits(S_ISUID as i32), bits(S_ISGID as i32)] {
        for (call, mode) in MODES {
            when(&mut rules, call, vec![has(mode, bit)?])?;
        }
        for (call, flags, mode) in CREATES {
            when(&mut rules, call, vec![has(flags, bits(O_CREAT))?, has(mode, bit)?])?;
        }
    }
    for (call, flags) in SENDS {
        when(&mut rules, call, vec![has(flags, bits(MSG_FASTOPEN))?])?;
    }
    // A program that opens a file under a lease waits for the holder: a worker could make
    // the user's editor wait.
    when(&mut rules, SYS_fcntl, vec![is(1, bits(F_SETLEASE))?])?;
    // With its own process id as the argument, a worker would lower its own limit.
    when(&mut rules, SYS_prlimit64, vec![isnt(0, 0)?, is(1, RLIMIT_CORE.into())?, is_new_limit()?])?;
    // The normal personality, the query, and addresses without randomisation (which debuggers ask for) are harmless.
    let harmless = [0, 0xffff_ffff, 0x0004_0000];
    when(&mut rules, SYS_personality, harmless.iter().map(|p| isnt(0, *p)).collect::<Result<_, _>>()?)?;
    when(&mut rules, SYS_prctl, vec![is(0, bits(PR_SET_PTRACER))?])?;
    when(&mut rules, SYS_prctl, vec![is(0, bits(PR_SET_MM))?])?;
    sockets(&mut rules, tier)?;
    Ok(rules)
}

/// Allows socket families by list. In a network namespace of its own: local sockets and an empty loopback. Otherwise only queries
/// to the kernel about routes, which resolvers need, and connected pairs.
fn sockets(rules: &mut Rules, tier: Tier) -> Result<(), BackendError> {
    let families: &[i32] = match tier {
        Tier::Ns => &[AF_NETLINK, AF_UNIX, AF_INET, AF_INET6],
        Tier::Ll | Tier::Job => &[AF_NETLINK],
    };
    when(rules, SYS_socket, families.iter().map(|f| isnt(0, bits(*f))).collect::<Result<_, _>>()?)?;
    when(rules, SYS_socket, vec![is(0, bits(AF_NETLINK))?, isnt(2, bits(NETLINK_ROUTE))?])?;
    when(rules, SYS_socket, vec![is(2, MPTCP)?])?;
    when(rules, SYS_socketpair, vec![isnt(0, bits(AF_UNIX))?])
}

fn deny(rules: &mut Rules, calls: &[c_long]) {
    // A call without conditions is refused with any arguments.
    rules.extend(calls.iter().map(|call| (*call, Vec::new())));
}

/// Refuses a call when all conditions hold; several rules for one call are alternatives.
fn when(rules: &mut Rules, call: c_long, conditions: Vec<SeccompCondition>) -> Result<(), BackendError> {
    rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
    Ok(())
}

/// Returns a C constant as the filter compares it: its lower 32 bits.
fn bits(constant: i32) -> u64 {
    u64::from(constant as u32)
}

/// Returns the condition that a limit is set and not only read. All bits of the pointer count.
fn is_new_limit() -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn isnt(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, bit: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)
}
