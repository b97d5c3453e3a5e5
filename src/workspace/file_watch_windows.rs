//! Watched files of a delegation. On Windows the daemon does not watch files yet, and the report says so.
#![forbid(unsafe_code)]

use std::time::Duration;

use crate::base::WatchPatterns;
use crate::base::limits::WATCH_LISTED_MAX;
use crate::domain::{Watched, WatchedFile};
use crate::jail::Place;

/// The directory that is watched, and the patterns of the files.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) place: Place,
    pub(crate) patterns: WatchPatterns,
}

/// The matching files of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    /// Directories, for hints about changes.
    pub(crate) directories: Vec<Vec<u8>>,
    /// Why it is incomplete.
    incomplete: Option<String>,
    /// How long it took.
    pub(crate) took: Duration,
}

impl Watch {
    /// Says that nothing was looked at.
    pub(crate) fn look(&self) -> Look {
        let (place, patterns) = (self.place.path().display(), &self.patterns);
        tracing::debug!(%place, ?patterns, "files are not watched on Windows");
        Look::failed("files are not watched on Windows in this version")
    }
}

/// What became of files between two looks.
pub(crate) fn changes(before: &Look, after: &Look) -> Watched {
    let incomplete = before.incomplete.as_ref().or(after.incomplete.as_ref());
    listed(Vec::new(), 0, incomplete.map(|why| why.as_str().into()))
}

/// The same, with no more files than are listed.
pub(crate) fn listed(mut files: Vec<WatchedFile>, more: u32, incomplete: Option<Box<str>>) -> Watched {
    let left_out = u32::try_from(files.len().saturating_sub(WATCH_LISTED_MAX)).unwrap_or(u32::MAX);
    files.truncate(WATCH_LISTED_MAX);
    Watched { files, more: more.saturating_add(left_out), incomplete }
}

impl Look {
    /// Nothing could be seen.
    pub(crate) fn failed(why: &str) -> Self {
        Self { incomplete: Some(why.into()), ..Self::default() }
    }
}
