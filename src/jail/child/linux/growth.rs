//! Measures how much the directories of a worker have grown since it began.
//!
//! The supervisor walks them over and over, a few milliseconds at a time, so that it stays ready for
//! orders. The first walk is the base for all others. It takes place before the worker runs; in a
//! workspace too large for that, the rest is walked while it runs. Blocks on the disk are counted; a file
//! with several names counts by parts.
//!
//! The same walks find a repository that was not there before. In folders that a walk has
//! visited, the kernel reports a new repository at once; it also reports pipes at which a program of the host would
//! wait, which are put aside.
//!
//! This is no wall. A walk notices a write only afterwards, and does not see files
//! deeper in a directory whose names cannot be listed, or files without a name. Limits on the size of a file
//! and the number of descriptors bound the latter; in the former, repositories are looked for again when no
//! process of the worker is left.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::about;
use super::newcomers::{Newcomers, below};
use super::pipes::Pipes;
use crate::bounds::Space;
use crate::repositories::{Repositories, RepositoryParts, is_repository_name};
use provost_base::limits::{GROWTH_FIRST_LOOK_MS_MAX, NEWS_PER_TICK_MAX, PATH_LEN_MAX};

/// The number of entries between two looks at the clock.
const ENTRIES_PER_CLOCK: u32 = 64;

/// Bytes of a block as the kernel counts them, also if the file system's own blocks have another size.
const BLOCK: u64 = 512;

/// The size of a set of files.
#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    bytes: u64,
    entries: u64,
    too_deep: bool,
}

/// A directory that is watched with all files below it on the same device.
struct Root {
    fd: OwnedFd,
    path: PathBuf,
    device: u64,
}

impl Root {
    /// Returns a path from this directory as an absolute one.
    fn at(&self, path: &Path) -> PathBuf {
        self.path.join(below(path))
    }
}

/// A directory that is being read.
struct Reading {
    root: usize,
    path: PathBuf,
    entries: Dir,
    /// The parts of a repository that were seen in it.
    parts: RepositoryParts,
}

/// The walks over some directories.
pub(super) struct Growth {
    roots: Vec<Root>,
    /// Directories that are counted but not walked, by device and inode: the worker cannot change them.
    fixed: BTreeSet<(u64, u64)>,
    bytes_most: u64,
    entries_most: u64,
    repositories: Option<Repositories>,
    /// Puts pipes aside; set if repositories are looked for, too.
    pipes: Option<Pipes>,
    /// Whether a repository was seen that was not there before.
    one_more: bool,
    /// Reports new entries in folders that a walk has visited.
    newcomers: Option<Newcomers>,
    /// The sum of the first walk; `None` while it goes on.
    before: Option<Sum>,
    sum: Sum,
    waiting: Vec<(usize, PathBuf)>,
    reading: Option<Reading>,
    rest_until: Instant,
}

impl Growth {
    /// Opens the directories and begins the first walk.
    pub(super) fn of(
        paths: impl IntoIterator<Item = PathBuf>,
        fixed: BTreeSet<(u64, u64)>,
        bytes_most: u64,
        entries_most: u64,
        (repositories, pipes): (Option<Repositories>, Option<Pipes>),
    ) -> io::Result<Self> {
        let mut roots = Vec::new();
        for path in paths {
            let fd = open(CWD, &path, OFlags::RDONLY, ResolveFlags::NO_SYMLINKS)
                .map_err(|e| about(&path)(e.into()))?;
            let device = rustix::fs::fstat(&fd)?.st_dev;
            roots.push(Root { fd, path, device });
        }
        let now = Instant::now();
        let newcomers = repositories.as_ref().and_then(|_| Newcomers::new());
        let mut growth = Self {
            roots,
            fixed,
            bytes_most,
            entries_most,
            repositories,
            pipes,
            one_more: false,
            newcomers,
            before: None,
            sum: Sum::default(),
            waiting: Vec::new(),
            reading: None,
            rest_until: now,
        };
        growth.begin();
        growth.look(now + Duration::from_millis(GROWTH_FIRST_LOOK_MS_MAX));
        Ok(growth)
    }

    fn begin(&mut self) {
        self.sum = Sum::default();
        self.reading = None;
        self.waiting = (0..self.roots.len()).map(|root| (root, PathBuf::from("."))).collect();
    }

    /// Checks whether there are folders in which only a walk would find a new repository. The walks follow
    /// each other without a rest then, and take more of the time.
    pub(super) fn is_deaf(&self) -> bool {
        self.repositories.is_some() && self.newcomers.as_ref().is_none_or(Newcomers::is_full)
    }

    /// Goes on walking until the given moment, and returns the kind of space that is used beyond its limit.
    pub(super) fn look(&mut self, until: Instant) -> Option<Space> {
        let began = Instant::now();
        if began < self.rest_until {
            return None;
        }
        loop {
            for _ in 0..ENTRIES_PER_CLOCK {
                if !self.advance() {
                    // Small directories are walked once a second; the walks of large ones take longer.
                    let rest = if self.is_deaf() { Duration::ZERO } else { Duration::from_secs(1) };
                    self.rest_until = Instant::now() + rest;
                    let found = self.excess();
                    self.before.get_or_insert(self.sum);
                    self.begin();
                    return found;
                }
            }
            if let Some(found) = self.excess() {
                return Some(found);
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }

    /// Walks once more from the beginning, after the worker's end; for as long as the first walk had.
    pub(super) fn last_look(&mut self) -> Option<Space> {
        let now = Instant::now();
        if self.before.is_some() {
            self.begin();
        }
        self.rest_until = now;
        self.look(now + Duration::from_millis(GROWTH_FIRST_LOOK_MS_MAX))
    }

    /// Examines the entries that the kernel has reported since.
    pub(super) fn hear(&mut self) {
        let mut left = NEWS_PER_TICK_MAX;
        let heard = self.newcomers.as_mut().map(Newcomers::heard).unwrap_or_default();
        for (root, path) in heard {
            self.meet(root, &path, &mut left);
        }
    }

    /// Examines a new entry: whether it is a repository, or a folder that holds one; in both, further
    /// new entries are reported.
    fn meet(&mut self, root: usize, path: &Path, left: &mut usize) {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let is_named = path.file_name().is_some_and(|it| is_repository_name(it.as_bytes()));
        if let Some(name) = path.file_name()
            && let (Ok(folder), Ok(name)) = (
                open(&self.roots[root].fd, parent_of(path), OFlags::RDONLY, beneath),
                CString::new(name.as_bytes()),
            )
        {
            let at = self.roots[root].at(path);
            let known = self.repositories.as_ref().filter(|_| is_named);
            self.one_more |= known.is_some_and(|it| it.is_one_more(folder.as_fd(), &name, &at));
            if let Some(pipes) = &self.pipes {
                pipes.meet(folder.as_fd(), &name, path, &at);
            }
        }
        // An entry that is gone, or is no folder, holds no repository.
        let Ok(folder) = open(&self.roots[root].fd, path, OFlags::RDONLY, beneath) else { return };
        if let Some(newcomers) = &mut self.newcomers {
            newcomers.listen(folder.as_fd(), root, path);
        }
        if is_named {
            return;
        }
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            let matters =
                is_repository_name(name) || matches!(entry.file_type(), FileType::Directory | FileType::Fifo);
            if matters && !matches!(name, b"." | b"..") && path.as_os_str().len() + name.len() < PATH_LEN_MAX
            {
                self.meet(root, &path.join(OsStr::from_bytes(name)), left);
            }
        }
    }

    /// Checks whether a repository was seen that was not there before the run.
    pub(super) fn has_one_more_repository(&self) -> bool {
        self.one_more
    }

    /// Compares the sum with the first walk's. Before a walk has ended, its sum is a lower bound.
    fn excess(&self) -> Option<Space> {
        let before = self.before?;
        let Sum { bytes, entries, too_deep } = self.sum;
        if bytes > before.bytes.saturating_add(self.bytes_most) {
            return Some(Space::Bytes);
        }
        if entries > before.entries.saturating_add(self.entries_most) {
            return Some(Space::Entries);
        }
        (too_deep && !before.too_deep).then_some(Space::Depth)
    }

    /// Looks for a repository in a directory that cannot be listed: git finds one there without a list of names, too.
    fn look_into_closed(&mut self, root: usize, path: &Path) {
        let Some(known) = &self.repositories else { return };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let Ok(dir) = open(&self.roots[root].fd, path, OFlags::PATH, beneath) else { return };
        let at = self.roots[root].at(path);
        let is_there = |name: &CStr| rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let mut parts = RepositoryParts::default();
        for name in [c"HEAD", c"objects", c"refs", c"commondir"] {
            if is_there(name) {
                parts.add(name.to_bytes());
            }
        }
        self.one_more |= parts.are_a_repository() && known.is_one_more_folder(&at);
        self.one_more |= is_there(c".git") && known.is_one_more(dir.as_fd(), c".git", &at.join(".git"));
    }

    /// Examines one more entry. False at the end of the walk.
    fn advance(&mut self) -> bool {
        let Some(reading) = &mut self.reading else {
            let Some((root, path)) = self.waiting.pop() else { return false };
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let found = open(&self.roots[root].fd, &path, OFlags::RDONLY, beneath);
            // A folder that is gone, or cannot be opened, has nothing to count.
            // Each folder gets its watch once, by the first walk.
            if self.before.is_none()
                && let (Ok(found), Some(newcomers)) = (&found, &mut self.newcomers)
            {
                newcomers.listen(found.as_fd(), root, &path);
            }
            self.reading = match found.and_then(Dir::new) {
                Ok(entries) => Some(Reading { root, path, entries, parts: RepositoryParts::default() }),
                Err(Errno::ACCESS) => {
                    self.look_into_closed(root, &path);
                    None
                }
                Err(_) => None,
            };
            return true;
        };
        let Some(Ok(entry)) = reading.entries.read() else {
            self.reading = None;
            return true;
        };
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            return true;
        }
        let Ok(dir) = reading.entries.fd() else { return true };
        let Ok(stat) = rustix::fs::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
            return true;
        };
        let root = reading.root;
        if let Some(known) = self.repositories.as_ref().filter(|_| is_repository_name(name)) {
            let at = self.roots[root].at(&reading.path).join(OsStr::from_bytes(name));
            self.one_more |= known.is_one_more(dir, entry.file_name(), &at);
        }
        reading.parts.add(name);
        if reading.parts.are_a_repository()
            && let Some(known) = &self.repositories
        {
            self.one_more |= known.is_one_more_folder(&self.roots[root].at(&reading.path));
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
            && let Some(pipes) = &self.pipes
        {
            let path = reading.path.join(OsStr::from_bytes(name));
            pipes.meet(dir, entry.file_name(), &path, &self.roots[root].at(&path));
        }
        if stat.st_dev != self.roots[root].device {
            return true;
        }
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let names = if is_dir { 1 } else { stat.st_nlink.max(1) };
        let bytes = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(BLOCK) / names;
        self.sum.bytes = self.sum.bytes.saturating_add(bytes);
        self.sum.entries += 1;
        if is_dir && !self.fixed.contains(&(stat.st_dev, stat.st_ino)) {
            let path = reading.path.join(OsStr::from_bytes(name));
            match path.as_os_str().len() < PATH_LEN_MAX {
                true => self.waiting.push((root, path)),
                false => self.sum.too_deep = true,
            }
        }
        true
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn open(from: impl AsFd, path: &Path, access: OFlags, resolve: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    let flags = access | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(from, path, flags, Mode::empty(), resolve)
}
