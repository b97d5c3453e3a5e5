//! Reports the failure of a process that is about to become the worker.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PipeFlags;

use super::sys;
use crate::control::{REFUSED, SetupError, Step};

/// The two ends of a pipe by which a process that is about to become the worker reports a failure. The exec
/// closes the pipe, so that its end without any bytes proves that the worker runs.
pub(super) struct FailurePipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl FailurePipe {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { read, write })
    }

    /// Keeps the end to write to, in the new process.
    pub(super) fn for_writing(self) -> FaultWriter {
        FaultWriter(self.write)
    }

    /// Waits in the supervisor until the worker runs or cannot run.
    pub(super) fn verdict(self) -> Result<(), SetupError> {
        drop(self.write);
        let mut said = Vec::new();
        File::from(self.read).read_to_end(&mut said).map_err(|e| SetupError::new(Step::Execute, e))?;
        if said.is_empty() {
            return Ok(());
        }
        Err(serde_json::from_slice(&said).unwrap_or_else(|e| SetupError::new(Step::Execute, e)))
    }
}

/// The end to write to.
pub(super) struct FaultWriter(OwnedFd);

impl FaultWriter {
    /// Writes the error and ends this process.
    pub(super) fn give_up(self, error: &SetupError) -> ! {
        let said = serde_json::to_vec(error).unwrap_or_else(|_| b"?".to_vec());
        let _unheard = File::from(self.0).write_all(&said);
        sys::exit(REFUSED)
    }

    /// Runs a function that returns only with an error, and gives up with that error. A panic counts as an error, too:
    /// silence would mean that the worker runs.
    pub(super) fn unless(self, become_it: impl FnOnce() -> SetupError) -> ! {
        let error = catch_unwind(AssertUnwindSafe(become_it));
        self.give_up(&error.unwrap_or_else(|_| SetupError::new(Step::Fork, "the setup has panicked")))
    }

    /// Checks whether the supervisor is gone, so that no process can read from the pipe.
    pub(super) fn is_abandoned(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
    }
}
