//! The grants of one worker: pure data, checked once, carried to the supervisor unchanged.
//!
//! A [`Draft`] is a caller's request. Only [`Draft::check`] turns it into a [`Plan`], and
//! launching takes a plan. No value means "unset" here: every limit has a number, no network is
//! [`Network::None`], and an empty list of directories grants nothing.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bounds::Limits;
use super::control::Step;
use super::environment::Environment;
use super::home::HomeFile;
use super::layer::Layer;
use super::read_only::{Git, MASKED, Missing, ReadOnlyPath};
use super::repositories::Repositories;
use super::root::{Program, ResolvedPath};
pub use provost_base::Tier;
use provost_base::later::{self, GitHooks};
use provost_base::limits::{OUTLETS_MAX, OUTPUT_BYTES_MAX};

/// A worker's access to the network, as its plan has it. The rules have a type of their own, which this crate does not know; a plan
/// has the names of hosts only to show them, since the proxy of the run decides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// No network. In `ns` there is an empty loopback for the worker's own servers, in `ll` no socket at all.
    None,
    /// These ports of the host's loopback. Tier `ns` only.
    Ports(Vec<u16>),
    /// These hosts, as `machine:port`. Tier `ns` only.
    Hosts(Vec<String>),
}

/// Names of credentials that lie among the programs of a toolchain.
const CREDENTIALS: [&str; 2] = ["credentials", "credentials.toml"];

/// The system's directories, which a worker may never write to.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
    "/usr",
];

/// The path of the door that was made for a worker's run, in a root directory of its own.
pub const DOOR_SOCKET: &str = "/run/provost/worker.sock";

/// The path of a home that is kept for later runs, in a root directory of its own.
pub(super) const KEPT_HOME: &str = "/run/provost/home";

/// The variable with the number of the socket that a worker inherits instead of [`DOOR_SOCKET`].
pub const ENTRANCE_FD: &str = "PROVOST_WORKER_FD";

/// The way in which a worker reaches the door that was made for its run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoorSocket {
    /// A socket of the host, absolute and without symbolic links, that appears in the jail as
    /// [`DOOR_SOCKET`]. Tier `ns` only.
    Mounted(PathBuf),
    /// A connected socket that is handed over at launch; the only descriptor above 2 that a worker ever has.
    Inherited,
}

/// A caller's request. Paths were found by [`Root`](super::Root) and [`find_place`](super::find_place).
#[derive(Clone, Debug)]
pub struct Draft {
    /// The program that is executed, recognised by device, inode and digest.
    pub program: Program,
    /// The program's arguments, without its own name.
    pub args: Vec<String>,
    /// All variables of the worker; it inherits none.
    pub environment: Environment,
    /// The directory in which the worker starts: one of `writable`, or a directory beneath one.
    pub cwd: ResolvedPath,
    /// Directories that the worker may change. At least one.
    pub writable: Vec<ResolvedPath>,
    /// Directories and files that the worker may read in addition to the system's.
    pub read_only: Vec<ResolvedPath>,
    /// Paths beneath each of `writable` that stay read-only, in addition to git's and the agents' settings.
    pub guards: Vec<ReadOnlyPath>,
    /// Whether `writable` is a copy, in which no program of the host looks for its settings.
    pub is_copy: bool,
    /// The worker's access to the repositories at the top of `writable`.
    pub git: Git,
    /// The repositories that may exist there; one more ends the run. `None` if the worker may make repositories.
    pub repositories: Option<Repositories>,
    /// Whether git runs hooks there, and so do programs that manage hooks.
    pub hooks: GitHooks,
    /// Files and directories beneath `read_only` and `writable` that the worker sees empty.
    pub hidden: Vec<PathBuf>,
    /// Local sockets beneath `writable` and `read_only`, at which programs of the host listen. The worker sees empty
    /// files.
    pub sockets: Vec<PathBuf>,
    /// The network that the worker may reach.
    pub network: Network,
    /// Ports of the jail's own loopback at which the worker finds its network. The supervisor makes listeners there and hands them
    /// to the daemon, which answers; no other way leads out of the jail's network.
    pub outlets: Vec<u16>,
    /// Files for the worker's home.
    pub home_files: Vec<HomeFile>,
    /// The folder that is the worker's home and stays for later runs, at `/run/provost/home`. Tier `ns` only, and without `home_files`.
    pub kept_home: Option<ResolvedPath>,
    /// The tier of the jail.
    pub tier: Tier,
    /// The worker's limits.
    pub limits: Limits,
    /// The worker's way to the daemon; `None` if it has none.
    pub door_socket: Option<DoorSocket>,
}

impl Draft {
    /// Makes a draft for a worker that starts in `workspace` and may change it: tier `ns`, no network, usual limits.
    pub fn new(program: Program, environment: Environment, workspace: ResolvedPath) -> Self {
        Self {
            program,
            args: Vec::new(),
            environment,
            cwd: workspace.clone(),
            writable: vec![workspace],
            read_only: Vec::new(),
            guards: Vec::new(),
            is_copy: false,
            git: Git::Read,
            repositories: None,
            hooks: GitHooks::default(),
            hidden: Vec::new(),
            sockets: Vec::new(),
            network: Network::None,
            outlets: Vec::new(),
            home_files: Vec::new(),
            kept_home: None,
            tier: Tier::Ns,
            limits: Limits::default(),
            door_socket: None,
        }
    }

    /// Lets the worker read a toolchain, without the credentials that may lie at its top.
    pub fn toolchain(&mut self, place: ResolvedPath) {
        self.hidden.extend(CREDENTIALS.iter().map(|name| place.path().join(name)));
        self.read_only.push(place);
    }

    /// Lets the worker read the workspace around the directory that it may change, without the folders in which
    /// daemons meet their clients.
    pub fn surroundings(&mut self, workspace: ResolvedPath) {
        self.hidden.extend(MASKED.iter().map(|name| workspace.path().join(name)));
        self.read_only.push(workspace);
    }

    /// Checks all that can be checked without reading the disk.
    ///
    /// # Errors
    /// [`PlanRefused`] names the part that is too much, or missing.
    pub fn check(self, forbidden_paths: &ForbiddenPaths) -> Result<Plan, PlanRefused> {
        self.check_places(forbidden_paths)?;
        self.check_network()?;
        if self.limits.are_wrong() {
            return Err(PlanRefused::Limits);
        }
        if self.args.iter().any(|arg| arg.contains('\0')) {
            return Err(PlanRefused::Argument);
        }
        if self.tier != Tier::Ns && matches!(self.door_socket, Some(DoorSocket::Mounted(_))) {
            return Err(PlanRefused::Entrance);
        }
        if self.kept_home.is_some() && (self.tier != Tier::Ns || !self.home_files.is_empty()) {
            return Err(PlanRefused::KeptHome);
        }
        let utf8 = |path: &Path| path.to_str().is_some_and(|text| !text.contains(['\0', '\n']));
        let places = self.writable.iter().chain(&self.read_only).map(ResolvedPath::path);
        let places = places.chain(self.sockets.iter().chain(&self.hidden).map(PathBuf::as_path));
        if let Some(odd) =
            places.chain([self.program.asked(), forbidden_paths.home.as_path()]).find(|p| !utf8(p))
        {
            return Err(PlanRefused::Spelling(odd.to_path_buf()));
        }
        let guards = self.all_guards();
        let masked = self.writable.iter().flat_map(|root| MASKED.iter().map(|name| root.path().join(name)));
        Ok(Plan {
            masked: masked.collect(),
            guards,
            git: self.git,
            repositories: self.repositories,
            program: self.program,
            args: self.args,
            environment: self.environment,
            cwd: self.cwd,
            writable: self.writable,
            read_only: self.read_only,
            hidden: self.hidden,
            sockets: self.sockets,
            home: forbidden_paths.home.clone(),
            network: self.network,
            outlets: self.outlets,
            home_files: self.home_files,
            kept_home: self.kept_home,
            tier: self.tier,
            limits: self.limits,
            door_socket: self.door_socket,
            fail_at: None,
            without: Vec::new(),
        })
    }

    /// Checks that there are outlets exactly if there is a grant, and a network namespace with them: Landlock knows ports and not
    /// addresses, so that in `ll` a granted port would be that port of every machine in reach.
    fn check_network(&self) -> Result<(), PlanRefused> {
        let grants = self.network != Network::None;
        match self.tier {
            Tier::Ll if grants => return Err(PlanRefused::NetworkInLl),
            Tier::Job if grants => return Err(PlanRefused::NetworkInJob),
            _ => {}
        }
        let mut ports = self.outlets.clone();
        ports.sort_unstable();
        ports.dedup();
        let other = matches!(&self.network, Network::Ports(granted) if *granted != self.outlets);
        let sound =
            !other && ports.len() == self.outlets.len() && !ports.contains(&0) && ports.len() <= OUTLETS_MAX;
        match sound && grants != ports.is_empty() {
            true => Ok(()),
            false => Err(PlanRefused::Outlets),
        }
    }

    fn check_places(&self, forbidden_paths: &ForbiddenPaths) -> Result<(), PlanRefused> {
        if self.writable.is_empty() || !self.writable.iter().any(|w| self.cwd.path().starts_with(w.path())) {
            return Err(PlanRefused::Directory(self.cwd.path().to_path_buf()));
        }
        for place in &self.writable {
            let path = place.path();
            if is_home(path, &forbidden_paths.home) || path == Path::new("/") {
                return Err(PlanRefused::TooWide(path.to_path_buf()));
            }
            if SYSTEM.iter().any(|system| overlap(path, Path::new(system))) {
                return Err(PlanRefused::System(path.to_path_buf()));
            }
            if self.program.place().path().starts_with(path) {
                return Err(PlanRefused::ProgramInWorkspace(self.program.place().path().to_path_buf()));
            }
        }
        for place in self.writable.iter().chain(&self.read_only).chain(&self.kept_home) {
            let path = place.path();
            if let Some(own) = forbidden_paths.forbidden.iter().find(|own| overlap(path, own)) {
                return Err(PlanRefused::OurOwn { path: path.to_path_buf(), own: own.clone() });
            }
            if path == Path::new("/") || is_home(path, &forbidden_paths.home) || path.starts_with("/proc") {
                return Err(PlanRefused::TooWide(path.to_path_buf()));
            }
        }
        if !forbidden_paths.home.is_absolute() || forbidden_paths.home == Path::new("/") {
            return Err(PlanRefused::Spelling(forbidden_paths.home.clone()));
        }
        Ok(())
    }

    fn all_guards(&self) -> Vec<(PathBuf, Missing)> {
        // OpenCode ends if it finds a folder of this name, and accepts an empty file. For other names
        // folders stay: they are moved there and need not be made.
        let is_file = |path: &str| self.is_copy && path.starts_with("opencode.json");
        let kind = |path: &str| if is_file(path) { Missing::File } else { Missing::Directory };
        let settings = later::stood_in_for(self.hooks).map(|path| (path, kind(path)));
        let usual: Vec<(&str, Missing)> = self.git.read_only().iter().copied().chain(settings).collect();
        let mut guards: Vec<(PathBuf, Missing)> = Vec::new();
        for root in self.writable.iter().map(ResolvedPath::path) {
            guards.extend(usual.iter().map(|(path, missing)| (root.join(path), *missing)));
            guards.extend(
                self.guards
                    .iter()
                    .filter(|g| !g.path.is_root())
                    .map(|guard| (root.join(guard.path.as_str()), guard.missing)),
            );
        }
        guards.sort();
        guards.dedup_by(|a, b| a.0 == b.0);
        // The list is sorted, so that a folder comes before the paths in it. A path in a guarded folder gets no mount of
        // its own: it would be lost when a program outside replaces the file.
        let mut outermost: Vec<(PathBuf, Missing)> = Vec::new();
        for (path, missing) in guards {
            let is_held =
                |(above, there): &(PathBuf, Missing)| *there != Missing::Leave && path.starts_with(above);
            if !outermost.iter().any(is_held) {
                outermost.push((path, missing));
            }
        }
        outermost
    }
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Checks whether a directory is a home directory or contains one.
fn is_home(path: &Path, home: &Path) -> bool {
    let parts = path.components().count();
    home.starts_with(path) || path == Path::new("/root") || (path.starts_with("/home") && parts <= 3)
}

/// The paths that a plan is checked against.
#[derive(Clone, Debug)]
pub struct ForbiddenPaths {
    /// The user's home directory, without symbolic links. The worker gets an empty one at the same path.
    pub home: PathBuf,
    /// The daemon's own state, configuration and runtime directories, without symbolic links. A worker never
    /// sees any part of them.
    pub forbidden: Vec<PathBuf>,
}

/// The reason why a draft did not become a plan. Safe to show.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanRefused {
    /// The root of the file system, or a home directory, was named.
    #[error("{0}: a worker is never given a whole home directory or file system; name a folder in it")]
    TooWide(PathBuf),
    /// A directory of the system was to be writable.
    #[error("{0}: a worker never gets to change the system")]
    System(PathBuf),
    /// State, configuration or sockets of the daemon overlap.
    #[error("{path}: overlaps {own}, which belongs to provost itself")]
    OurOwn {
        /// The path that the draft asked for.
        path: PathBuf,
        /// The directory of the daemon's that it overlaps.
        own: PathBuf,
    },
    /// The worker could replace its own program.
    #[error("{0}: the worker's program lies in a directory that it may change; install it elsewhere")]
    ProgramInWorkspace(PathBuf),
    /// No directory is writable, or the worker would start outside of all writable ones.
    #[error("{0}: is not beneath a directory that the worker may change")]
    Directory(PathBuf),
    /// A path is not text, or is relative.
    #[error("{0:?}: is not a path that a jail can hold")]
    Spelling(PathBuf),
    /// An argument contains a zero byte.
    #[error("an argument of the worker contains a zero byte")]
    Argument,
    /// The door's socket cannot be mounted into a root directory that is not the worker's own.
    #[error("a worker of tier ll inherits its door; only tier ns has a place to mount one")]
    Entrance,
    /// A limit of zero is a mistake, not "no limit".
    #[error("every limit of a worker is above zero, and output is at most {OUTPUT_BYTES_MAX} bytes")]
    Limits,
    /// A network grant was asked for in tier `ll`.
    #[error(
        "tier ll has no network of its own: a port that is granted there would be that port of every machine; \
         use tier ns, or take the worker's `network` away"
    )]
    NetworkInLl,
    /// A network grant was asked for in tier `job`.
    #[error(
        "tier job cannot wall a network in, so nothing can be granted there that is not open already; take the \
         worker's `network` away"
    )]
    NetworkInJob,
    /// A home cannot be kept in this tier, or would be kept with secrets in it.
    #[error("only in tier ns, and without secrets in files, a home is kept for later runs")]
    KeptHome,
    /// Outlets and grants do not fit together.
    #[error(
        "a worker's network needs 1 to {OUTLETS_MAX} different ports inside, and without a network there are none"
    )]
    Outlets,
}

/// A checked plan. Can be shown, stored and sent; only [`Draft::check`] makes one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub(super) program: Program,
    pub(super) args: Vec<String>,
    pub(super) environment: Environment,
    pub(super) cwd: ResolvedPath,
    pub(super) writable: Vec<ResolvedPath>,
    pub(super) read_only: Vec<ResolvedPath>,
    pub(super) guards: Vec<(PathBuf, Missing)>,
    #[serde(default)]
    pub(super) git: Git,
    #[serde(default)]
    pub(super) repositories: Option<Repositories>,
    pub(super) masked: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    #[serde(default)]
    pub(super) sockets: Vec<PathBuf>,
    pub(super) home: PathBuf,
    pub(super) network: Network,
    pub(super) outlets: Vec<u16>,
    pub(super) home_files: Vec<HomeFile>,
    #[serde(default)]
    pub(super) kept_home: Option<ResolvedPath>,
    pub(super) tier: Tier,
    pub(super) limits: Limits,
    pub(super) door_socket: Option<DoorSocket>,
    pub(super) fail_at: Option<Step>,
    /// Always empty outside of the tests; see [`Layer`].
    #[serde(default)]
    pub(super) without: Vec<Layer>,
}

/// Subjects of [`Plan::describe`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The program that is executed, and its digest.
    Program,
    /// The directory in which the worker starts.
    Directory,
    /// The directories that the worker may change.
    Write,
    /// The paths that the worker may read in addition to the system's directories.
    Read,
    /// The paths that stay read-only inside of the worker's writable directories.
    Protected,
    /// The worker's rights in repositories.
    Git,
    /// The paths that the worker sees empty.
    Masked,
    /// The worker's home directory, and the files that it finds there.
    Home,
    /// The names (never the values) of the worker's variables.
    Environment,
    /// The network that the worker may reach.
    Network,
    /// The worker's way to the daemon, if it has one.
    Door,
    /// The tier of the worker's jail.
    Tier,
    /// The worker's limits.
    Limits,
}

impl Plan {
    /// Returns the tier of the jail.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Returns the directories that the worker may change.
    pub fn writable(&self) -> &[ResolvedPath] {
        &self.writable
    }

    /// Returns the program that is executed, with the digest that it had when it was found.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the worker's limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes one step of the setup fail, to check that nothing runs then. Only programs built for debugging have
    /// this, and only they obey it.
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn failing_at(mut self, step: Step) -> Self {
        self.fail_at = Some(step);
        self
    }

    /// Leaves layers of the jail out, to see the purpose of each. Only programs built for debugging or for
    /// measuring have this, and only their own supervisors obey it; `provost` refuses such a plan.
    #[cfg(any(debug_assertions, feature = "layers-off"))]
    #[must_use]
    pub fn without(mut self, layers: &[Layer]) -> Self {
        self.without = layers.to_vec();
        self
    }

    /// Checks whether a layer is left out. Never true in released programs.
    #[cfg(any(target_os = "linux", windows))]
    pub(super) fn lacks(&self, layer: Layer) -> bool {
        cfg!(any(debug_assertions, feature = "layers-off")) && self.without.contains(&layer)
    }

    /// Returns the plan in words, one line for each fact, for `explain` and for approvers.
    pub fn describe(&self) -> Vec<(Topic, String)> {
        let mut lines = vec![
            (
                Topic::Program,
                format!("{} (sha256 {})", self.program.asked().display(), self.program.digest()),
            ),
            (Topic::Directory, self.cwd.path().display().to_string()),
        ];
        let mut list = |topic, paths: Vec<&Path>| {
            lines.extend(paths.iter().map(|path| (topic, path.display().to_string())));
        };
        list(Topic::Write, self.writable.iter().map(ResolvedPath::path).collect());
        list(Topic::Read, self.read_only.iter().map(ResolvedPath::path).collect());
        match self.tier {
            Tier::Ns => {
                list(Topic::Protected, self.guards.iter().map(|(path, _)| path.as_path()).collect());
                let masked = self.masked.iter().chain(&self.hidden).chain(&self.sockets);
                list(Topic::Masked, masked.map(PathBuf::as_path).collect());
            }
            Tier::Ll => list(Topic::Masked, self.hidden.iter().map(PathBuf::as_path).collect()),
            Tier::Job => {
                lines.push((Topic::Read, "NOT walled in: it reads every file that its user may read".into()));
                lines.push((Topic::Masked, "nothing: tier job hides no file".into()));
            }
        }
        lines.push((Topic::Git, self.describe_git()));
        if self.tier != Tier::Ns {
            let none = format!("nothing: tier {} cannot protect files in the workspace", self.tier.name());
            lines.push((Topic::Protected, none));
        }
        let home = match self.tier {
            Tier::Ns if self.kept_home.is_some() => {
                format!("{KEPT_HOME}, kept for later runs of its session")
            }
            Tier::Ns => format!("{}, empty", self.home.display()),
            Tier::Ll | Tier::Job => "a private folder, removed afterwards".into(),
        };
        lines.push((Topic::Home, home));
        lines.extend(self.home_files.iter().map(|file| (Topic::Home, format!("with {}", file.path()))));
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name).collect();
        lines.push((Topic::Environment, names.join(" ")));
        lines.push((Topic::Network, self.describe_network()));
        lines.push((Topic::Door, self.describe_entrance().into()));
        let tier = match self.tier {
            Tier::Ns => "ns: own namespaces and root directory, Landlock, system call filter, limits",
            Tier::Ll if cfg!(target_os = "macos") => "ll: a Seatbelt profile, limits; no namespaces",
            Tier::Ll => "ll: Landlock, system call filter, limits; no namespaces",
            Tier::Job => {
                "job: writes only: a job object, a write-restricted token of low integrity, limits; it reads what its \
                 user reads, and the network is open"
            }
        };
        lines.push((Topic::Tier, tier.into()));
        lines.extend(self.limits.describe(self.tier).into_iter().map(|text| (Topic::Limits, text)));
        lines
    }

    fn describe_git(&self) -> String {
        let own = match (self.git, self.tier) {
            (Git::Read, Tier::Ns) => "read-only",
            (Git::Read, Tier::Ll | Tier::Job) => "must stay unchanged: a worker's changes in it are reported",
            (Git::Write, _) => "may be written, hooks and settings excepted",
        };
        let others = match &self.repositories {
            Some(_) if self.tier == Tier::Ns => "; so is every other one, and making one more ends the run",
            Some(_) => "; making one more ends the run",
            None => "",
        };
        format!("{own}{others}")
    }

    fn describe_network(&self) -> String {
        match &self.network {
            Network::None if self.tier == Tier::Job => "NOT walled in: all that this machine reaches".into(),
            Network::None => "none".into(),
            Network::Ports(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                format!("ports {} of this machine's loopback", ports.join(" "))
            }
            Network::Hosts(hosts) => format!("through the daemon's proxy: {}", hosts.join(" ")),
        }
    }

    fn describe_entrance(&self) -> &'static str {
        match self.door_socket {
            None => "none",
            Some(DoorSocket::Mounted(_)) => "a socket made for its run, at /run/provost/worker.sock",
            Some(DoorSocket::Inherited) => "a connected socket made for its run, inherited",
        }
    }
}
