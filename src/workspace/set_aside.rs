//! Finds repositories that a run has made, and disables them. Blocking.
//!
//! Git obeys a repository that it finds in a folder, and editors look for repositories by themselves. So the daemon
//! renames a repository that a worker has made, after all processes of the worker have ended, by handles that follow no
//! link. It removes no file of the repository.
#![forbid(unsafe_code)]

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags};
use rustix::io::Errno;

use crate::integrity_scan::{Entry, Ground, ScanFindings, directory_flags, open_place};
use crate::path_text::of_path;
use provost_base::later::names::PIPE_ASIDE;
use provost_jail::{Repositories, is_repository_name};
use provost_system as system;

/// The name of a disabled repository's folder.
const ASIDE: &str = "git.set-aside-by-provost";

/// The name of the file `HEAD` in a disabled repository.
const HEAD_ASIDE: &str = "HEAD.set-aside";

impl Ground {
    /// Returns the repositories of a later scan that did not exist before, except for links to our own repository from work
    /// trees that a person has added.
    pub fn one_more(&self, known: &Repositories, later: &ScanFindings) -> Vec<PathBuf> {
        let is_one_more = |at: &PathBuf| {
            let (Some(folder), Some(name)) = (at.parent(), at.file_name()) else { return false };
            if !is_repository_name(name.as_bytes()) {
                return known.is_one_more_folder(at);
            }
            let Ok(name) = CString::new(name.as_bytes()) else { return false };
            let opened = rustix::fs::openat(CWD, folder, directory_flags(), Mode::empty());
            opened.is_ok_and(|folder| known.is_one_more(folder.as_fd(), &name, at))
        };
        let all = later.repositories.iter();
        all.map(|path| self.root.path().join(OsStr::from_bytes(path))).filter(is_one_more).collect()
    }

    /// Disables a repository. Returns its new path from the workspace, if it was renamed, and
    /// the outcome in words.
    pub fn set_aside(&self, at: &Path) -> (Option<PathBuf>, String) {
        let done = match at.file_name().is_some_and(|name| is_repository_name(name.as_bytes())) {
            true => self.renamed(at).map(|now| {
                let now = now.strip_prefix(self.root.path()).unwrap_or(&now).to_path_buf();
                let words = format!("now {}", of_path(&now));
                (Some(now), words)
            }),
            false => {
                let headless = self.folder(at).and_then(|folder| beheaded(&folder));
                headless.map(|head| (None, format!("its HEAD is now {head}")))
            }
        };
        done.unwrap_or_else(|error| {
            tracing::warn!(%error, at = %at.display(), "a repository that a worker made was not set aside");
            (None, "still in force: remove it before you use git there".to_owned())
        })
    }

    /// Removes new pipes under names that programs of the host open by themselves, where they would wait; and pipes
    /// and sockets under names that no later jail could cover. The report names them; they hold no data.
    pub fn remove_pipes(&self, before: &ScanFindings, later: &ScanFindings) {
        let is_new = |path: &Vec<u8>| before.entries.get(path).is_none_or(|it| !it.socket);
        let is_odd = |path: &[u8]| std::str::from_utf8(path).is_err() || path.contains(&b'\n');
        let goes = |path: &[u8], it: &Entry| {
            it.pipe && (it.kind.is_some() || path.ends_with(PIPE_ASIDE.as_bytes()))
                || it.socket && is_odd(path)
        };
        let pipes = later.entries.iter().filter(|(path, it)| goes(path, it) && is_new(path));
        for (path, _) in pipes {
            let path = Path::new(OsStr::from_bytes(path));
            if let Err(error) = self.remove_pipe(path) {
                tracing::warn!(%error, path = %of_path(path), "a pipe that a worker made was not removed");
            }
        }
    }

    fn remove_pipe(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let folder = self.folder(&self.root.path().join(folder))?;
        let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket) {
            rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
        }
        Ok(())
    }

    fn renamed(&self, at: &Path) -> io::Result<PathBuf> {
        let (folder, name) = at.parent().zip(at.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.folder(folder)?;
        let aside = to_a_free_name(&parent, name, ASIDE)?;
        // Without its head, it is no repository for a program in its folder either. A file or link has no head.
        if let Ok(inner) = rustix::fs::openat(&parent, &aside, directory_flags(), Mode::empty()) {
            let _headless = beheaded(&inner);
        }
        Ok(folder.join(aside))
    }

    /// Opens a folder of the workspace step by step, since another worker may work there.
    fn folder(&self, folder: &Path) -> io::Result<OwnedFd> {
        let mut at = open_place(&self.root)?;
        for part in folder.strip_prefix(self.root.path()).map_err(io::Error::other)? {
            at = rustix::fs::openat(&at, part, directory_flags(), Mode::empty())?;
        }
        Ok(at)
    }
}

/// Renames a repository's head. Returns the new name.
fn beheaded(repository: &OwnedFd) -> io::Result<String> {
    to_a_free_name(repository, OsStr::new("HEAD"), HEAD_ASIDE)
}

/// Renames an entry of a folder. A worker may have shut the folder, or have taken the usual name: then the
/// folder is opened to its owner, and the name ends with the time, which the worker could not know.
fn to_a_free_name(folder: &OwnedFd, name: &OsStr, wanted: &str) -> io::Result<String> {
    let renamed =
        |aside: &str| rustix::fs::renameat_with(folder, name, folder, aside, RenameFlags::NOREPLACE);
    let anew = |wanted: &str| format!("{wanted}-{}", system::wall_time().as_nanos());
    let mut aside = wanted.to_owned();
    let mut done = renamed(&aside);
    if done == Err(Errno::ACCESS) {
        let mode = rustix::fs::fstat(folder)?.st_mode & 0o7777;
        rustix::fs::fchmod(folder, Mode::from_raw_mode(mode) | Mode::RWXU)?;
        done = renamed(&aside);
    }
    if done == Err(Errno::EXIST) {
        aside = anew(wanted);
        done = renamed(&aside);
    }
    done?;
    Ok(aside)
}
