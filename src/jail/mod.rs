//! CONFINEMENT: the jail in which a worker runs, and the resources that it can reach.
//!
//! A [`Plan`] lists everything that one worker may touch. [`launch()`] starts this executable again as a one-shot
//! supervisor (`provost __jail`), hands it the plan over a socket, and follows the worker until no process of
//! it is left. The supervisor builds the jail from kernel features alone: no helper program, no root.
//!
//! What it promises:
//! - Fail closed. A worker is executed only with the proof that every layer of its tier is in force; anything
//!   less is a [`SetupError`] that names the layer and says what can be done. There is no weaker second try.
//! - The whole tree of processes ends with the worker: at its exit, at its time limit, when it is stopped, when
//!   [`Running`] is dropped, and when the daemon dies from any cause.
//! - Bounded output: a worker that floods its standard output neither blocks nor grows the daemon.
//!
//! Three tiers. `ns` puts the worker into namespaces of its own with a root directory made for it, then
//! Landlock, a system call filter, resource limits and no capabilities. `ll` is for hosts without
//! unprivileged user namespaces and has the last four only: files below the workspace cannot be protected
//! there, and metadata (modes, times, extended attributes) of the user's other files stays within reach.
//! `job` is for Windows, where a job object and a write-restricted token restrict a worker to its folders for
//! writing, and restrict nothing else.
//!
//! Beside the jail there are restricted processes ([`start_restricted`]) for the few programs of the daemon's
//! own that need the user's session: they read what the user may read and write into one folder.
//!
//! Left to others: which worker may run where (`policy`), when (`effects`), and what its exit means (`domain`).
#![deny(unsafe_code)] // `child` alone has it, each block with its reason

mod bounds;
mod child;
mod control;
mod conversations;
mod environment;
mod file;
mod home;
mod job;
#[cfg(target_os = "linux")]
mod keeper;
mod launch;
mod layer;
mod machine;
mod output;
mod page_bytes;
mod plan;
mod profile;
mod read_only;
mod repositories;
mod root;
mod seatbelt;
mod transcript;
mod tried;

pub use bounds::{Limits, Space, size};
pub use child::inherited_socket;
#[cfg(any(debug_assertions, feature = "layers-off"))]
pub use child::main_of_the_tests_if_asked;
#[cfg(windows)]
pub use child::make_worker_folder;
#[cfg(target_os = "linux")]
pub use child::start_restricted;
pub use child::{become_subreaper, harden_daemon, main_if_asked, sweep_orphans};
pub use control::{SetupError, Step};
pub use conversations::{Conversations, SessionTurn, TurnKeeper};
pub use environment::{Environment, EnvironmentRefused};
pub use home::HomeFile;
pub use job::{
    JobLimits, OPEN_IN_JOB, command_line, environment_block, folder_descriptor, folder_identity,
    job_environment, job_limits, object_descriptor,
};
pub use launch::{
    Exit, ExitReason, Groups, Handed, Handle, OurEnd, Running, Supervisor, conversation, launch, launch_with,
};
pub use layer::Layer;
pub use machine::{Finding, KnownOpen, MachineSupport, OPEN_IN_LL, probe};
pub use output::{Capture, Chunk, LiveOutput, OutputBoard, Page, Stream, plain_text};
pub use plan::{
    DOOR_SOCKET, DoorSocket, Draft, ENTRANCE_FD, ForbiddenPaths, Network, Plan, PlanRefused, Tier, Topic,
};
pub use profile::{AcpSession, AsAgent, BadRun, Bounds, Copies, Fill, McpCall, ParseMode, Profile};
pub use read_only::{Git, Missing, PLACEHOLDER_MTIME, ReadOnlyPath};
pub use repositories::{Repositories, RepositoryParts, is_repository_name};
pub use root::{Program, Resolved, ResolvedPath, Root, RootRefused, find_place, resolve_program};
pub use seatbelt::{SEATBELT_LACKS, seatbelt_profile};
pub use transcript::{Reader, Transcript, Used, why_in_words};
