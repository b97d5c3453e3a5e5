//! Keeps placeholders that no jail needs at the moment for the next run in the same place: for a file system
//! it is much cheaper to move a directory than to make and remove it.
//!
//! A spare only ever returns to the path that it came from, so a process that had it open gains no other
//! place. A spare that is moved in is empty, even if a process has filled it meanwhile. If nothing can be moved
//! (another file system, no folder for it), placeholders are made and removed as if there were no spares.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FlockOperation, Mode, OFlags, RenameFlags};

use super::mount_stubs::is_marked;
use provost_base::Digest;
use provost_base::limits::SPARE_FOLDERS_MAX;

/// The folder of spares, with a subfolder for each directory in which placeholders have stood.
pub(super) struct SpareStubs {
    path: PathBuf,
    opened: BTreeMap<PathBuf, Option<OwnedFd>>,
}

impl SpareStubs {
    /// Uses a folder, which is made if its parent exists. It must be this user's alone.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path, opened: BTreeMap::new() }
    }

    /// Moves the spare of a path there and returns it, locked (shared); `None` if there is no usable spare.
    pub(super) fn put(&mut self, parent: impl AsFd, at: &Path) -> Option<OwnedFd> {
        let (folder, name) = self.folder_of(at)?;
        let spare = rustix::fs::openat(folder, name, directory(), Mode::empty()).ok()?;
        rustix::fs::flock(&spare, FlockOperation::NonBlockingLockShared).ok()?;
        let mut inside = Dir::read_from(&spare).ok()?;
        let empty = inside.all(|it| it.is_ok_and(|it| is_dot(it.file_name().to_bytes())));
        let good = empty && is_marked(&spare).unwrap_or(false);
        let moved = || rustix::fs::renameat_with(folder, name, parent, name, RenameFlags::NOREPLACE);
        (good && moved().is_ok()).then_some(spare)
    }

    /// Moves a placeholder away from its path. False if it is still there.
    pub(super) fn keep(&mut self, parent: impl AsFd, at: &Path, placeholder: &OwnedFd) -> bool {
        let Some((folder, name)) = self.folder_of(at) else { return false };
        if rustix::fs::renameat_with(&parent, name, folder, name, RenameFlags::NOREPLACE).is_err() {
            return false;
        }
        // A process has just put something into it. The placeholder is that process's now, and goes back.
        if !is_marked(placeholder).unwrap_or(false) {
            let _taken = rustix::fs::renameat_with(folder, name, parent, name, RenameFlags::NOREPLACE);
        }
        true
    }

    /// Returns the folder with the spares of a path's directory, and the path's name there.
    fn folder_of<'a>(&mut self, at: &'a Path) -> Option<(&OwnedFd, &'a OsStr)> {
        let (parent, name) = (at.parent()?, at.file_name()?);
        if !self.opened.contains_key(parent) {
            let folder = self.open(parent);
            self.opened.insert(parent.into(), folder);
        }
        Some((self.opened.get(parent)?.as_ref()?, name))
    }

    fn open(&self, parent: &Path) -> Option<OwnedFd> {
        let folder = self.path.join(Digest::of(parent.as_os_str().as_bytes()).short());
        let opened = || rustix::fs::openat(CWD, &folder, directory(), Mode::empty());
        if let Ok(opened) = opened() {
            return Some(opened);
        }
        let _there = rustix::fs::mkdir(&self.path, Mode::RWXU);
        rustix::fs::mkdir(&folder, Mode::RWXU).ok()?;
        self.forget_the_oldest();
        opened().ok()
    }

    /// Removes the oldest folder when there are too many. A supervisor that was about to use
    /// it makes a new one.
    fn forget_the_oldest(&self) {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut all: Vec<_> =
            entries.filter_map(|it| Some((it.metadata().ok()?.modified().ok()?, it.path()))).collect();
        if all.len() > SPARE_FOLDERS_MAX {
            all.sort();
            let _left = std::fs::remove_dir_all(&all[0].1);
        }
    }
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}
