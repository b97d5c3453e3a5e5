//! Repositories that a run has left and that were not there before: found, and put out of force. Blocking.
//!
//! What git finds in a folder it obeys, and editors look for repositories by themselves. So one that a worker made is
//! given another name when nothing of the worker is left, by handles that follow no link. Nothing of it is removed.
#![forbid(unsafe_code)]

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, RenameFlags};

use super::survey::{Ground, Survey, directory_flags, open_place};
use crate::jail::Repositories;

/// What one is called afterwards.
const ASIDE: &str = "git.set-aside-by-provost";

/// Names that are tried when that is taken.
const ATTEMPTS: u32 = 100;

impl Ground {
    /// What of the repositories of a later look was not there before. Links to our own repository from work trees
    /// that somebody has added are not among them.
    pub(super) fn one_more(&self, known: &Repositories, later: &Survey) -> Vec<PathBuf> {
        let is_one_more = |at: &PathBuf| {
            let (Some(folder), Some(name)) = (at.parent(), at.file_name()) else { return false };
            let Ok(name) = CString::new(name.as_bytes()) else { return false };
            let opened = rustix::fs::openat(CWD, folder, directory_flags(), Mode::empty());
            opened.is_ok_and(|folder| known.is_one_more(folder.as_fd(), &name, at))
        };
        let all = later.repositories.iter();
        all.map(|path| self.root.path().join(OsStr::from_bytes(path))).filter(is_one_more).collect()
    }

    /// Puts a repository out of force; answers what it is called now, from the workspace, or nothing when that failed.
    pub(super) fn set_aside(&self, at: &Path) -> Option<PathBuf> {
        match self.renamed(at) {
            Ok(now) => now.strip_prefix(self.root.path()).ok().map(Path::to_path_buf),
            Err(error) => {
                tracing::warn!(%error, at = %at.display(), "a repository that a worker made was not set aside");
                None
            }
        }
    }

    fn renamed(&self, at: &Path) -> io::Result<PathBuf> {
        let (folder, name) = at.parent().zip(at.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.folder(folder)?;
        for number in 0..ATTEMPTS {
            let aside = if number == 0 { ASIDE.to_owned() } else { format!("{ASIDE}-{number}") };
            match rustix::fs::renameat_with(&parent, name, &parent, &aside, RenameFlags::NOREPLACE) {
                Err(rustix::io::Errno::EXIST) => {}
                moved => {
                    moved?;
                    // Without its head it is none for who steps into the folder either. A file or link has no head.
                    let inner = rustix::fs::openat(&parent, &aside, directory_flags(), Mode::empty());
                    let _headless =
                        inner.and_then(|it| rustix::fs::renameat(&it, "HEAD", &it, "HEAD.set-aside"));
                    return Ok(folder.join(aside));
                }
            }
        }
        Err(io::Error::other("all names for it are taken"))
    }

    /// A folder of the workspace, reached step by step: another worker may be busy there.
    fn folder(&self, folder: &Path) -> io::Result<OwnedFd> {
        let mut at = open_place(&self.root)?;
        for part in folder.strip_prefix(self.root.path()).map_err(io::Error::other)? {
            at = rustix::fs::openat(&at, part, directory_flags(), Mode::empty())?;
        }
        Ok(at)
    }
}
