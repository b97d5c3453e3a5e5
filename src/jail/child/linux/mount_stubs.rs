//! Finds protected and masked paths on the host before the jail is built, and puts placeholders
//! where they are missing.
//!
//! A path that does not exist cannot be mounted upon, so an empty file or directory is put there for the time
//! of the run. It is recognised by its time of modification, which no other file has. Every supervisor whose
//! jail relies on it holds a shared lock on it, and the last one that ends takes it away, also after a
//! predecessor that was killed: it moves it to the spares, if there are some, and removes it otherwise. A file that
//! a person has put in its place has another time, and stays.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Timespec,
    Timestamps,
};

use super::spare_stubs::SpareStubs;
use super::{about, sockets};
use crate::plan::Plan;
use crate::read_only::{Missing, PLACEHOLDER_MTIME as MARK};

/// How many times a supervisor tries to agree with others that come and go.
const ATTEMPTS: u32 = 100;

/// How a path appears in the jail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MountView {
    /// Unchanged, as a mount of its own, so that it cannot be renamed away with the protected paths below it.
    Pinned,
    /// Read-only.
    ReadOnly,
    /// Empty and read-only.
    Empty,
    /// A socket of the host, shown as an empty file. Its owner may remove the socket.
    Covered,
}

/// A path with the inode that it had when it was examined.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Bind {
    pub(super) path: PathBuf,
    pub(super) look: MountView,
    pub(super) identity: (u64, u64),
    pub(super) is_dir: bool,
}

/// The mounts that this jail relies on, and the placeholders that have to be removed afterwards.
pub(super) struct MountStubs {
    binds: Vec<Bind>,
    /// The files that were mounted upon, held open so that no other file gets the inode number of a removed one.
    pins: Vec<OwnedFd>,
    /// Hidden paths that did not exist.
    absent: Vec<PathBuf>,
    /// Parent directory, name, the placeholder itself (locked), and whether it is a directory.
    held: Vec<(Rc<OwnedFd>, PathBuf, OwnedFd, bool)>,
    /// The spares that directories come from and go to, if spares are kept.
    spares: Option<SpareStubs>,
}

impl MountStubs {
    /// Examines every protected, masked and hidden path of a plan, and puts placeholders where paths are missing.
    pub(super) fn put(plan: &Plan, spares: Option<SpareStubs>) -> io::Result<Self> {
        let mut all =
            Self { binds: Vec::new(), pins: Vec::new(), absent: Vec::new(), held: Vec::new(), spares };
        let roots: Vec<&Path> = plan.writable.iter().map(|place| place.path()).collect();
        let root_of = |path: &Path| {
            let above = roots.iter().filter(|root| path.starts_with(root) && path != **root);
            above.max_by_key(|root| root.components().count()).copied()
        };
        for (path, missing) in &plan.guards {
            if let Some(root) = root_of(path) {
                all.walk(root, path, *missing, MountView::ReadOnly).map_err(about(path))?;
            }
        }
        for path in &plan.masked {
            if let Some(root) = root_of(path) {
                all.walk(root, path, Missing::Directory, MountView::Empty).map_err(about(path))?;
            }
        }
        for path in &plan.hidden {
            match find(path).map_err(about(path))? {
                // This is another jail's placeholder. With this lock it stays until this jail ends, too.
                Some(found) if is_marked(&found)? => {
                    let parent = path.parent().unwrap_or(path);
                    let held = all.hold(parent, path, Missing::Directory).map_err(about(path))?;
                    all.bind(path, MountView::Empty, &held);
                }
                Some(found) => all.bind_pinned(path, MountView::Empty, found)?,
                None => all.absent.push(path.clone()),
            }
        }
        // A path may be found in several ways; the strictest view wins.
        all.binds.sort();
        all.binds.reverse();
        all.binds.dedup_by(|a, b| a.path == b.path);
        all.binds.reverse();
        all.cover_sockets(plan)?;
        Ok(all)
    }

    /// Covers sockets. Runs last, since sockets in an empty directory need no cover, and have no place for one.
    fn cover_sockets(&mut self, plan: &Plan) -> io::Result<()> {
        for (path, socket) in sockets::in_reach(plan)? {
            let covered = |bind: &Bind| bind.look == MountView::Empty && path.starts_with(&bind.path);
            if !self.binds.iter().any(covered) {
                self.bind_pinned(&path, MountView::Covered, socket)?;
            }
        }
        Ok(())
    }

    /// Returns the paths to mount, for a forked process that must not hold anything: its descriptors
    /// would count against the worker's own. The supervisor keeps the locks.
    pub(super) fn without_holding(mut self) -> Vec<Bind> {
        self.held.clear();
        self.pins.clear();
        std::mem::take(&mut self.binds)
    }

    /// Returns the directories that no process inside can change, by device and inode.
    pub(super) fn unchanging(&self) -> BTreeSet<(u64, u64)> {
        let fixed = self.binds.iter().filter(|bind| bind.is_dir && bind.look != MountView::Pinned);
        fixed.map(|bind| bind.identity).collect()
    }

    /// Checks whether every path is still the file that was mounted upon, and no hidden path has appeared. When
    /// a process outside replaces a file or removes a directory, the kernel removes the mount there,
    /// and the file that comes after it is not protected.
    pub(super) fn are_intact(&self) -> bool {
        let known = self.binds.iter().all(|bind| {
            if bind.look == MountView::Covered {
                let is_it = |now: OwnedFd| {
                    rustix::fs::fstat(&now).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == bind.identity)
                };
                return sockets::socket_at(&bind.path).is_ok_and(|now| now.is_none_or(is_it));
            }
            let stat = find(&bind.path).ok().flatten().and_then(|found| rustix::fs::fstat(&found).ok());
            stat.is_some_and(|stat| (stat.st_dev, stat.st_ino) == bind.identity)
        });
        // Another jail may put an empty placeholder there; a placeholder that is filled loses its mark.
        let is_still = |found: Option<OwnedFd>| found.is_none_or(|found| is_marked(&found).unwrap_or(false));
        known && self.absent.iter().all(|path| find(path).is_ok_and(is_still))
    }

    /// Goes down from a writable directory to a path, and pins the directories on the way. A file on the way becomes
    /// read-only as a whole (a linked worktree has a `.git` file).
    fn walk(&mut self, root: &Path, path: &Path, missing: Missing, look: MountView) -> io::Result<()> {
        let below = path.strip_prefix(root).map_err(io::Error::other)?;
        let mut at = root.to_path_buf();
        let mut names = below.components().peekable();
        while let Some(name) = names.next() {
            let parent = at.clone();
            at.push(name);
            let last = names.peek().is_none();
            let kind = match find(&at)? {
                Some(found) if !is_marked(&found)? => Ok(found),
                Some(placeholder) if is_dir(&placeholder)? => Err(Missing::Directory),
                Some(_) if last && missing == Missing::FileSayingHere => Err(missing),
                Some(_) => Err(Missing::File),
                None if missing == Missing::Leave => return Ok(()),
                None => Err(if last { missing } else { Missing::Directory }),
            };
            let found = match kind {
                Ok(found) => found,
                Err(kind) => {
                    let placeholder = self.hold(&parent, &at, kind)?;
                    // It is empty by itself, and no path below it can be protected.
                    self.bind(&at, MountView::ReadOnly, &placeholder);
                    return Ok(());
                }
            };
            let on_the_way = !last && is_dir(&found)?;
            let seen = match (on_the_way, last) {
                (true, _) => MountView::Pinned,
                (false, true) => look,
                (false, false) => MountView::ReadOnly,
            };
            self.bind_pinned(&at, seen, found)?;
            if !on_the_way {
                return Ok(());
            }
        }
        Ok(())
    }

    fn bind_pinned(&mut self, path: &Path, look: MountView, found: OwnedFd) -> io::Result<()> {
        self.bind(path, look, &rustix::fs::fstat(&found)?);
        // The top of a writable directory and similar paths are found again and again.
        if self.binds.iter().filter(|bind| bind.path == path).count() == 1 {
            self.pins.push(found);
        }
        Ok(())
    }

    fn bind(&mut self, path: &Path, look: MountView, stat: &Stat) {
        let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
        self.binds.push(Bind { path: path.into(), look, identity: (stat.st_dev, stat.st_ino), is_dir });
    }

    /// Puts a placeholder at a path, or shares the existing one; returns its metadata. Supervisors that end
    /// meanwhile may remove it at any moment until it is locked, so this repeats until it holds one that stays.
    fn hold(&mut self, parent: &Path, path: &Path, kind: Missing) -> io::Result<Stat> {
        if let Some((_, _, placeholder, _)) = self.held.iter().find(|(_, held, ..)| held == path) {
            return Ok(rustix::fs::fstat(placeholder)?);
        }
        let parent = self.parent(parent)?;
        let spare =
            |spares: &mut SpareStubs| (kind == Missing::Directory).then(|| spares.put(&*parent, path))?;
        if let Some(placeholder) = self.spares.as_mut().and_then(spare) {
            // The spare was locked before it was moved here, so no other supervisor can have removed it.
            return self.holds(parent, path, placeholder);
        }
        for _ in 0..ATTEMPTS {
            let placeholder = match open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK) {
                Ok(placeholder) => placeholder,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    make(&parent, path, kind)?;
                    continue;
                }
                Err(e) => return Err(e),
            };
            rustix::fs::flock(&placeholder, FlockOperation::LockShared)?;
            // A supervisor that was the only holder may just have removed it.
            if !find(path)?.is_some_and(|now| same_inode(&now, &placeholder)) {
                continue;
            }
            if !is_marked(&placeholder)? {
                return Err(io::Error::other("another process has just made it; try again"));
            }
            return self.holds(parent, path, placeholder);
        }
        Err(io::Error::other("placeholders come and go too fast"))
    }

    fn holds(&mut self, parent: Rc<OwnedFd>, path: &Path, placeholder: OwnedFd) -> io::Result<Stat> {
        let stat = rustix::fs::fstat(&placeholder)?;
        let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
        self.held.push((parent, path.into(), placeholder, is_dir));
        Ok(stat)
    }

    /// Opens the directory of a placeholder. Most placeholders are in the same directory as the one before.
    fn parent(&self, path: &Path) -> io::Result<Rc<OwnedFd>> {
        match self.held.last() {
            Some((parent, held, ..)) if held.parent() == Some(path) => Ok(Rc::clone(parent)),
            _ => Ok(Rc::new(open(path, OFlags::PATH | OFlags::DIRECTORY)?)),
        }
    }
}

impl Drop for MountStubs {
    /// Removes the placeholders on which no other supervisor relies. A placeholder that cannot be removed belongs to
    /// another program by now.
    fn drop(&mut self) {
        for (parent, path, placeholder, is_dir) in self.held.drain(..).rev() {
            let alone = rustix::fs::flock(&placeholder, FlockOperation::NonBlockingLockExclusive).is_ok();
            let Some(name) = path.file_name() else { continue };
            let same = find_at(&*parent, Path::new(name))
                .is_ok_and(|now| now.is_some_and(|now| same_inode(&now, &placeholder)));
            if alone && same && is_marked(&placeholder).unwrap_or(false) {
                let kept = |spares: &mut SpareStubs| is_dir && spares.keep(&*parent, &path, &placeholder);
                if self.spares.as_mut().is_some_and(kept) {
                    continue;
                }
                let flags = if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                let _kept = rustix::fs::unlinkat(&*parent, name, flags);
            }
        }
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let never = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), never)?)
}

/// Opens the file at a path, if it exists. A symbolic link anywhere on the way is an error.
pub(super) fn find(path: &Path) -> io::Result<Option<OwnedFd>> {
    find_at(CWD, path)
}

fn find_at(from: impl AsFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    let never = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(from, path, flags, Mode::empty(), never) {
        Ok(found) => Ok(Some(found)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Makes a placeholder under another name and moves it to its own name when it is complete, so that no supervisor
/// ever sees it without its mark.
fn make(parent: &OwnedFd, path: &Path, kind: Missing) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // The name contains the time, since a worker that ran here before may have taken names that it could guess.
    let nanos = provost_system::wall_time().as_nanos();
    let draft = format!(".provost-{}-{nanos}", rustix::process::getpid().as_raw_nonzero());
    let is_dir = matches!(kind, Missing::Directory | Missing::Leave);
    if is_dir {
        rustix::fs::mkdirat(parent, &draft, Mode::RWXU)?;
    } else {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, &draft, flags, Mode::RUSR | Mode::WUSR)?;
        if kind == Missing::FileSayingHere {
            File::from(file).write_all(b".\n")?;
        }
    }
    let mark = Timespec { tv_sec: MARK, tv_nsec: 0 };
    let times = Timestamps { last_access: mark, last_modification: mark };
    rustix::fs::utimensat(parent, &draft, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    let moved = rustix::fs::renameat_with(parent, &draft, parent, name, RenameFlags::NOREPLACE);
    if let Err(e) = moved {
        let flags = if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(parent, &draft, flags)?;
        // Another supervisor was faster; its placeholder does as well.
        if e != rustix::io::Errno::EXIST {
            return Err(e.into());
        }
    }
    Ok(())
}

pub(super) fn is_marked(found: &OwnedFd) -> io::Result<bool> {
    let stat = rustix::fs::fstat(found)?;
    Ok(stat.st_mtime == MARK && stat.st_mtime_nsec == 0)
}

fn is_dir(found: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(found)?.st_mode).is_dir())
}

fn same_inode(a: &OwnedFd, b: &OwnedFd) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}
