//! Puts a worker's own files into its private home before any process of the worker exists.
#![forbid(unsafe_code)]

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::about;
use crate::HomeFile;

/// Writes the files below a home that no other process has reached yet. Only their owner can read them.
pub(super) fn furnish(home: &Path, files: &[HomeFile]) -> io::Result<()> {
    for file in files {
        let path = home.join(file.path().as_str());
        let write = || {
            let folder = path.parent().unwrap_or(home);
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path)?.write_all(file.content())
        };
        write().map_err(about(&path))?;
    }
    Ok(())
}
