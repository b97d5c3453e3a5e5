//! Finds sockets and links around the directory of a task: local sockets of the user's programs, to which a worker
//! must not connect, and links among settings, which may lead into the directory. Blocking.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Dir, FileType, Mode};
use rustix::io::Errno;

use super::run_outside::row_of_settings;
use provost_base::later;
use provost_base::limits::{SURVEY_DEPTH_MAX, SURVEY_ENTRIES_MAX, SURVEY_MS_MAX};
use provost_jail::{ResolvedPath, is_repository_name};
use provost_workspace::integrity_scan::{Stop, directory_flags, open_place};

/// What was found in a workspace around a directory, from the workspace.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Local sockets, and pipes with names.
    pub(super) sockets: Vec<Vec<u8>>,
    /// Symbolic links among settings and in repositories.
    pub(super) links: Vec<Vec<u8>>,
    /// Files of settings that are read-only for workers: they name programs, also in the directory.
    pub(super) settings: BTreeSet<Vec<u8>>,
    /// Repositories, whose configuration does the same.
    pub(super) repositories: BTreeSet<Vec<u8>>,
}

/// Looks at a workspace around a directory; what lies in the directory is left out.
///
/// # Errors
/// Why not every folder could be looked at: there may be more.
pub(super) fn surroundings(root: &ResolvedPath, but: &ResolvedPath) -> Result<Surroundings, String> {
    let mut around = Around {
        but: (but.dev(), but.ino()),
        left: SURVEY_ENTRIES_MAX,
        until: Instant::now() + Duration::from_millis(SURVEY_MS_MAX),
        found: Surroundings::default(),
    };
    let top = open_place(root).map_err(|err| Stop::Io(err).why())?;
    around.look(top.as_fd(), &mut Vec::new(), SURVEY_DEPTH_MAX).map_err(Stop::why)?;
    Ok(around.found)
}

/// A look around a directory.
struct Around {
    /// The directory, by device and inode.
    but: (u64, u64),
    left: u64,
    until: Instant,
    found: Surroundings,
}

impl Around {
    fn look(&mut self, dir: BorrowedFd<'_>, path: &mut Vec<u8>, depth: usize) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::TooDeep)?;
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.left = self.left.checked_sub(1).ok_or(Stop::TooMany)?;
            if Instant::now() > self.until {
                return Err(Stop::TooSlow);
            }
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend(name.to_bytes());
            if is_repository_name(name.to_bytes()) && !is_within_a_repository(path) {
                self.found.repositories.insert(path.clone());
            }
            let is_file = matches!(entry.file_type(), FileType::RegularFile | FileType::Symlink);
            if is_file && row_of_settings(path).is_some() {
                self.found.settings.insert(path.clone());
            }
            match entry.file_type() {
                FileType::Socket | FileType::Fifo => self.found.sockets.push(path.clone()),
                FileType::Symlink if is_among_settings(path) => self.found.links.push(path.clone()),
                FileType::Directory => self.look_into(dir, name, path, depth)?,
                _ => {}
            }
            path.truncate(length);
        }
        Ok(())
    }

    fn look_into(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), Stop> {
        let inner = match rustix::fs::openat(dir, name, directory_flags(), Mode::empty()) {
            Ok(inner) => inner,
            // Gone since it was listed; or shut, also for a worker, which is the same user.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let stat = rustix::fs::fstat(&inner)?;
        if (stat.st_dev, stat.st_ino) == self.but {
            return Ok(());
        }
        self.look(inner.as_fd(), path, depth)
    }
}

fn is_within_a_repository(path: &[u8]) -> bool {
    path.split(|it| *it == b'/').rev().skip(1).any(is_repository_name)
}

/// Whether a link is a setting that stays read-only, lies in one, or in a repository.
fn is_among_settings(path: &[u8]) -> bool {
    let mut names = path.split(|it| *it == b'/');
    let is_gits = is_within_a_repository(path);
    let is_setting = later::row_over(path).is_some_and(later::Row::is_read_only);
    (is_setting || is_gits) && !names.any(later::is_fetched)
}
