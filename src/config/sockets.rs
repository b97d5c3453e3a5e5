//! The sockets of a running daemon, recorded in its state folder for its clients.
//!
//! Programs that agents' hosts start do not always have the daemon's `XDG_RUNTIME_DIR`, and would look for the daemon
//! elsewhere, or start another one. The state folder is the same for all of them. The record counts as long as the
//! daemon that wrote it runs and has the file locked: the system releases the lock when the process ends for any
//! reason.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Places, locked_record};
use provost_base::limits::PATH_LEN_MAX;
use provost_system as system;

/// The file's name in the state folder.
const NAME: &str = "sockets";

/// Most bytes that are read: an escaped path, and a number.
const BYTES_MAX: u64 = 8 * PATH_LEN_MAX as u64;

/// The content of the record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The folder of the sockets.
    pub runtime: PathBuf,
    /// The daemon's process.
    pub pid: u32,
}

/// A daemon's record of its sockets; it is removed when this is dropped.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    /// The open file, whose lock tells that the daemon runs.
    _file: File,
}

impl Record {
    /// Writes the record. Only the daemon that has the state folder's lease may call it.
    ///
    /// # Errors
    /// The system's error.
    pub fn keep(places: &Places) -> io::Result<Self> {
        let (path, new) = (places.state.join(NAME), places.state.join(format!(".{NAME}")));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = system::private_file(&mut options).open(&new)?;
        // The file is put in place only when it is locked; otherwise it would look like that of a killed daemon.
        file.try_lock()?;
        let says = Whereabouts { runtime: places.runtime.clone(), pid: std::process::id() };
        file.write_all(&serde_json::to_vec(&says)?)?;
        fs::rename(&new, &path)?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _unheard = fs::remove_file(&self.path);
    }
}

/// Returns the sockets' folder of a running daemon, by the record in its state folder; `None` where no daemon runs or has left one.
pub fn of_running(state: &Path) -> Option<Whereabouts> {
    let says: Whereabouts = locked_record::of_running(&state.join(NAME), BYTES_MAX)?;
    (says.runtime.is_absolute() && system::private(&says.runtime).is_ok()).then_some(says)
}
