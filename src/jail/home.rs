//! Files that a worker finds in its otherwise empty home: copies for one run.
#![forbid(unsafe_code)]

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize as _;

use provost_base::RepoPath;

/// One file. Its content is secret: it is never shown, and wiped when this is dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeFile {
    path: RepoPath,
    content: Vec<u8>,
}

impl HomeFile {
    /// Makes a file at a path relative to the home.
    pub fn new(path: RepoPath, content: &[u8]) -> Self {
        Self { path, content: content.to_vec() }
    }

    /// Returns the file's path, relative to the home.
    pub fn path(&self) -> &RepoPath {
        &self.path
    }

    #[cfg(any(target_os = "linux", windows))]
    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }
}

impl fmt::Debug for HomeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HomeFile").field(&self.path).finish()
    }
}

impl Drop for HomeFile {
    fn drop(&mut self) {
        self.content.zeroize();
    }
}
