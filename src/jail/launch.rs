//! Starts a worker, and has the handle by which it is followed and ended. The other half is in `keeper.rs`.
#![forbid(unsafe_code)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use super::bounds::Space;
#[cfg(not(target_os = "linux"))]
use super::child::start;
use super::control::{HandedOver, Request, SetupError, Step, frame};
#[cfg(target_os = "linux")]
use super::keeper::start;
use super::output::LiveOutput;
use super::plan::{DoorSocket, Plan};
use provost_base::limits::{PLAN_BYTES_MAX, STDIN_BYTES_MAX, WORKERS_USUAL};

/// The way in which supervisors are started: the executable and its options.
#[derive(Clone, Debug)]
pub struct Supervisor {
    executable: PathBuf,
    user: Option<(u32, u32)>,
    groups: Option<Groups>,
    spares: Option<PathBuf>,
    workers: u32,
}

/// The place where a daemon makes the control groups of its workers, and their walls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Groups {
    /// The group below which the workers' groups are made.
    pub base: PathBuf,
    /// Whether memory has a wall there.
    pub memory: bool,
    /// Whether the number of processes has one.
    pub processes: bool,
}

/// The variable by which a supervisor gets them.
#[cfg(target_os = "linux")]
pub(super) const GROUPS_VARIABLE: &str = "PROVOST_JAIL_GROUPS";

impl Default for Supervisor {
    /// Returns this very executable, even if its file has been replaced since.
    fn default() -> Self {
        Self::at(provost_system::this_program())
    }
}

impl Supervisor {
    /// Uses another executable, which must call [`main_if_asked`](super::main_if_asked) first.
    pub fn at(executable: impl Into<PathBuf>) -> Self {
        let executable = executable.into();
        Self { executable, user: None, groups: None, spares: None, workers: WORKERS_USUAL }
    }

    /// Makes supervisors and workers run as this user and group, without other groups. Only root can do so.
    #[must_use]
    pub fn running_as(self, uid: u32, gid: u32) -> Self {
        Self { user: Some((uid, gid)), ..self }
    }

    /// Gives workers control groups, if any are delegated to this process, which may be moved to one of its own
    /// then. Called once, by a daemon, at its start.
    #[must_use]
    pub fn with_control_groups(self) -> Self {
        Self { groups: super::child::prepare_groups(), ..self }
    }

    /// Gives workers control groups in this place.
    #[must_use]
    pub fn in_groups(self, groups: Groups) -> Self {
        Self { groups: Some(groups), ..self }
    }

    /// Keeps the directories that stood in for missing settings in this folder for the next run in the same place,
    /// instead of making and removing them each time. The folder is made if its parent exists, must be on
    /// the file system of the workspaces to be of use, and must be this user's alone.
    #[must_use]
    pub fn keeping_spares_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { spares: Some(folder.into()), ..self }
    }

    /// Keeps no such directories, for a workspace that exists for one run.
    #[must_use]
    pub fn without_spares(self) -> Self {
        Self { spares: None, ..self }
    }

    /// Sets how many workers may run at once: they share the resources that the kernel counts for the whole user, such as
    /// instances of inotify, and half of them is left to the user.
    #[must_use]
    pub fn sharing_among(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    /// Returns the place of workers' control groups, if they get any.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Returns the user and group, if they are not the daemon's own.
    #[cfg(target_os = "linux")]
    pub(super) fn user(&self) -> Option<(u32, u32)> {
        self.user
    }

    /// Returns the program that runs as the supervisor.
    pub fn executable(&self) -> &Path {
        &self.executable
    }
}

/// The reason why a worker is not running any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExitReason {
    /// The worker ended by itself with this code.
    Code(i32),
    /// A signal ended the worker: its own fault, or a limit.
    Signal(i32),
    /// The worker's wall time was over.
    TimedOut,
    /// The worker was stopped, or its [`Running`] was dropped.
    Cancelled,
    /// All processes of the worker together had more memory than allowed.
    OverMemory,
    /// The worker's directories or temporary files grew by more than allowed.
    OverSpace(Space),
    /// A protected file was replaced from outside (`git config` does that), which removed its protection. The
    /// worker was ended within a tenth of a second; a person should look at the file.
    ProtectionLost,
    /// The worker made a repository, which it may not.
    RepositoryMade,
    /// The worker's supervisor died; all processes that were left have been killed.
    #[default]
    SupervisorLost,
}

/// The end of a worker. When a caller has this, no process of the worker is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exit {
    /// The reason of the end.
    pub reason: ExitReason,
    /// Processes that outlived the worker's first one and had to be killed. Counted in tier `ll`; in `ns` the
    /// kernel ends them with the namespace, uncounted.
    pub swept: u32,
    /// Whether the worker was seen with as many processes as it may have. Checked once a second.
    pub processes_reached: bool,
}

/// A worker that runs in its jail. Dropping it ends the worker.
#[derive(Debug)]
pub struct Running {
    pub(super) supervisor: u32,
    pub(super) layers: Vec<String>,
    pub(super) output: LiveOutput,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) exit: watch::Receiver<Option<Exit>>,
    pub(super) outlets: Vec<TcpListener>,
}

impl Running {
    /// Returns the supervisor's process id.
    pub fn supervisor(&self) -> u32 {
        self.supervisor
    }

    /// Returns the layers that hold the worker, as the supervisor reported them when all were in force.
    pub fn layers(&self) -> &[String] {
        &self.layers
    }

    /// Returns the worker's output, which may still grow.
    pub fn output(&self) -> &LiveOutput {
        &self.output
    }

    /// Takes the listeners of the jail's own network, for the part of the daemon that answers there. A worker that
    /// connects waits until that part accepts.
    pub fn take_outlets(&mut self) -> Vec<TcpListener> {
        std::mem::take(&mut self.outlets)
    }

    /// Asks all processes of the jail to end, and orders the end if they have not ended after
    /// [`JAIL_GRACE_MS`](provost_base::limits::JAIL_GRACE_MS); orders it at once if they cannot be asked. Returns at
    /// once; [`Running::wait`] reports the end.
    pub fn ask_to_end(&mut self) {
        // The worker may have ended already.
        let _over = self.stop.take().map(|stop| stop.send(()));
    }

    /// Orders the end. Returns at once; [`Running::wait`] reports the end.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits until no process of the worker is left and its output is complete. Can be cancelled and called again.
    pub async fn wait(&mut self) -> Exit {
        let lost = Exit::default();
        match self.exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(lost),
            // The runtime is shutting down; the socket is closed with it.
            Err(_) => lost,
        }
    }
}

/// An open socket or pipe that travels to a worker.
#[cfg(unix)]
pub type Handle = std::os::fd::OwnedFd;
/// An open socket or pipe that travels to a worker.
#[cfg(windows)]
pub type Handle = std::os::windows::io::OwnedHandle;

/// Our end of a conversation with a worker.
#[cfg(unix)]
pub type OurEnd = tokio::net::UnixStream;
/// Our end of a conversation with a worker.
#[cfg(not(unix))]
pub type OurEnd = tokio::io::DuplexStream;

/// Makes the two ends of a socket: one for us, and one for a worker's standard input and output.
///
/// # Errors
/// The system's error; always, if workers cannot be confined.
#[cfg(unix)]
pub fn conversation() -> std::io::Result<(OurEnd, Handle)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((OurEnd::from_std(ours)?, theirs.into()))
}

/// Makes the two ends of a socket: one for us, and one for a worker's standard input and output.
///
/// # Errors
/// Always: a pipe goes one way here.
#[cfg(not(unix))]
pub fn conversation() -> std::io::Result<(OurEnd, Handle)> {
    let why =
        "workers that are spoken to (`type = \"mcp\"` or `\"acp\"`) do not run on Windows in this version";
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, why))
}

/// The input and the descriptors that a worker is given with its plan.
#[derive(Debug, Default)]
pub struct Handed {
    /// The bytes of the worker's standard input; `None` lets it read from `/dev/null`.
    pub input: Option<Vec<u8>>,
    /// The end of a pipe or socket that is the worker's standard input, instead of `input`.
    pub stdin: Option<Handle>,
    /// The end of a socket that is its standard input and output, instead of `input`; see [`conversation()`].
    pub stdio: Option<Handle>,
    /// The socket of [`DoorSocket::Inherited`].
    pub door: Option<Handle>,
}

/// Starts a worker. Its output goes to `output`, from the first byte. `input` has the bytes of its standard
/// input; `None` gives it `/dev/null`.
///
/// # Errors
/// [`SetupError`] if a layer of the jail could not be put in force. Nothing of the worker has run then.
pub async fn launch(
    supervisor: &Supervisor,
    plan: &Plan,
    input: Option<Vec<u8>>,
    output: LiveOutput,
) -> Result<Running, SetupError> {
    launch_with(supervisor, plan, Handed { input, ..Handed::default() }, output).await
}

/// Starts a worker that gets more than bytes to read.
///
/// # Errors
/// As [`launch()`]; also if the plan names a socket that is not handed over, or the other way around.
pub async fn launch_with(
    supervisor: &Supervisor,
    plan: &Plan,
    handed: Handed,
    output: LiveOutput,
) -> Result<Running, SetupError> {
    let (descriptors, kinds) = descriptors(plan, &handed)?;
    let mut request = request(supervisor, plan, handed.input.as_deref(), kinds)?;
    request.extend(handed.input.unwrap_or_default());
    start(supervisor, (request, descriptors), plan, output).await
}

fn descriptors(plan: &Plan, handed: &Handed) -> Result<(Vec<Handle>, Vec<HandedOver>), SetupError> {
    let failed = |e: std::io::Error| SetupError::new(Step::Input, e);
    if (plan.door_socket == Some(DoorSocket::Inherited)) != handed.door.is_some() {
        return Err(failed(std::io::Error::other("the plan and the inherited descriptors do not match")));
    }
    let inputs = [handed.input.is_some(), handed.stdin.is_some(), handed.stdio.is_some()];
    if inputs.iter().filter(|there| **there).count() > 1 {
        return Err(failed(std::io::Error::other("there is one standard input")));
    }
    let (mut descriptors, mut kinds) = (Vec::new(), Vec::new());
    let kinds_of = [
        (HandedOver::Door, &handed.door),
        (HandedOver::Input, &handed.stdin),
        (HandedOver::Stdio, &handed.stdio),
    ];
    for (kind, fd) in kinds_of {
        if let Some(fd) = fd {
            descriptors.push(fd.try_clone().map_err(failed)?);
            kinds.push(kind);
        }
    }
    Ok((descriptors, kinds))
}

fn request(
    supervisor: &Supervisor,
    plan: &Plan,
    input: Option<&[u8]>,
    handed: Vec<HandedOver>,
) -> Result<Vec<u8>, SetupError> {
    if input.is_some_and(|input| input.len() > STDIN_BYTES_MAX) {
        return Err(SetupError::new(Step::Input, format!("more than {STDIN_BYTES_MAX} bytes of input")));
    }
    let spares = supervisor.spares.clone();
    let workers = supervisor.workers;
    let request = Request { plan: plan.clone(), input: input.map(<[u8]>::len), handed, spares, workers };
    let request = frame(&request).map_err(|e| SetupError::new(Step::Supervisor, e))?;
    if request.len() > PLAN_BYTES_MAX {
        return Err(SetupError::new(Step::Grant, format!("the plan has more than {PLAN_BYTES_MAX} bytes")));
    }
    Ok(request)
}
