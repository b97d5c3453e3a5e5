//! The steps from a forked process to the worker. Only [`execute`] executes the program. It takes [`Confined`], which
//! is made of the proofs of all layers, so there is no other way to run a program.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::FdFlags;
use rustix::process::Signal;

use super::counts::Shares;
use super::landlock::{self, Fenced};
use super::limits::{self, Limited, Powerless};
use super::seccomp::{self, Filtered};
use super::{about, step, sys};
use crate::control::{SetupError, Step};
use crate::layer::Layer;
use crate::plan::{ENTRANCE_FD, KEPT_HOME, Plan};

/// The worker's home, temporary files and writable paths, as it sees them.
pub(super) struct JailPaths<'a> {
    home: PathBuf,
    tmp: PathBuf,
    /// The paths that the worker may write in addition to the plan's directories.
    pub(super) writable: Vec<PathBuf>,
    /// The worker's limit of processes, as the kernel counts them.
    processes: u64,
    /// The worker's share of the other resources that the kernel counts per user.
    shares: &'a Shares,
}

impl<'a> JailPaths<'a> {
    /// Makes the paths for a worker with a root directory of its own.
    pub(super) fn own_root(plan: &Plan, processes: u64, shares: &'a Shares) -> Self {
        let mut writable = vec!["/tmp".into(), "/dev/shm".into(), plan.home.clone()];
        let kept = plan.kept_home.as_ref().map(|_| PathBuf::from(KEPT_HOME));
        writable.extend(kept.clone());
        Self {
            home: kept.unwrap_or_else(|| plan.home.clone()),
            tmp: "/tmp".into(),
            writable,
            processes,
            shares,
        }
    }

    /// Makes the paths for a worker in a private folder on the host.
    pub(super) fn in_scratch(scratch: &Path, processes: u64, shares: &'a Shares) -> Self {
        let writable = vec![scratch.into()];
        Self { home: scratch.join("home"), tmp: scratch.join("tmp"), writable, processes, shares }
    }
}

/// The descriptors that the worker gets from the daemon.
pub(super) struct Inherited {
    /// The worker's standard input; without one it reads from `/dev/null`.
    pub(super) input: Option<OwnedFd>,
    /// A socket that takes the place of the worker's standard input and output.
    pub(super) stdio: Option<OwnedFd>,
    /// The worker's socket to the daemon.
    pub(super) door: Option<OwnedFd>,
}

/// A process in which every layer is in force. Only such a process can execute the program.
#[must_use]
struct Confined {
    program: File,
    args: Vec<CString>,
    environment: Vec<CString>,
    /// Stays open over the exec.
    _door: Option<OwnedFd>,
    _limited: Limited,
    _fenced: Fenced,
    _powerless: Powerless,
    _filtered: Filtered,
}

/// Confines this process and becomes the worker. Returns only with the reason of a failure.
pub(super) fn become_the_worker(plan: &Plan, inside: &JailPaths<'_>, inherited: Inherited) -> SetupError {
    match confine(plan, inside, inherited) {
        Ok(confined) => execute(plan, &confined),
        Err(error) => error,
    }
}

fn confine(plan: &Plan, inside: &JailPaths<'_>, inherited: Inherited) -> Result<Confined, SetupError> {
    let Inherited { input, stdio, door } = inherited;
    step(plan, Step::DeathSignal, || rustix::process::set_parent_process_death_signal(Some(Signal::KILL)))?;
    step(plan, Step::WorkingDirectory, || working_directory(plan))?;
    let program = step(plan, Step::Program, || program(plan))?;
    let (args, environment) = step(plan, Step::Program, || words(plan, inside, door.as_ref()))?;
    step(plan, Step::Input, || -> io::Result<()> {
        // Every other descriptor closes at the exec.
        door.as_ref().map_or(Ok(()), |door| rustix::io::fcntl_setfd(door, FdFlags::empty()))?;
        input
            .or(stdio.as_ref().map(OwnedFd::try_clone).transpose()?)
            .map_or(Ok(()), |it| sys::redirect(&it, 0))?;
        stdio.map_or(Ok(()), |stdio| sys::redirect(&stdio, 1))
    })?;
    step(plan, Step::Session, sys::reset_signals)?;
    let limited = step(plan, Step::Limits, || limits::set(plan, inside.processes, inside.shares))?;
    step(plan, Step::NoNewPrivileges, || no_new_privileges(plan))?;
    let fenced = step(plan, Step::Landlock, || landlock::fence(plan, inside))?;
    let powerless = step(plan, Step::Capabilities, || limits::give_up_capabilities(plan))?;
    let filtered = step(plan, Step::Seccomp, || seccomp::filter(plan))?;
    Ok(Confined {
        program,
        args,
        environment,
        _door: door,
        _limited: limited,
        _fenced: fenced,
        _powerless: powerless,
        _filtered: filtered,
    })
}

fn no_new_privileges(plan: &Plan) -> io::Result<()> {
    if plan.lacks(Layer::NoNewPrivileges) {
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true)?;
    match rustix::thread::no_new_privs()? {
        true => Ok(()),
        false => Err(io::Error::other("not set")),
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let never = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), never)
        .map_err(|e| about(path)(e.into()))
}

fn working_directory(plan: &Plan) -> io::Result<()> {
    let place = &plan.cwd;
    let found = open(place.path(), OFlags::PATH | OFlags::DIRECTORY)?;
    let stat = rustix::fs::fstat(&found)?;
    if (stat.st_dev, stat.st_ino) != (place.dev(), place.ino()) {
        return Err(about(place.path())(io::Error::other("is not the one that the task was accepted for")));
    }
    Ok(rustix::process::fchdir(&found)?)
}

/// Opens the program once; this open file is executed later.
fn program(plan: &Plan) -> io::Result<File> {
    let program = plan.program();
    let path = program.place().path();
    let file = File::from(open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
    match program.is_unchanged(&file)? {
        true => Ok(file),
        false => Err(about(path)(io::Error::other("has changed since the task was accepted"))),
    }
}

type Words = Vec<CString>;

fn words(plan: &Plan, inside: &JailPaths<'_>, door: Option<&OwnedFd>) -> io::Result<(Words, Words)> {
    let own_name = sys::c_string(plan.program().asked().as_os_str().as_bytes());
    let args = plan.args.iter().map(sys::c_string);
    let args = std::iter::once(own_name).chain(args).collect::<io::Result<_>>()?;
    let ours = [("HOME", &inside.home), ("TMPDIR", &inside.tmp), ("PWD", &plan.cwd.path().to_path_buf())]
        .map(|(name, path)| sys::c_string(format!("{name}={}", path.display())));
    let given = plan.environment.iter().map(|(name, value)| sys::c_string(format!("{name}={value}")));
    let door = door.map(|door| sys::c_string(format!("{ENTRANCE_FD}={}", door.as_raw_fd())));
    let mut environment: Words = ours.into_iter().chain(door).chain(given).collect::<io::Result<_>>()?;
    if plan.lacks(Layer::Environment) {
        let inherited = std::env::vars_os()
            .map(|(name, value)| sys::c_string([name.as_bytes(), b"=", value.as_bytes()].concat()));
        environment.extend(inherited.collect::<io::Result<Words>>()?);
    }
    Ok((args, environment))
}

fn execute(plan: &Plan, confined: &Confined) -> SetupError {
    if cfg!(debug_assertions) && plan.fail_at == Some(Step::Execute) {
        return SetupError::new(Step::Execute, "made to fail");
    }
    let Confined { program, args, environment, .. } = confined;
    let mut start = [0; 2];
    let script = program.read_exact_at(&mut start, 0).is_ok() && start == *b"#!";
    // An interpreter opens its script by name. In `ns` no other file can have that name; in `ll` only a
    // process that may already replace the user's programs could put another file there.
    let error = match script {
        true => sys::execute_script(plan.program().place().path(), args, environment),
        false => sys::execute(program, args, environment),
    };
    SetupError::new(Step::Execute, about(plan.program().asked())(error))
}
