//! The daemon that an intruder is after: a process of the same user with all that a careless daemon would
//! have, and the one that starts the intruder, with a jail or without.
//!
//! It does not hide its memory as `provost` does, so that what stops the intruder is the jail.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use provost::base::{RepoPath, Ttl};
use provost::jail::{
    Draft, Environment, ExitReason, ForbiddenPaths, Layer, Limits, LiveOutput, Missing, ReadOnlyPath, Stream,
    Supervisor, Tier, find_place, launch, resolve_program,
};
use serde::{Deserialize, Serialize};

use super::calls::{self, c, call, text};
use super::intruder::Facts;
use super::{kernel, resources, roles};

/// Is in the daemon's command line, and says that it is the daemon's.
pub(super) const MARK: &str = "stand-in-of-the-daemon";

/// The signal that the intruder sends to the daemon. This signal and the next two end no process.
pub(super) const DIRECT: i32 = libc::SIGWINCH;

/// The signal that the intruder has the kernel send to the daemon.
pub(super) const BY_THE_KERNEL: i32 = libc::SIGCONT;

/// The signal that the intruder sends to all processes.
pub(super) const TO_ALL: i32 = libc::SIGURG;

/// The order to the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// [`MARK`], so that it is in the command line.
    pub(super) mark: String,
    /// The folder with everything.
    pub(super) world: PathBuf,
    /// The jail to start the intruder in; without one it is started as any program is.
    pub(super) jail: Option<Jail>,
    /// See [`Facts::only`].
    pub(super) only: Vec<String>,
}

impl Order {
    fn forks(&self) -> u32 {
        let unlimited = self.jail.as_ref().is_none_or(|jail| jail.without.contains(&Layer::Limits));
        if unlimited { resources::FORKS_UNLIMITED } else { resources::FORKS_LIMITED }
    }
}

/// A jail.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Jail {
    pub(super) tier: Tier,
    /// The layers that the jail lacks.
    pub(super) without: Vec<Layer>,
    /// The supervisor's executable.
    pub(super) supervisor: PathBuf,
}

/// The daemon's report afterwards.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// One line for each attempt.
    pub(super) lines: String,
    /// The text on standard error, and the intruder's end.
    pub(super) end: String,
    /// Signals that have come.
    pub(super) signals: BTreeSet<i32>,
    /// Those who have come to its sockets, by socket.
    pub(super) visitors: BTreeMap<String, usize>,
    /// Whatever else was done to it.
    pub(super) changed: Vec<String>,
}

/// Sets up, lets the intruder loose, looks at what has happened, and says so on standard output.
pub(super) fn main(order: &str) -> ! {
    let order: Order = serde_json::from_str(order).unwrap();
    // Held to the end: whoever loses the other side of its terminal is hung up.
    let _terminal = calls::take_a_terminal().unwrap();
    std::env::set_current_dir(&order.world).unwrap();
    [DIRECT, BY_THE_KERNEL, TO_ALL].into_iter().for_each(calls::listen_for);
    let doors = Doors::open(&order.world);
    let shared = Shared::make();
    // Left open for whoever is started, as a careless library would.
    let leaked = File::open(order.world.join("home/.ssh/id_ed25519")).unwrap();
    call(libc::SYS_fcntl, [leaked.as_raw_fd() as usize, libc::F_SETFD as usize, 0]).unwrap();
    let before = condition();
    let facts = facts(&order, &doors, &shared);
    let mut report = match &order.jail {
        Some(jail) => in_jail(&order.world, jail, &facts),
        None => at_large(&order.world, &facts),
    };
    report.signals = calls::heard();
    report.visitors = doors.visitors();
    let after = condition();
    let changes = before.iter().zip(&after).filter(|(before, after)| before != after);
    report.changed = changes.map(|(before, after)| format!("{before} -> {after}")).collect();
    drop(shared);
    let mut out = std::io::stdout();
    serde_json::to_writer(&out, &report).unwrap();
    out.flush().unwrap();
    calls::leave(0)
}

/// Returns the facts of a process that another process of its user could change.
fn condition() -> Vec<String> {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let nice = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().to_owned();
    let score = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let processors = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap().to_owned();
    let tracer = status.lines().find(|line| line.starts_with("TracerPid")).unwrap().to_owned();
    let time = rustix::process::getrlimit(rustix::process::Resource::Rttime);
    vec![format!("nice {nice}"), format!("score {}", score.trim()), processors, tracer, format!("{time:?}")]
}

/// Everything that listens.
struct Doors {
    tcp: TcpListener,
    tcp6: TcpListener,
    udp: UdpSocket,
    stream: (UnixListener, PathBuf),
    datagram: (UnixDatagram, PathBuf),
    nameless: (UnixListener, String),
    /// Of programs that the user runs in the workspace, and beside what may be read.
    workspace: UnixListener,
    _in_workspace: UnixDatagram,
    toolchain: UnixListener,
}

impl Doors {
    fn open(world: &Path) -> Self {
        let name = format!("provost-stand-in-{}", std::process::id());
        let (stream, datagram) = (world.join("state/d.sock"), world.join("state/g.sock"));
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let doors = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            stream: (UnixListener::bind(&stream).unwrap(), stream),
            datagram: (UnixDatagram::bind(&datagram).unwrap(), datagram),
            nameless: (UnixListener::bind_addr(&address).unwrap(), name),
            workspace: UnixListener::bind(world.join("workspace/host.sock")).unwrap(),
            _in_workspace: UnixDatagram::bind(world.join("workspace/host.dgram")).unwrap(),
            toolchain: UnixListener::bind(world.join("toolchain/host.sock")).unwrap(),
        };
        doors.workspace.set_nonblocking(true).unwrap();
        doors.toolchain.set_nonblocking(true).unwrap();
        doors.tcp.set_nonblocking(true).unwrap();
        doors.tcp6.set_nonblocking(true).unwrap();
        doors.udp.set_nonblocking(true).unwrap();
        doors.stream.0.set_nonblocking(true).unwrap();
        doors.nameless.0.set_nonblocking(true).unwrap();
        doors
    }

    fn visitors(&self) -> BTreeMap<String, usize> {
        let mut block = [0; 64];
        let counted = [
            ("tcp", std::iter::from_fn(|| self.tcp.accept().ok()).count()),
            ("tcp6", std::iter::from_fn(|| self.tcp6.accept().ok()).count()),
            ("udp", std::iter::from_fn(|| self.udp.recv(&mut block).ok()).count()),
            ("stream", std::iter::from_fn(|| self.stream.0.accept().ok()).count()),
            ("nameless", std::iter::from_fn(|| self.nameless.0.accept().ok()).count()),
            ("toolchain", std::iter::from_fn(|| self.toolchain.accept().ok()).count()),
            ("workspace", std::iter::from_fn(|| self.workspace.accept().ok()).count()),
        ];
        counted
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(door, count)| (door.to_owned(), count))
            .collect()
    }
}

/// The objects that the processes of a host share, under names of this process.
struct Shared {
    key: i32,
    memory: usize,
    messages: usize,
    semaphores: usize,
    queue: String,
    file: PathBuf,
}

impl Shared {
    fn make() -> Self {
        let key = 0x7072_0000 | (std::process::id() & 0xffff) as i32;
        let new = (libc::IPC_CREAT | 0o600) as usize;
        let queue = format!("provost-stand-in-{}", std::process::id());
        let file = PathBuf::from(format!("/dev/shm/{queue}"));
        fs::write(&file, "SHMSECRET").unwrap();
        let flags = (libc::O_CREAT | libc::O_RDWR) as usize;
        calls::owned(call(libc::SYS_mq_open, [text(&c(&queue)), flags, 0o600, 0]).unwrap());
        Self {
            key,
            memory: call(libc::SYS_shmget, [key as usize, 4096, new]).unwrap(),
            messages: call(libc::SYS_msgget, [key as usize, new]).unwrap(),
            semaphores: call(libc::SYS_semget, [key as usize, 1, new]).unwrap(),
            queue,
            file,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let remove = libc::IPC_RMID as usize;
        call(libc::SYS_shmctl, [self.memory, remove, 0]).unwrap();
        call(libc::SYS_msgctl, [self.messages, remove, 0]).unwrap();
        call(libc::SYS_semctl, [self.semaphores, 0, remove]).unwrap();
        call(libc::SYS_mq_unlink, [text(&c(&self.queue))]).unwrap();
        fs::remove_file(&self.file).unwrap();
    }
}

/// Where a link of `/proc` leads: the number of a namespace.
pub(super) fn link(path: &str) -> String {
    fs::read_link(path).unwrap().to_string_lossy().into_owned()
}

fn facts(order: &Order, doors: &Doors, shared: &Shared) -> Facts {
    let path = |name: &str| order.world.join(name);
    Facts {
        daemon: std::process::id() as i32,
        workspace: path("workspace"),
        outside: path("outside"),
        secret: path("home/.ssh/id_ed25519"),
        state: path("state"),
        toolchain: path("toolchain"),
        tcp: doors.tcp.local_addr().unwrap().port(),
        tcp6: doors.tcp6.local_addr().unwrap().port(),
        udp: doors.udp.local_addr().unwrap().port(),
        stream: doors.stream.1.clone(),
        datagram: doors.datagram.1.clone(),
        abstract_name: doors.nameless.1.clone(),
        memory_key: shared.key,
        queue: shared.queue.clone(),
        shared: shared.file.clone(),
        network: link("/proc/self/ns/net"),
        users: link("/proc/self/ns/user"),
        terminals: kernel::terminals().unwrap(),
        forks: order.forks(),
        only: order.only.clone(),
    }
}

fn at_large(world: &Path, facts: &Facts) -> Report {
    let intruder = Command::new(std::env::current_exe().unwrap())
        .args([roles::INTRUDER, &serde_json::to_string(facts).unwrap()])
        .current_dir(world.join("workspace"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let end = format!("{:?} {}", intruder.status.code(), text(&intruder.stderr));
    Report { lines: text(&intruder.stdout), end, ..Report::default() }
}

/// The draft of an intruder's jail.
pub(super) fn draft(world: &Path, tier: Tier, facts: &Facts) -> Draft {
    let program = resolve_program(&std::env::current_exe().unwrap()).unwrap();
    let environment = Environment::new([]);
    let mut draft = Draft::new(program, environment, find_place(&world.join("workspace")).unwrap());
    draft.args = vec![roles::INTRUDER.into(), serde_json::to_string(facts).unwrap()];
    draft.read_only.push(find_place(&world.join("toolchain")).unwrap());
    draft.tier = tier;
    let nested = RepoPath::parse("nested/.git").unwrap();
    draft.guards.push(ReadOnlyPath { path: nested, missing: Missing::Directory });
    draft.limits = Limits {
        processes: resources::processes(tier),
        open_files: resources::OPEN_FILES,
        file_bytes: resources::FILE_BYTES,
        data_bytes: resources::DATA_BYTES,
        tmp_bytes: resources::TMP_BYTES,
        cpu_seconds: resources::CPU_SECONDS,
        wall: Ttl::seconds_clamped(120),
        ..Limits::default()
    };
    draft
}

fn in_jail(world: &Path, jail: &Jail, facts: &Facts) -> Report {
    let forbidden_paths = ForbiddenPaths { home: world.join("home"), forbidden: vec![world.join("state")] };
    let supervisor = Supervisor::at(&jail.supervisor).sharing_among(resources::WORKERS);
    let plan = draft(world, jail.tier, facts).check(&forbidden_paths).unwrap();
    #[cfg(debug_assertions)]
    let plan = plan.without(&jail.without);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let output = LiveOutput::new(plan.limits().output_bytes);
        let mut running = match launch(&supervisor, &plan, None, output).await {
            Ok(running) => running,
            Err(error) => return Report { end: format!("not started: {error}"), ..Report::default() },
        };
        let exit = running.wait().await;
        let text = |stream| running.output().text(stream);
        let end = match exit.reason {
            ExitReason::Code(0) => "Some(0) ".into(),
            other => format!("{other:?} "),
        };
        Report { lines: text(Stream::Out), end: end + &text(Stream::Err), ..Report::default() }
    })
}
