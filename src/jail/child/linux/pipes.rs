//! Puts aside pipes that a worker makes under a name that programs of the host open by themselves: these
//! would wait at the pipe. Such a pipe gets another name as soon as it is seen. It is removed when the run
//! has ended and the report has named it.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};

use provost_base::later::names::{PIPE_ASIDE, is_opened_by_itself};

/// Puts pipes aside that a worker has made.
pub(super) struct Pipes {
    /// The pipes that were there before the run, as absolute paths: they are the user's.
    known: BTreeSet<PathBuf>,
}

impl Pipes {
    pub(super) fn new(known: &[PathBuf]) -> Self {
        Self { known: known.iter().cloned().collect() }
    }

    /// Puts a pipe aside, if a program of the host would wait at it. `below` is its path from the watched
    /// directory, `at` the absolute one. Follows no link.
    pub(super) fn meet(&self, folder: BorrowedFd<'_>, name: &CStr, below: &Path, at: &Path) {
        if name.to_bytes().ends_with(PIPE_ASIDE.as_bytes()) {
            return;
        }
        if !is_opened_by_itself(super::newcomers::below(below).as_os_str().as_bytes())
            || self.known.contains(at)
        {
            return;
        }
        let is_pipe = |it: rustix::io::Result<rustix::fs::Stat>| {
            it.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Fifo)
        };
        if !is_pipe(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)) {
            return;
        }
        let aside = OsStr::from_bytes(&[name.to_bytes(), PIPE_ASIDE.as_bytes()].concat()).to_owned();
        // Opening the pipe for both directions gives it a writer for a moment. A program that waits at it
        // then goes on, and reads the end.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let renamed = rustix::fs::renameat_with(folder, name, folder, &aside, RenameFlags::NOREPLACE);
        let opened = match renamed {
            Ok(()) => rustix::fs::openat(folder, &aside, flags, Mode::empty()),
            // A pipe of that name was put aside before.
            Err(_) => {
                let opened = rustix::fs::openat(folder, name, flags, Mode::empty());
                if opened.as_ref().is_ok_and(|it| is_pipe(rustix::fs::fstat(it.as_fd()))) {
                    // A pipe that cannot be removed now is removed after the run.
                    let _left = rustix::fs::unlinkat(folder, name, AtFlags::empty());
                }
                opened
            }
        };
        drop(opened);
    }
}
