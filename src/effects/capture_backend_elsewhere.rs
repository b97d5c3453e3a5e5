//! Systems on which Provost takes no pictures of the screen.

use std::convert::Infallible;
use std::io::PipeReader;

use super::capture_config::CaptureConfig;
use super::prepare::worker_failed;
use provost_domain::{Failure, Picture};

/// A picture that was taken; on these systems there never is one.
#[derive(Debug)]
pub(super) struct StoredScreenshot(Infallible);

impl StoredScreenshot {
    pub(super) fn picture(&self) -> &Picture {
        match self.0 {}
    }

    pub(super) fn discard(self) {
        match self.0 {}
    }
}

impl CaptureConfig {
    /// Refuses to take a picture, since there is no program for it.
    ///
    /// # Errors
    /// Always: the sentence says that pictures are taken on Linux only.
    pub(super) fn snap(&self, _stopped: &PipeReader) -> Result<StoredScreenshot, Failure> {
        Err(worker_failed("pictures of the screen are taken on Linux only in this version"))
    }

    /// Does nothing: there are no pictures to remove.
    pub(super) fn sweep(&self) {}
}
