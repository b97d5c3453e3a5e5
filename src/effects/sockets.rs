//! Local sockets of the user's programs in what a worker sees of a workspace: it is not to connect to them. Blocking.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Dir, FileType, Mode};
use rustix::io::Errno;

use super::survey::{Stop, directory_flags, open_place};
use crate::base::limits::{SURVEY_DEPTH_MAX, SURVEY_ENTRIES_MAX, SURVEY_MS_MAX};
use crate::jail::Place;

/// Local sockets in a workspace around a directory, from the workspace; those in the directory are left out.
///
/// # Errors
/// Why not every folder could be looked at: there may be more.
pub(super) fn sockets_around(root: &Place, but: &Place) -> Result<Vec<Vec<u8>>, String> {
    let mut around = Around {
        but: (but.dev(), but.ino()),
        left: SURVEY_ENTRIES_MAX,
        until: Instant::now() + Duration::from_millis(SURVEY_MS_MAX),
        found: Vec::new(),
    };
    let top = open_place(root).map_err(|err| Stop::Io(err).why())?;
    around.look(top.as_fd(), &mut Vec::new(), SURVEY_DEPTH_MAX).map_err(Stop::why)?;
    Ok(around.found)
}

/// A look for local sockets around a directory.
struct Around {
    /// The directory, by device and inode.
    but: (u64, u64),
    left: u64,
    until: Instant,
    found: Vec<Vec<u8>>,
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
            match entry.file_type() {
                FileType::Socket => self.found.push(path.clone()),
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
