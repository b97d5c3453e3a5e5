//! The record of the page over all repositories: the process that serves it, and its port. It lies in the state
//! directory while that process runs; a file without a lock was left by a process that was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::env::Environment;
use super::locked_record;
use super::places::{PlacesError, make_private, states};
use provost_system as system;

/// The file's name in the state directory.
const NAME: &str = "web-all.json";

/// The size of the largest record that is read, in bytes.
const BYTES_MAX: u64 = 4 << 10;

/// The process that serves the page over all repositories.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HubAt {
    /// The process id.
    pub pid: u32,
    /// The port of the page.
    pub port: u16,
}

/// The record of this process; it is removed when this is dropped.
#[derive(Debug)]
pub struct HubRecord {
    path: PathBuf,
    _file: File,
}

fn path(environment: &Environment) -> Result<PathBuf, PlacesError> {
    Ok(states(environment)?.join(NAME))
}

impl HubRecord {
    /// Writes the record. Only the process that has the port may call it.
    ///
    /// # Errors
    /// The system's error, or the reason why the folder is not this user's alone.
    pub fn keep(environment: &Environment, port: u16) -> io::Result<Self> {
        let path = path(environment).map_err(io::Error::other)?;
        make_private(path.parent().unwrap_or(&path)).map_err(io::Error::other)?;
        let says = HubAt { pid: std::process::id(), port };
        let new = path.with_extension(format!("{}", says.pid));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = system::private_file(&mut options).open(&new)?;
        // The file is put in place only when it is locked; otherwise it would look like that of a killed process.
        file.try_lock()?;
        file.write_all(&serde_json::to_vec(&says)?)?;
        fs::rename(&new, &path)?;
        Ok(Self { path, _file: file })
    }

    /// Returns the record of a process that runs; `None` where none does.
    pub fn of_running(environment: &Environment) -> Option<HubAt> {
        locked_record::of_running(&path(environment).ok()?, BYTES_MAX)
    }
}

impl Drop for HubRecord {
    fn drop(&mut self) {
        let _unheard = fs::remove_file(&self.path);
    }
}
