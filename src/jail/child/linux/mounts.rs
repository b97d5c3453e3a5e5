//! Builds a root directory for one worker.
//!
//! Every source is opened without following a symbolic link, checked by device and inode, cloned, and
//! restricted before it is attached anywhere, so the worker can never reach more than planned.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use super::mount_stubs::{Bind, MountView};
use super::sys::{self, NODEV, NOEXEC, NOSUID, RDONLY};
use super::{about, step, terminals};
use crate::control::{SetupError, Step};
use crate::layer::Layer;
use crate::plan::{DOOR_SOCKET, DoorSocket, KEPT_HOME, Plan};
use crate::root::ResolvedPath;

/// The system's directories that a worker sees, read-only; a link among them (`/bin` to `usr/bin`) stays one.
const SYSTEM: [&str; 8] = ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Devices that hold no data of the user and let a worker write none.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Parts of `/proc` that belong to the whole host.
const PROC_READ_ONLY: [&str; 8] = ["sys", "irq", "bus", "fs", "sysrq-trigger", "acpi", "scsi", "driver"];

/// Lists in `/proc` of what the kernel keeps for a user, and not for a namespace: the names of the user's keys.
const PROC_EMPTY: [&str; 2] = ["keys", "key-users"];

/// The place of temporary files while the root is built: over a directory of the old root, whose devices have been
/// cloned by then, so that it goes away together with the old root.
const SCRATCH: &str = "/dev";

/// Bytes of temporary files for each inode that may be made.
const BYTES_PER_INODE: u64 = 4096;

/// A restricted, still detached copy of a file or directory, and its target.
struct Source {
    mount: OwnedFd,
    path: PathBuf,
    is_dir: bool,
}

/// Builds the root and moves into it.
pub(super) fn build(plan: &Plan, binds: &[Bind]) -> Result<(), SetupError> {
    step(plan, Step::PrivateMounts, sys::make_mounts_private)?;
    let (system, links) = step(plan, Step::Sources, system)?;
    let sources = step(plan, Step::Sources, || sources(plan, binds))?;
    let devices = step(plan, Step::Devices, devices)?;
    let door_socket = step(plan, Step::Sources, || door_socket(plan))?;
    let home = step(plan, Step::Sources, || kept_home(plan))?;
    step(plan, Step::NewRoot, || new_root(plan))?;
    step(plan, Step::Binds, || {
        for (link, target) in &links {
            rustix::fs::symlink(target, below(link))?;
        }
        system.iter().try_for_each(attach)
    })?;
    step(plan, Step::Devices, || {
        attach_devices(&devices)?;
        terminals::new_instance()?.map_or(Ok(()), terminals::attach)
    })?;
    step(plan, Step::Binds, || attach_sources(&sources, binds))?;
    step(plan, Step::Binds, || door_socket.iter().chain(&home).try_for_each(attach))?;
    step(plan, Step::Proc, || proc(plan))?;
    step(plan, Step::Pivot, pivot)?;
    step(plan, Step::ReadOnlyRoot, || {
        sys::restrict_mount(open(Path::new("/"))?, RDONLY, false)?;
        sys::restrict_mount(open(Path::new("/dev"))?, RDONLY | NOEXEC, false)
    })
}

fn open_beneath(from: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let never = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(from, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), never)?)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    open_beneath(CWD, path)
}

/// Returns the same path beneath the current directory, which becomes the root.
fn below(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn restricted(path: &Path, identity: Option<(u64, u64)>, attributes: u64) -> io::Result<Source> {
    let found = open(path)?;
    let stat = rustix::fs::fstat(&found)?;
    if identity.is_some_and(|known| known != (stat.st_dev, stat.st_ino)) {
        return Err(io::Error::other("is not the one that the task was accepted for"));
    }
    let mount = sys::clone_mount(&found)?;
    sys::restrict_mount(&mount, attributes, true)?;
    Ok(Source { mount, path: path.into(), is_dir: FileType::from_raw_mode(stat.st_mode).is_dir() })
}

type Links = Vec<(PathBuf, PathBuf)>;

fn system() -> io::Result<(Vec<Source>, Links)> {
    let (mut sources, mut links) = (Vec::new(), Vec::new());
    for path in SYSTEM.map(Path::new) {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() => links.push((path.into(), std::fs::read_link(path)?)),
            Ok(_) => sources.push(restricted(path, None, RDONLY | NOSUID | NODEV).map_err(about(path))?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(about(path)(e)),
        }
    }
    Ok((sources, links))
}

/// Returns the plan's directories, then its protected paths, each after the directory that it lies in.
fn sources(plan: &Plan, binds: &[Bind]) -> io::Result<Vec<Source>> {
    let identity = |place: &ResolvedPath| Some((place.dev(), place.ino()));
    let mut sources = Vec::new();
    let mut add = |path: &Path, identity, attributes| -> io::Result<()> {
        sources.push(restricted(path, identity, attributes | NOSUID | NODEV).map_err(about(path))?);
        Ok(())
    };
    let program = plan.program().place();
    let covered = plan.read_only.iter().map(ResolvedPath::path).chain([Path::new("/usr")]);
    if !covered.into_iter().any(|root| program.path().starts_with(root)) {
        add(program.path(), identity(program), RDONLY)?;
    }
    for place in &plan.read_only {
        add(place.path(), identity(place), RDONLY)?;
    }
    for place in &plan.writable {
        add(place.path(), identity(place), 0)?;
    }
    for bind in binds.iter().filter(|bind| !matches!(bind.look, MountView::Empty | MountView::Covered)) {
        let attributes = if bind.look == MountView::Pinned { 0 } else { RDONLY };
        add(&bind.path, Some(bind.identity), attributes)?;
    }
    // A stable order by depth: of two for the same path, the later and stricter one covers the earlier.
    sources.sort_by_key(|source: &Source| source.path.components().count());
    Ok(sources)
}

/// Returns the socket of the worker's own door, at its place inside. Every process that can see it can connect, also
/// if it is mounted read-only.
fn door_socket(plan: &Plan) -> io::Result<Option<Source>> {
    let Some(DoorSocket::Mounted(path)) = &plan.door_socket else { return Ok(None) };
    let source = restricted(path, None, RDONLY | NOSUID | NODEV | NOEXEC).map_err(about(path))?;
    Ok(Some(Source { path: DOOR_SOCKET.into(), ..source }))
}

/// Returns a home that earlier runs have had. No mount goes beneath it, since its contents are not trusted.
fn kept_home(plan: &Plan) -> io::Result<Option<Source>> {
    let Some(place) = &plan.kept_home else { return Ok(None) };
    let identity = Some((place.dev(), place.ino()));
    let source = restricted(place.path(), identity, NOSUID | NODEV).map_err(about(place.path()))?;
    Ok(Some(Source { path: KEPT_HOME.into(), ..source }))
}

fn devices() -> io::Result<Vec<Source>> {
    let paths = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    paths.map(|path| restricted(&path, None, NOSUID | NOEXEC).map_err(about(&path))).collect()
}

fn tmpfs(bytes: u64, inodes: u64, attributes: u64) -> io::Result<OwnedFd> {
    let option = |value: String| sys::c_string(value);
    let options: [(&std::ffi::CStr, CString); 3] = [
        (c"mode", option("0755".into())?),
        (c"size", option(bytes.to_string())?),
        (c"nr_inodes", option(inodes.to_string())?),
    ];
    sys::new_filesystem(c"tmpfs", &options, attributes | NOSUID | NODEV)
}

/// Makes the new root, with the places for temporary files. Afterwards it is the current directory.
fn new_root(plan: &Plan) -> io::Result<()> {
    let root = tmpfs(4 << 20, 4096, 0)?;
    // Any directory will do as the mount point; a directory that it covers has been cloned already.
    sys::attach_mount(&root, open(Path::new("/tmp"))?)?;
    rustix::process::fchdir(&root)?;
    let bytes = plan.limits.tmp_bytes;
    let scratch = tmpfs(bytes, (bytes / BYTES_PER_INODE).clamp(1024, 1 << 20), 0)?;
    sys::attach_mount(&scratch, open(Path::new(SCRATCH))?)?;
    let in_scratch = Path::new(SCRATCH);
    for (name, mode) in [("tmp", 0o1777), ("shm", 0o1777), ("home", 0o700), ("empty", 0o555)] {
        std::fs::create_dir(in_scratch.join(name))?;
        rustix::fs::chmod(in_scratch.join(name), Mode::from_raw_mode(mode))?;
    }
    std::fs::File::create(in_scratch.join("blank"))?;
    for path in ["proc", "dev", "tmp"] {
        std::fs::create_dir(path)?;
        rustix::fs::chmod(path, Mode::from_raw_mode(0o755))?;
    }
    sys::attach_mount(tmpfs(64 << 10, 64, 0)?, open(Path::new("dev"))?)?;
    std::fs::create_dir("dev/shm")?;
    for (name, path) in [("tmp", Path::new("/tmp")), ("shm", Path::new("/dev/shm")), ("home", &plan.home)] {
        let mount = sys::clone_mount(open(&in_scratch.join(name))?)?;
        attach(&Source { mount, path: path.into(), is_dir: true })?;
    }
    Ok(())
}

fn attach_devices(devices: &[Source]) -> io::Result<()> {
    devices.iter().try_for_each(attach)?;
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        rustix::fs::symlink(format!("/proc/self/fd{target}"), Path::new("dev").join(name))?;
    }
    Ok(())
}

/// Attaches a source at its own path beneath the new root. Makes the target if it is missing, which can only happen in
/// file systems that were made for this worker: all protected paths exist elsewhere.
fn attach(source: &Source) -> io::Result<()> {
    let path = below(&source.path);
    let target = match open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                make_dirs(parent)?;
            }
            if source.is_dir {
                std::fs::create_dir(&path)?
            } else {
                std::fs::File::create_new(&path).map(drop)?
            }
            open(&path)
        }
        found => found,
    };
    target.and_then(|target| sys::attach_mount(&source.mount, target)).map_err(about(&source.path))
}

fn make_dirs(path: &Path) -> io::Result<()> {
    let mut at = PathBuf::new();
    for part in path.components() {
        at.push(part);
        match rustix::fs::mkdir(&at, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(about(&at)(e.into())),
        }
    }
    Ok(())
}

fn attach_sources(sources: &[Source], binds: &[Bind]) -> io::Result<()> {
    sources.iter().try_for_each(attach)?;
    for bind in binds.iter().filter(|bind| matches!(bind.look, MountView::Empty | MountView::Covered)) {
        // A socket may have vanished meanwhile. No file is made in its place.
        let is_gone = || matches!(open(&below(&bind.path)), Err(e) if e.kind() == io::ErrorKind::NotFound);
        if bind.look == MountView::Covered && is_gone() {
            continue;
        }
        let nothing = Path::new(SCRATCH).join(if bind.is_dir { "empty" } else { "blank" });
        let mount = sys::clone_mount(open(&nothing)?)?;
        sys::restrict_mount(&mount, RDONLY | NOEXEC, true)?;
        attach(&Source { mount, path: bind.path.clone(), is_dir: bind.is_dir })?;
    }
    Ok(())
}

fn proc(plan: &Plan) -> io::Result<()> {
    let options: [(&std::ffi::CStr, CString); 1] = [(c"hidepid", sys::c_string("invisible")?)];
    let proc = match plan.lacks(Layer::PidNamespace) {
        // Only the host's own `/proc` can show processes of the host.
        true => sys::clone_mount(open(Path::new("/proc"))?)?,
        false => sys::new_filesystem(c"proc", &options, NOSUID | NODEV | NOEXEC)?,
    };
    sys::attach_mount(&proc, open(Path::new("proc"))?)?;
    for name in PROC_READ_ONLY {
        let path = Path::new("proc").join(name);
        match open(&path) {
            Ok(found) => {
                let part = sys::clone_mount(&found)?;
                sys::restrict_mount(&part, RDONLY | NOSUID | NODEV | NOEXEC, true)?;
                sys::attach_mount(&part, &found).map_err(about(&path))?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(about(&path)(e)),
        }
    }
    for name in PROC_EMPTY {
        let path = Path::new("proc").join(name);
        match open(&path) {
            Ok(found) => {
                let blank = sys::clone_mount(open(&Path::new(SCRATCH).join("blank"))?)?;
                sys::restrict_mount(&blank, RDONLY | NOSUID | NODEV | NOEXEC, true)?;
                sys::attach_mount(&blank, &found).map_err(about(&path))?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(about(&path)(e)),
        }
    }
    Ok(())
}

/// Makes the current directory the root. The old root ends up on top of it and is removed.
fn pivot() -> io::Result<()> {
    rustix::process::pivot_root(".", ".")?;
    sys::detach(c".")?;
    Ok(rustix::process::chdir("/")?)
}
