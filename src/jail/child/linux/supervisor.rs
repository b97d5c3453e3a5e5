//! The supervisor: one process for each worker, outside of the jail. Reads the plan, builds the jail of its tier,
//! waits for the worker's end or for the order to end it, and reports when no process of the jail is left.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg,
};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags};

use super::confined::{Inherited, JailPaths, become_the_worker};
use super::counts::Shares;
use super::failure_pipe::FailurePipe;
use super::groups::Group;
use super::mount_stubs::MountStubs;
use super::namespaces::Ends;
use super::process_tree;
use super::spare_stubs::SpareStubs;
use super::sys::{self, Forked};
use super::watch::Watch;
use super::{home, landlock, limits, namespaces, step};
use crate::control::{
    Breach, Ended, HANDED_MAX, HandedOver, REFUSED, Request, Said, SetupError, Step, frame,
};
use crate::layer::Layer;
use crate::plan::{Plan, Tier};
use provost_base::limits::{OUTLETS_MAX, PLAN_BYTES_MAX, STDIN_BYTES_MAX};

/// How often the supervisor checks the worker when nothing wakes it, in milliseconds.
const TICK_MS: i64 = 100;

/// Does the daemon's request, and ends with 0, or with [`REFUSED`] if it could not.
pub(in crate::child) fn main(try_namespaces: bool, whole_jails_only: bool) -> ! {
    if try_namespaces {
        let failed = namespaces::attempt(namespaces::FLAGS).err();
        sys::exit(failed.map_or(0, |e| e.raw_os_error().unwrap_or(REFUSED)))
    }
    let Ok(mut control) = Control::take() else { sys::exit(REFUSED) };
    let Err(mut error) = run(&mut control, whole_jails_only) else { sys::exit(0) };
    error.exit = Some(REFUSED);
    // This line is for a person who has called the program by hand; the daemon listens on the socket.
    let _unread = writeln!(io::stderr(), "provost: {error}");
    control.say(&Said::Refused(error));
    sys::exit(REFUSED)
}

/// The daemon's socket.
pub(super) struct Control(File);

impl Control {
    /// Moves the socket away from standard input, which the worker's own takes.
    fn take() -> io::Result<Self> {
        let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        sys::redirect(&null, 0)?;
        Ok(Self(File::from(socket)))
    }

    fn request(&mut self) -> io::Result<(Plan, Option<Vec<u8>>, Handed)> {
        let mut len = [0; 4];
        self.0.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > PLAN_BYTES_MAX {
            return Err(io::Error::other("the plan is too long"));
        }
        let mut body = vec![0; len];
        self.0.read_exact(&mut body)?;
        let request: Request = serde_json::from_slice(&body)?;
        let input = match request.input {
            None => None,
            Some(len) => {
                let mut input = vec![0; len.min(STDIN_BYTES_MAX)];
                self.0.read_exact(&mut input)?;
                Some(input)
            }
        };
        let spares = request.spares.map(SpareStubs::at);
        let handed = Handed { spares, workers: request.workers, ..self.handed(&request.handed)? };
        Ok((request.plan, input, handed))
    }

    /// Receives the descriptors that the request has announced. They come with one byte after everything else.
    fn handed(&self, announced: &[HandedOver]) -> io::Result<Handed> {
        let mut handed = Handed::default();
        if announced.is_empty() {
            return Ok(handed);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let mut came = ancillary.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        for kind in announced {
            let fd = came.next().ok_or_else(|| io::Error::other("an announced descriptor did not come"))?;
            match kind {
                HandedOver::Door => handed.door = Some(fd),
                HandedOver::Input => handed.input = Some(fd),
                HandedOver::Stdio => handed.stdio = Some(fd),
            }
        }
        Ok(handed)
    }

    /// Hands listeners over; afterwards only the daemon has them.
    pub(super) fn hand_over(&self, listeners: Vec<TcpListener>) -> io::Result<()> {
        let at = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let message = frame(&Said::Outlets(at))?;
        let descriptors: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 * OUTLETS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::Error::other("there are too many"));
        }
        let sent =
            rustix::net::sendmsg(&self.0, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL)?;
        // The bytes after the first one carry no descriptors.
        (&self.0).write_all(&message[sent..])
    }

    /// Sends a message. A daemon that does not listen any more cannot be told; its end is noticed elsewhere.
    pub(super) fn say(&mut self, said: &Said) {
        if let Ok(frame) = frame(said) {
            let _unheard = self.0.write_all(&frame);
        }
    }
}

fn run(control: &mut Control, whole_jails_only: bool) -> Result<(), SetupError> {
    let (plan, input, mut handed) = control.request().map_err(|e| SetupError::new(Step::Supervisor, e))?;
    let plan = &plan;
    if whole_jails_only && !plan.without.is_empty() {
        return Err(SetupError::new(Step::Grant, "this executable builds no jail that lacks a layer"));
    }
    step(plan, Step::Unprivileged, || match rustix::process::geteuid().is_root() {
        true => Err("a worker of root cannot be confined"),
        false => Ok(()),
    })?;
    step(plan, Step::Session, || session(plan))?;
    let input = step(plan, Step::Input, || Input::new(input, handed.input.take()))?;
    let ended = match plan.tier {
        Tier::Ns => tier_ns(plan, control, input, handed)?,
        Tier::Ll => tier_ll(plan, control, input, handed)?,
        Tier::Job => return Err(SetupError::new(Step::System, "tier job is for Windows")),
    };
    control.say(&Said::Ended(ended));
    Ok(())
}

fn session(plan: &Plan) -> io::Result<()> {
    if !plan.lacks(Layer::Descriptors) {
        sys::close_at_exec(3)?;
    }
    sys::reset_signals()?;
    // A daemon that has gone must not end this process before the jail is swept.
    sys::ignore_broken_pipes();
    rustix::process::umask(Mode::from_raw_mode(0o077));
    if plan.lacks(Layer::Session) {
        return Ok(());
    }
    match rustix::process::setsid() {
        // Only the leader of a group may not begin a session, and the leader of a session is one.
        Err(rustix::io::Errno::PERM) if sys::leads_its_session() => Ok(()),
        begun => Ok(begun.map(drop)?),
    }
}

/// The descriptors and settings that came from the daemon with the plan.
#[derive(Default)]
struct Handed {
    spares: Option<SpareStubs>,
    workers: u32,
    door: Option<OwnedFd>,
    input: Option<OwnedFd>,
    stdio: Option<OwnedFd>,
}

/// The bytes that the worker reads on its standard input.
struct Input {
    /// The worker's end of the pipe; without one it reads from `/dev/null`.
    reader: Option<OwnedFd>,
    writer: Option<File>,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    fn new(bytes: Option<Vec<u8>>, handed: Option<OwnedFd>) -> io::Result<Self> {
        let Some(bytes) = bytes else {
            return Ok(Self { reader: handed, writer: None, bytes: Vec::new(), written: 0 });
        };
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // Only the supervisor's end must not block; the flag belongs to each end alone.
        rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK)?;
        Ok(Self { reader: Some(reader), writer: Some(File::from(writer)), bytes, written: 0 })
    }

    /// Writes as much as fits. Closes the pipe when all is written, or when the worker has closed its end.
    fn pump(&mut self) {
        let Some(writer) = &mut self.writer else { return };
        let rest = &self.bytes[self.written..];
        match writer.write(rest) {
            _ if rest.is_empty() => self.writer = None,
            Ok(written) => self.written += written,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock || e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.writer = None,
        }
        if self.written == self.bytes.len() {
            self.writer = None;
        }
    }
}

/// The reason why the supervisor stopped waiting.
enum Woken {
    /// The watched process has ended.
    Ended,
    /// The daemon has closed its side.
    Ordered,
    /// The supervisor itself has seen the worker exceed a limit.
    Breached(Breach),
}

fn wait(
    control: &mut Control,
    watched: BorrowedFd<'_>,
    input: &mut Input,
    ask: impl Fn(),
    mut tick: impl FnMut() -> Option<Breach>,
) -> Woken {
    let pause = Timespec { tv_sec: 0, tv_nsec: TICK_MS * 1_000_000 };
    loop {
        let writer = input.writer.as_ref().map(|w| PollFd::new(w, PollFlags::OUT));
        let mut fds =
            vec![PollFd::new(&control.0, PollFlags::IN), PollFd::from_borrowed_fd(watched, PollFlags::IN)];
        fds.extend(writer);
        // An interrupted poll reports nothing and is repeated.
        let _interrupted = poll(&mut fds, Some(&pause));
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if ready[1] {
            return Woken::Ended;
        }
        match ready[0].then(|| control.0.read(&mut [0])) {
            // The daemon closes its side when it has waited long enough.
            Some(Ok(1)) => ask(),
            Some(_) => return Woken::Ordered,
            None => {}
        }
        if ready.get(2) == Some(&true) {
            input.pump();
        }
        if let Some(breach) = tick() {
            return Woken::Breached(breach);
        }
    }
}

/// Waits until the worker runs, and returns the descriptor to watch for its end. After an error a process may still
/// run, which the caller has to end.
fn started(fault: FailurePipe, pid: i32) -> Result<OwnedFd, SetupError> {
    let watched = || -> io::Result<OwnedFd> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
    };
    let watched = watched().map_err(|e| SetupError::new(Step::Fork, e))?;
    fault.verdict()?;
    let_go_of_the_output().map_err(|e| SetupError::new(Step::Session, e))?;
    Ok(watched)
}

/// Closes the supervisor's copies of the worker's output, which would keep its pipes open.
fn let_go_of_the_output() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    sys::redirect(&null, 1)?;
    sys::redirect(&null, 2)
}

/// Ends a process, waits for it, and returns its raw status.
fn end(pid: i32) -> Option<i32> {
    // This fails only for a process that has ended already, and that keeps its id until it is collected here.
    let _ended = sys::signal(pid, libc::SIGKILL);
    let pid = Pid::from_raw(pid)?;
    let status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).ok()??;
    Some(status.1.as_raw())
}

fn tier_ns(
    plan: &Plan,
    control: &mut Control,
    mut input: Input,
    mut handed: Handed,
) -> Result<Ended, SetupError> {
    // This step is the first, so that the error names a host without namespaces, and no placeholder is put into its workspaces.
    step(plan, Step::Namespaces, || namespaces::attempt(libc::CLONE_NEWUSER))?;
    // The placeholders are removed at the end of this function, after all processes inside have ended.
    let placeholders = step(plan, Step::Placeholders, || MountStubs::put(plan, handed.spares.take()))?;
    let processes = limits::processes(plan).map_err(|e| SetupError::new(Step::Limits, e))?;
    let shares = Shares::among(handed.workers).map_err(|e| SetupError::new(Step::UserCounts, e))?;
    let fixed = if plan.lacks(Layer::Root) { BTreeSet::new() } else { placeholders.unchanging() };
    let mut watch = step(plan, Step::Watch, || Watch::new(plan, processes, fixed, None))?;
    let namespaces = |e: io::Error| SetupError::new(Step::Namespaces, e);
    let fault = FailurePipe::new().map_err(namespaces)?;
    let (status_read, status_write) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| namespaces(e.into()))?;
    let group = step(plan, Step::Limits, || Group::of(plan))?;
    let owner = namespaces::Owner::of_this_process();
    let first = match step(plan, Step::Namespaces, || fork_into(namespaces::flags(plan), group.as_ref()))? {
        Forked::Child => {
            let fault = fault.for_writing();
            drop((status_read, input.writer));
            let binds = placeholders.without_holding();
            let inherited = Inherited { input: input.reader, stdio: handed.stdio, door: handed.door };
            let ends = Ends { control, fault, status: &status_write };
            namespaces::main(plan, owner, &binds, (processes, &shares), inherited, ends)
        }
        Forked::Parent(first) => first,
    };
    drop((status_write, input.reader.take(), handed));
    let watched = match started(fault, first) {
        Ok(watched) => watched,
        Err(error) => {
            end(first);
            return Err(error);
        }
    };
    let layers = with_group(namespaces::layers(), &watch, group.as_ref());
    control.say(&Said::Ready { layers, first, scratch: None });
    // Without mounts there is no protection that could be lost.
    let intact = || plan.lacks(Layer::Root) || placeholders.are_intact();
    let ask = || {
        if !plan.lacks(Layer::PidNamespace) {
            // This fails only for a process that has ended.
            let _ended = sys::signal(first, sys::TIME_TO_END);
        }
    };
    let woken = wait(control, watched.as_fd(), &mut input, ask, || {
        if intact() { watch.tick() } else { Some(Breach::Protection) }
    });
    // The kernel lets the first process of a namespace end only after all others in it.
    let own = end(first);
    // The paths are checked once more: a worker could have used a lost protection and ended before the last check.
    let woken = if intact() { woken } else { Woken::Breached(Breach::Protection) };
    let mut status = [0; 4];
    let workers = File::from(status_read).read_exact(&mut status).ok().map(|()| i32::from_le_bytes(status));
    Ok(ended(workers.or(own), woken, 0, (&mut watch, group.as_ref())))
}

fn tier_ll(
    plan: &Plan,
    control: &mut Control,
    mut input: Input,
    handed: Handed,
) -> Result<Ended, SetupError> {
    // There is no namespace of processes here: what the worker leaves behind becomes a child of this process, which ends it.
    step(plan, Step::Subreaper, || rustix::process::set_child_subreaper(Some(rustix::process::getpid())))?;
    step(plan, Step::SignalScope, landlock::scope_signals)?;
    let scratch = step(plan, Step::Scratch, limits::Scratch::new)?;
    step(plan, Step::HomeFiles, || home::furnish(&scratch.path().join("home"), &plan.home_files))?;
    let fork = |e: io::Error| SetupError::new(Step::Fork, e);
    let fault = FailurePipe::new().map_err(fork)?;
    let processes = limits::processes(plan).map_err(|e| SetupError::new(Step::Limits, e))?;
    let shares = Shares::among(handed.workers).map_err(|e| SetupError::new(Step::Limits, e))?;
    let mut watch =
        step(plan, Step::Watch, || Watch::new(plan, processes, BTreeSet::new(), Some(scratch.path())))?;
    let group = Group::of(plan).map_err(|e| SetupError::new(Step::Limits, e))?;
    let inside = JailPaths::in_scratch(scratch.path(), processes, &shares);
    let worker = match step(plan, Step::Fork, || fork_into(0, group.as_ref()))? {
        Forked::Child => {
            let fault = fault.for_writing();
            drop(input.writer);
            let inherited = Inherited { input: input.reader, stdio: handed.stdio, door: handed.door };
            fault.unless(|| become_the_worker(plan, &inside, inherited))
        }
        Forked::Parent(worker) => worker,
    };
    drop((input.reader.take(), handed));
    let mut family = process_tree::ProcessTree::new(worker);
    let watched = match started(fault, worker) {
        Ok(watched) => watched,
        Err(error) => {
            family.end();
            return Err(error);
        }
    };
    let path = scratch.path().to_path_buf();
    let layers = with_group(landlock::layers(), &watch, group.as_ref());
    control.say(&Said::Ready { layers, first: worker, scratch: Some(path) });
    let ask = sys::ask_everything_in_scope;
    let woken = wait(control, watched.as_fd(), &mut input, ask, || {
        family.collect();
        watch.tick()
    });
    family.end();
    Ok(ended(family.workers_status(), woken, family.swept(), (&mut watch, group.as_ref())))
}

/// Forks the worker's first process, or the first process of its namespaces.
fn fork_into(flags: i32, group: Option<&Group>) -> io::Result<Forked> {
    match group {
        Some(group) => sys::fork_into_group(flags, group.entrance()?),
        None => sys::fork_into(flags),
    }
}

fn with_group(mut layers: Vec<String>, watch: &Watch<'_>, group: Option<&Group>) -> Vec<String> {
    layers.extend(watch.layer());
    layers.extend(group.map(Group::layer));
    layers
}

fn ended(
    status: Option<i32>,
    woken: Woken,
    swept: u32,
    (watch, group): (&mut Watch<'_>, Option<&Group>),
) -> Ended {
    let breach = match woken {
        Woken::Breached(breach) => Some(breach),
        Woken::Ended if group.is_some_and(Group::was_over_memory) => Some(Breach::Memory),
        Woken::Ended => watch.last_look(),
        Woken::Ordered => None,
    };
    Ended {
        code: status.filter(|s| libc::WIFEXITED(*s)).map(|s| libc::WEXITSTATUS(s)),
        signal: status.filter(|s| libc::WIFSIGNALED(*s)).map(|s| libc::WTERMSIG(s)),
        breach,
        swept,
        processes_reached: watch.processes_reached() || group.is_some_and(Group::processes_reached),
    }
}
