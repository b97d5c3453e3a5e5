//! Watched files of a delegation. On Windows the daemon does not watch files yet, and the report says so.
#![forbid(unsafe_code)]

use std::time::Duration;

use provost_base::WatchPatterns;
use provost_base::limits::WATCH_LISTED_MAX;
use provost_domain::{Watched, WatchedFile};
use provost_jail::ResolvedPath;

/// The watched directory, and the patterns of the files.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The working directory of the task.
    pub place: ResolvedPath,
    /// The files to report, from that directory.
    pub patterns: WatchPatterns,
}

/// The matching files of one moment.
#[derive(Clone, Debug, Default)]
pub struct WatchedFiles {
    /// Directories, for hints about changes.
    pub directories: Vec<Vec<u8>>,
    /// The reason why the list of files is incomplete.
    incomplete: Option<String>,
    /// The duration of the scan.
    pub took: Duration,
}

impl Watch {
    /// Returns a result that says that no file was read.
    pub fn look(&self) -> WatchedFiles {
        let (place, patterns) = (self.place.path().display(), &self.patterns);
        tracing::debug!(%place, ?patterns, "files are not watched on Windows");
        WatchedFiles::failed("files are not watched on Windows in this version")
    }
}

/// Returns the changes of files between two scans: none, with the reason.
pub fn changes(before: &WatchedFiles, after: &WatchedFiles) -> Watched {
    let incomplete = before.incomplete.as_ref().or(after.incomplete.as_ref());
    listed(Vec::new(), 0, incomplete.map(|why| why.as_str().into()))
}

/// Shortens the changes to the number of files that are listed.
pub fn listed(mut files: Vec<WatchedFile>, more: u32, incomplete: Option<Box<str>>) -> Watched {
    let left_out = u32::try_from(files.len().saturating_sub(WATCH_LISTED_MAX)).unwrap_or(u32::MAX);
    files.truncate(WATCH_LISTED_MAX);
    Watched { files, more: more.saturating_add(left_out), incomplete }
}

impl WatchedFiles {
    /// Makes the result of a scan that saw nothing.
    pub fn failed(why: &str) -> Self {
        Self { incomplete: Some(why.into()), ..Self::default() }
    }
}
