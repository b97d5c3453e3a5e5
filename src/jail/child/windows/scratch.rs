//! The private folder of a worker, with its home and its temporary files.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::sys::make_folder;
use crate::home::HomeFile;
use crate::job::{folder_descriptor, folder_identity};

/// The folder, removed when it is dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new folder among the user's temporary files.
    pub(super) fn new(user: &str) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = provost_system::real_path(&std::env::temp_dir())?.join(format!("provost-{name}"));
        make_folder(&path, &folder_descriptor(user, &folder_identity(&path)))?;
        let made = Self(path);
        for inner in ["home", "tmp"] {
            fs::create_dir(made.0.join(inner))?;
        }
        Ok(made)
    }

    /// Returns the absolute path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes files into the home.
    pub(super) fn fill(&self, files: &[HomeFile]) -> io::Result<()> {
        for file in files {
            let path = self.0.join("home").join(file.path().as_str());
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(file.content())?;
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The removal follows no link.
        if let Err(err) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%err, path = %self.0.display(), "a worker's private folder was not removed");
        }
    }
}
