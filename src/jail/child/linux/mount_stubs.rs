//! Finds protected and masked paths on the host before the jail is built, and puts placeholders
//! where they are missing.
//!
//! A path that does not exist cannot be mounted upon, so an empty file or directory is put there for the time
//! of the run. It is recognised by its time of modification, which nothing else has. Every supervisor whose
//! jail relies on it holds a shared lock on it, and the last one that ends takes it away, also after a
//! predecessor that was killed: it moves it to the spares, if there are some, and removes it otherwise. What
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
use crate::guards::{Missing, PLACEHOLDER_MTIME as MARK};
use crate::plan::Plan;

/// Attempts to agree with other supervisors that come and go.
const ATTEMPTS: u32 = 100;

/// How a path appears in the jail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MountView {
    /// As it is; a mount of its own so that it cannot be renamed away with what is protected below it.
    Pinned,
    /// Read-only.
    ReadOnly,
    /// Empty and read-only.
    Empty,
    /// A socket of the host, as an empty file. Its owner may take it away.
    Covered,
}

/// A path with the inode that it had when it was looked at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Bind {
    pub(super) path: PathBuf,
    pub(super) look: MountView,
    pub(super) identity: (u64, u64),
    pub(super) is_dir: bool,
}

/// Everything that this jail relies on, and what has to be removed afterwards.
pub(super) struct MountStubs {
    binds: Vec<Bind>,
    /// What was mounted upon, held so that no other file gets the number of one that was removed.
    pins: Vec<OwnedFd>,
    /// Hidden paths that were not there.
    absent: Vec<PathBuf>,
    /// Parent directory, name, the placeholder itself (locked), and whether it is a directory.
    held: Vec<(Rc<OwnedFd>, PathBuf, OwnedFd, bool)>,
    /// Where directories come from and go to, if they are kept.
    spares: Option<SpareStubs>,
}

impl MountStubs {
    /// Looks at every protected, masked and hidden path of a plan, and puts something where nothing is.
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
                // Another jail's. Held here too, it stays until this one ends.
                Some(found) if is_marked(&found)? => {
                    let parent = path.parent().unwrap_or(path);
                    let held = all.hold(parent, path, Missing::Directory).map_err(about(path))?;
                    all.bind(path, MountView::Empty, &held);
                }
                Some(found) => all.bind_pinned(path, MountView::Empty, found)?,
                None => all.absent.push(path.clone()),
            }
        }
        // A path may have been met on several ways; the strictest look wins.
        all.binds.sort();
        all.binds.reverse();
        all.binds.dedup_by(|a, b| a.path == b.path);
        all.binds.reverse();
        all.cover_sockets(plan)?;
        Ok(all)
    }

    /// Last, since what lies in an empty directory needs no cover and has no place for one.
    fn cover_sockets(&mut self, plan: &Plan) -> io::Result<()> {
        for (path, socket) in sockets::in_reach(plan)? {
            let covered = |bind: &Bind| bind.look == MountView::Empty && path.starts_with(&bind.path);
            if !self.binds.iter().any(covered) {
                self.bind_pinned(&path, MountView::Covered, socket)?;
            }
        }
        Ok(())
    }

    /// What has to be mounted, for a process that was forked off and is not to hold anything: its descriptors
    /// would count against the worker's own. The locks are the supervisor's and stay.
    pub(super) fn without_holding(mut self) -> Vec<Bind> {
        self.held.clear();
        self.pins.clear();
        std::mem::take(&mut self.binds)
    }

    /// Directories that no process inside can change, by device and inode.
    pub(super) fn unchanging(&self) -> BTreeSet<(u64, u64)> {
        let fixed = self.binds.iter().filter(|bind| bind.is_dir && bind.look != MountView::Pinned);
        fixed.map(|bind| bind.identity).collect()
    }

    /// Whether every path still is what was mounted upon, and nothing that is to be hidden has appeared. When
    /// a process outside replaces a file or removes a directory, the kernel takes away what is mounted there,
    /// and what comes after is not protected.
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
        // Another jail may put something there that is empty; when it is filled, it loses its mark.
        let is_still = |found: Option<OwnedFd>| found.is_none_or(|found| is_marked(&found).unwrap_or(false));
        known && self.absent.iter().all(|path| find(path).is_ok_and(is_still))
    }

    /// Goes down from a writable directory to a path, pinning what is on the way. A file on the way is made
    /// read-only as a whole (a linked worktree has a `.git` that is one).
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
                    // Empty by itself, and nothing can be protected below it.
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
        // The top of a writable directory and the like are met again and again.
        if self.binds.iter().filter(|bind| bind.path == path).count() == 1 {
            self.pins.push(found);
        }
        Ok(())
    }

    fn bind(&mut self, path: &Path, look: MountView, stat: &Stat) {
        let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
        self.binds.push(Bind { path: path.into(), look, identity: (stat.st_dev, stat.st_ino), is_dir });
    }

    /// Puts a placeholder at a path, or shares the one that is there; returns what it is. Supervisors that end
    /// meanwhile may remove it at any moment until it is locked, so this goes on until it holds one that stands.
    fn hold(&mut self, parent: &Path, path: &Path, kind: Missing) -> io::Result<Stat> {
        if let Some((_, _, placeholder, _)) = self.held.iter().find(|(_, held, ..)| held == path) {
            return Ok(rustix::fs::fstat(placeholder)?);
        }
        let parent = self.parent(parent)?;
        let spare =
            |spares: &mut SpareStubs| (kind == Missing::Directory).then(|| spares.put(&*parent, path))?;
        if let Some(placeholder) = self.spares.as_mut().and_then(spare) {
            // It was locked before it was moved here, so no other supervisor can have taken it away.
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
            // A supervisor that was the only holder may have removed it just now.
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

    /// The directory that a placeholder stands in. Most stand in the same one as the one before.
    fn parent(&self, path: &Path) -> io::Result<Rc<OwnedFd>> {
        match self.held.last() {
            Some((parent, held, ..)) if held.parent() == Some(path) => Ok(Rc::clone(parent)),
            _ => Ok(Rc::new(open(path, OFlags::PATH | OFlags::DIRECTORY)?)),
        }
    }
}

impl Drop for MountStubs {
    /// Removes the placeholders on which no other supervisor relies. One that cannot be removed belongs to
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

/// What is at a path, if anything. A symbolic link anywhere on the way is an error.
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

/// Makes a placeholder under another name and moves it to its own when it is complete, so that no supervisor
/// ever sees one without its mark.
fn make(parent: &OwnedFd, path: &Path, kind: Missing) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // The time, since a worker that ran here before may have taken names that it could guess.
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
        // Another supervisor was faster; what it made does as well.
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
