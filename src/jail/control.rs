//! The messages between a daemon and its supervisor, over the socket that is the supervisor's standard input.
//!
//! ```text
//! daemon      supervisor
//!   Request ──────▶          plan, the worker's input and the sockets that it inherits, once
//!           ◀────── Outlets  the listeners of the jail's network, as descriptors, if the plan has some
//!           ◀────── Ready    every layer holds, the worker runs   (or Refused: nothing ran)
//!           ◀────── Ended    no process of the jail is left
//!   (byte)  ──────▶          the worker is to end: tell everything in the jail so
//!   (end)   ──────▶          the daemon has closed its side, or died: kill everything
//! ```
//!
//! Every message is its length (four bytes, little-endian) and its JSON.
#![forbid(unsafe_code)]

use std::fmt;
#[cfg(target_os = "linux")]
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use super::bounds::Space;
use super::plan::{Plan, Tier};

/// A step of building a jail. Each must succeed before the worker is executed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Step {
    /// Starting the supervisor and getting its first message.
    Supervisor,
    /// Refusing a plan that asks for a grant which this version does not have.
    Grant,
    /// Refusing a daemon or worker that would be root.
    Unprivileged,
    /// A new session, closed descriptors, default signals, and the umask.
    Session,
    /// Empty files and directories in the place of missing protected paths.
    Placeholders,
    /// User, mount, process, network and other namespaces.
    Namespaces,
    /// The user's own number, and no other, inside the user namespace.
    IdMap,
    /// The signal that ends the worker with its supervisor.
    DeathSignal,
    /// The empty loopback interface.
    Loopback,
    /// Listeners on that loopback, for the destinations that the worker may reach, and handing them to the daemon.
    Outlets,
    /// No further user namespaces inside.
    NoNestedNamespaces,
    /// A share of the resources that the kernel counts for the whole user.
    UserCounts,
    /// Mounts that no longer propagate to the host.
    PrivateMounts,
    /// Directories opened without symbolic links, checked and restricted.
    Sources,
    /// The new root directory and its temporary file systems.
    NewRoot,
    /// Six harmless device files, and terminals of the worker's own.
    Devices,
    /// Attaching the paths that the worker may see.
    Binds,
    /// A `/proc` that shows only the jail.
    Proc,
    /// Leaving the host's tree of directories behind.
    Pivot,
    /// A root above the workspace that cannot be written.
    ReadOnlyRoot,
    /// A Landlock domain that signals cannot leave (`ll`).
    SignalScope,
    /// The private folder for temporary files (`ll`).
    Scratch,
    /// Making the supervisor the parent of the jail's orphans (`ll`).
    Subreaper,
    /// Private files in the worker's home.
    HomeFiles,
    /// The worker's process itself.
    Fork,
    /// The directory in which the worker starts.
    WorkingDirectory,
    /// The worker's program, unchanged.
    Program,
    /// Preparing the checks that the supervisor does while the worker runs.
    Watch,
    /// Giving the worker its standard input.
    Input,
    /// Setting the limits of resources.
    Limits,
    /// The setting by which no setuid program gives privileges.
    NoNewPrivileges,
    /// Landlock's rules, fully enforced.
    Landlock,
    /// Every capability dropped irrevocably.
    Capabilities,
    /// The system call filter.
    Seccomp,
    /// The tier, if the system does not have it.
    System,
    /// The token with which the worker can write only in its own folders (`job`).
    Token,
    /// The job object that holds the worker's processes (`job`).
    Job,
    /// Executing the worker's program, the last step.
    Execute,
}

impl Step {
    /// Returns the steps on the way to a worker in a tier, in their order.
    pub fn all(tier: Tier) -> &'static [Step] {
        use Step::*;
        match tier {
            Tier::Ns => &[
                Unprivileged,
                Session,
                Input,
                Placeholders,
                Watch,
                Namespaces,
                DeathSignal,
                IdMap,
                Loopback,
                Outlets,
                NoNestedNamespaces,
                UserCounts,
                PrivateMounts,
                Sources,
                NewRoot,
                Devices,
                Binds,
                Proc,
                Pivot,
                ReadOnlyRoot,
                HomeFiles,
                Fork,
                WorkingDirectory,
                Program,
                Limits,
                NoNewPrivileges,
                Landlock,
                Capabilities,
                Seccomp,
                Execute,
            ],
            Tier::Ll => &[
                Unprivileged,
                Session,
                Input,
                Subreaper,
                SignalScope,
                Scratch,
                HomeFiles,
                Watch,
                Fork,
                DeathSignal,
                WorkingDirectory,
                Program,
                Limits,
                NoNewPrivileges,
                Landlock,
                Capabilities,
                Seccomp,
                Execute,
            ],
            Tier::Job => &[
                System, Input, Program, Sources, Watch, Scratch, HomeFiles, Token, Job, Fork, Limits, Execute,
            ],
        }
    }

    /// Names the step, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Step::Supervisor => "starting the supervisor",
            Step::Grant => "what the plan asks for",
            Step::Unprivileged => "running as an ordinary user",
            Step::Session => "a session of its own",
            Step::Placeholders => "protecting missing files",
            Step::Namespaces => "user namespaces",
            Step::IdMap => "the identity inside the user namespace",
            Step::DeathSignal => "dying with the supervisor",
            Step::Loopback => "the empty network",
            Step::Outlets => "the listeners for what the worker may reach",
            Step::NoNestedNamespaces => "forbidding further namespaces",
            Step::UserCounts => "the worker's share of what the kernel counts for the user",
            Step::PrivateMounts => "private mounts",
            Step::Sources => "opening the directories of the plan",
            Step::NewRoot => "the new root directory",
            Step::Devices => "device files",
            Step::Binds => "attaching the directories of the plan",
            Step::Proc => "a private /proc",
            Step::Pivot => "leaving the host's directories",
            Step::ReadOnlyRoot => "the read-only root directory",
            Step::SignalScope => "Landlock's signal scope",
            Step::Scratch => "the private temporary folder",
            Step::Subreaper => "collecting orphans",
            Step::HomeFiles => "the files of the worker's home",
            Step::Fork => "the worker's process",
            Step::WorkingDirectory => "the working directory",
            Step::Program => "the worker's program",
            Step::Watch => "measuring the workspace",
            Step::Input => "the worker's input",
            Step::Limits => "resource limits",
            Step::NoNewPrivileges => "no new privileges",
            Step::Landlock => "Landlock",
            Step::Capabilities => "dropping capabilities",
            Step::Seccomp => "the system call filter",
            Step::System => "the worker's tier",
            Step::Token => "the token that keeps it from writing",
            Step::Job => "the job object",
            Step::Execute => "executing the worker's program",
        }
    }

    /// Returns advice for a person.
    fn advice(self) -> &'static str {
        match self {
            Step::Supervisor => "see the daemon's log; the executable must not be replaced while it runs",
            Step::Grant => "remove the grant from the rule or from the request",
            Step::Unprivileged => "start provost as an ordinary user",
            Step::Namespaces | Step::IdMap | Step::NoNestedNamespaces => {
                "user namespaces are off on this host, or this already is a jail: allow them \
                 (kernel.unprivileged_userns_clone, user.max_user_namespaces, an AppArmor profile with `userns,`), \
                 or let policy accept tier ll"
            }
            Step::Proc => {
                "containers that cover parts of /proc need it uncovered, or let policy accept tier ll"
            }
            Step::Landlock | Step::SignalScope => {
                "Landlock must be enabled (`landlock` in the kernel's lsm= list); tier ll needs Linux 6.12"
            }
            Step::Seccomp => "the kernel needs CONFIG_SECCOMP_FILTER",
            Step::System => "run `provost doctor` to see which tiers this host supports",
            Step::Token => "nothing runs without it; run `provost doctor` to see what this host supports",
            Step::Job => {
                "if provost itself was started in a job object (by a service, a scheduler or another agent), start it \
                 from a console of its own"
            }
            Step::Sources | Step::Binds | Step::WorkingDirectory | Step::Watch => {
                "the path must exist, hold no symbolic link, and be what it was when the task was accepted"
            }
            Step::Placeholders => "the protected path must be a plain file or directory, not a symbolic link",
            Step::Program | Step::Execute => "check the worker's program and its interpreter, then ask again",
            _ => "run `provost doctor` to see what this host supports",
        }
    }
}

/// The failure to start a worker, because one step of its jail did not succeed. Nothing of the worker has run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
pub struct SetupError {
    /// The step that did not succeed.
    pub step: Step,
    /// The system's error, in words.
    pub cause: String,
    /// The supervisor's exit code: 125 when it refused. `None` when it never answered.
    pub exit: Option<i32>,
}

impl SetupError {
    pub(super) fn new(step: Step, cause: impl fmt::Display) -> Self {
        Self { step, cause: cause.to_string(), exit: None }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the worker was not started: {}: {}; {}", self.step.title(), self.cause, self.step.advice())
    }
}

/// The exit code of a supervisor that refused.
pub(super) const REFUSED: i32 = 125;

/// The daemon's only message. The worker's input follows it, `input` bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) plan: Plan,
    /// The length of the input; `None` if the worker reads from `/dev/null`.
    pub(super) input: Option<usize>,
    /// The purposes of the descriptors that come last, with one byte.
    #[serde(default)]
    pub(super) handed: Vec<HandedOver>,
    /// The folder in which placeholders are kept for the next run; `None` if they are not kept.
    #[serde(default)]
    pub(super) spares: Option<PathBuf>,
    /// How many workers may run at once.
    #[serde(default)]
    pub(super) workers: u32,
}

/// The purpose of a descriptor that travels to the supervisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum HandedOver {
    /// The worker's socket to the daemon; it stays open in the worker.
    Door,
    /// The worker's standard input.
    Input,
    /// The worker's standard input and standard output.
    Stdio,
}

/// The most descriptors that travel at once.
#[cfg(target_os = "linux")]
pub(super) const HANDED_MAX: usize = 3;

/// The supervisor's messages.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// Listeners come with this message, bound to these addresses of the jail's own network, in this order.
    Outlets(Vec<SocketAddr>),
    /// The worker runs. `layers` names the layers that hold it. If the supervisor dies, the daemon waits for `first`, the process
    /// with which all others end, and removes the folder `scratch`.
    Ready { layers: Vec<String>, first: i32, scratch: Option<std::path::PathBuf> },
    /// A step of building the jail has failed; nothing runs, and nothing ran.
    Refused(SetupError),
    /// No process of the jail is left.
    Ended(Ended),
}

/// The reason why a supervisor ended a worker without an order.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Breach {
    /// All processes together had more memory than the limit.
    Memory,
    /// The worker took more space than its limit.
    Space(Space),
    /// A protected path has changed.
    Protection,
    /// There is a repository that was not there before.
    Repository,
}

/// The worker's end, as its supervisor saw it.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    /// The supervisor's own reason to end the worker.
    pub(super) breach: Option<Breach>,
    /// Processes that outlived the worker's first one and were killed.
    pub(super) swept: u32,
    /// Whether the worker was seen with as many processes as it may have.
    pub(super) processes_reached: bool,
}

/// Encodes a message with its length in front.
pub(super) fn frame(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    // Plans are bounded far below four gibibytes where they are sent.
    let mut frame = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    frame.extend(body);
    Ok(frame)
}
