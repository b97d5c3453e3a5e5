//! The first process of the namespaces: maps its user, builds the root, starts the worker, and from then on
//! only collects ended processes. It ends with the worker, and the kernel kills all others then.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{DumpableBehavior, Signal};

use super::confined::{Inherited, JailPaths, become_the_worker};
use super::counts::Shares;
use super::failure_pipe::FaultWriter;
use super::mount_stubs::Bind;
use super::supervisor::Control;
use super::sys::{self, Forked};
use super::{home, landlock, limits, mounts, step};
use crate::control::{SetupError, Step};
use crate::layer::Layer;
use crate::plan::Plan;

/// The namespaces of a jail.
pub(super) const FLAGS: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWNET;

/// Returns the namespaces for a plan: all of them, unless a test leaves one out.
pub(super) fn flags(plan: &Plan) -> i32 {
    let each = [
        (Layer::PidNamespace, libc::CLONE_NEWPID),
        (Layer::NetNamespace, libc::CLONE_NEWNET),
        (Layer::IpcNamespace, libc::CLONE_NEWIPC),
    ];
    each.iter().filter(|(layer, _)| plan.lacks(*layer)).fold(FLAGS, |flags, (_, flag)| flags & !flag)
}

/// Returns the names of the layers of tier `ns`.
pub(super) fn layers() -> Vec<String> {
    let names = ["user", "mount", "pid", "ipc", "uts", "cgroup", "net"];
    let mut layers: Vec<String> = names.iter().map(|name| format!("{name} namespace")).collect();
    layers.push("root directory".into());
    layers.extend(landlock::layers());
    layers
}

/// The ends of pipes and sockets by which the first process reports.
pub(super) struct Ends<'a> {
    /// To the daemon: the listeners of the new network.
    pub(super) control: &'a Control,
    /// To the supervisor: the failure.
    pub(super) fault: FaultWriter,
    /// To the supervisor: the worker's exit status.
    pub(super) status: &'a OwnedFd,
}

/// Runs the first process. It ends with the worker.
pub(super) fn main(
    plan: &Plan,
    owner: Owner,
    binds: &[Bind],
    (processes, shares): (u64, &Shares),
    inherited: Inherited,
    ends: Ends<'_>,
) -> ! {
    let Ends { control, fault, status } = ends;
    let built = catch_unwind(AssertUnwindSafe(|| world(plan, (owner, shares), binds, control, &fault)));
    let panicked = |_| Err(SetupError::new(Step::NewRoot, "the setup has panicked"));
    if let Err(error) = built.unwrap_or_else(panicked) {
        fault.give_up(&error);
    }
    let worker = match step(plan, Step::Fork, || sys::fork_into(0)) {
        Ok(Forked::Child) => {
            fault.unless(|| become_the_worker(plan, &JailPaths::own_root(plan, processes, shares), inherited))
        }
        Ok(Forked::Parent(worker)) => worker,
        Err(error) => fault.give_up(&error),
    };
    drop(inherited);
    if let Err(error) = become_inert(status) {
        fault.give_up(&SetupError::new(Step::Capabilities, error));
    }
    if !plan.lacks(Layer::PidNamespace) {
        sys::pass_on_the_end();
    }
    // These are the daemon's socket and all other descriptors. `fault` is among them, whose end tells the supervisor that
    // no failure can come any more. The pipe for the worker's status is descriptor 0 by now.
    std::mem::forget(fault);
    sys::close_from(3);
    loop {
        match sys::wait_for_any() {
            Ok((pid, raw)) if pid == worker => {
                let told = rustix::io::write(io::stdin(), &raw.to_le_bytes()).is_ok();
                sys::exit(i32::from(!told))
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => sys::exit(1),
        }
    }
}

fn world(
    plan: &Plan,
    (owner, shares): (Owner, &Shares),
    binds: &[Bind],
    control: &Control,
    fault: &FaultWriter,
) -> Result<(), SetupError> {
    step(plan, Step::DeathSignal, || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The supervisor is outside of this process namespace and could have died before the line above.
        match fault.is_abandoned() {
            true => Err(io::Error::other("the supervisor has gone")),
            false => Ok(()),
        }
    })?;
    step(plan, Step::IdMap, || owner.map())?;
    if !plan.lacks(Layer::NoNewPrivileges) {
        step(plan, Step::NoNewPrivileges, || rustix::thread::set_no_new_privs(true))?;
    }
    step(plan, Step::Loopback, || {
        if !plan.lacks(Layer::NetNamespace) {
            let socket =
                rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
            sys::loopback_up(&socket)?;
        }
        sys::set_hostname(c"jail")
    })?;
    step(plan, Step::Outlets, || match plan.outlets.is_empty() {
        true => Ok(()),
        false => control.hand_over(outlets(&plan.outlets)?),
    })?;
    // Written before /proc/sys becomes read-only. It holds for this user namespace and all below it.
    if !plan.lacks(Layer::NoNestedNamespaces) {
        step(plan, Step::NoNestedNamespaces, || {
            tell("/proc/sys/user/max_user_namespaces", "0")?;
            shares.keep_from_nesting()
        })?;
    }
    if !plan.lacks(Layer::Limits) {
        step(plan, Step::UserCounts, || shares.keep())?;
    }
    if !plan.lacks(Layer::Root) {
        mounts::build(plan, binds)?;
    }
    step(plan, Step::HomeFiles, || match plan.lacks(Layer::Root) && !plan.home_files.is_empty() {
        true => Err(io::Error::other("there is no private home without a root directory")),
        false => home::furnish(&plan.home, &plan.home_files),
    })
}

/// Opens listeners on both loopback addresses; a kernel without IPv6 has only one.
fn outlets(ports: &[u16]) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(2 * ports.len());
    for port in ports {
        listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, *port))?);
        match TcpListener::bind((Ipv6Addr::LOCALHOST, *port)) {
            Ok(listener) => listeners.push(listener),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(listeners)
}

/// Writes a value to a file of the kernel's.
pub(super) fn tell(path: &str, word: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    File::from(file).write_all(word.as_bytes()).map_err(super::about(std::path::Path::new(path)))
}

/// User and group as the host knows them. Inside of a new user namespace they have no number until they are
/// mapped, so they are read before.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// Returns the user and group of this process, which must still be outside.
    pub(super) fn of_this_process() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// Maps the user's own number and group inside, and no others.
    fn map(self) -> io::Result<()> {
        let Self { uid, gid } = self;
        tell("/proc/self/setgroups", "deny")?;
        tell("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
        tell("/proc/self/gid_map", &format!("{gid} {gid} 1"))
    }
}

/// Drops all rights of this process and makes it unreadable, since every process
/// inside could inspect it.
fn become_inert(status: &OwnedFd) -> io::Result<()> {
    limits::drop_capabilities(true)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    sys::redirect(status, 0)?;
    sys::redirect(&null, 1)?;
    sys::redirect(&null, 2)
}

/// Tries to make namespaces and to map the user there, in a process that does nothing else.
///
/// # Errors
/// The system's error, as the worker's own would meet it.
pub(super) fn attempt(flags: i32) -> io::Result<()> {
    let owner = Owner::of_this_process();
    let number = |e: io::Error| e.raw_os_error().unwrap_or(UNKNOWN);
    match sys::fork_into(flags)? {
        Forked::Child => sys::exit(owner.map().err().map_or(0, number)),
        Forked::Parent(_) => match sys::wait_for_any()?.1 {
            status if !libc::WIFEXITED(status) => Err(io::Error::other("the attempt was killed")),
            status => match libc::WEXITSTATUS(status) {
                0 => Ok(()),
                UNKNOWN => Err(io::Error::other("the attempt failed")),
                number => Err(io::Error::from_raw_os_error(number)),
            },
        },
    }
}

/// The exit code of an attempt that failed without an error number.
const UNKNOWN: i32 = 255;
