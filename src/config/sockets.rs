//! The sockets of a running daemon, recorded in its state folder for its clients.
//!
//! Programs that agents' hosts start do not always have the `XDG_RUNTIME_DIR` that the daemon was started with, and
//! would look for the daemon elsewhere, or start another one. The state folder is the same for all of them. The
//! record counts as long as the daemon that wrote it runs and has the file locked: the system releases the lock with
//! the process, however it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Places;
use provost_base::limits::PATH_LEN_MAX;
use provost_system as system;

/// The file's name in the state folder.
const NAME: &str = "sockets";

/// Size that is read, in bytes: a path, escaped, and a number.
const BYTES_MAX: u64 = 8 * PATH_LEN_MAX as u64;

/// The content of the record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The folder of the sockets.
    pub runtime: PathBuf,
    /// The daemon's process.
    pub pid: u32,
}

/// A daemon's record of where its sockets are, for as long as this is kept.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    /// Held open, since the lock on it says that the daemon runs.
    _file: File,
}

impl Record {
    /// Writes the record. Only the daemon that has the state folder's lease may call it.
    ///
    /// # Errors
    /// What the system says.
    pub fn keep(places: &Places) -> io::Result<Self> {
        let (path, new) = (places.state.join(NAME), places.state.join(format!(".{NAME}")));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = system::private_file(&mut options).open(&new)?;
        // In place only when it is locked, or it would look like one of a daemon that has gone.
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

/// Where the daemon of a state folder has its sockets, if one runs that has said so.
pub fn of_running(state: &Path) -> Option<Whereabouts> {
    let path = state.join(NAME);
    let meta = fs::symlink_metadata(&path).ok()?;
    if !meta.is_file() || system::owned(&path).is_err() {
        return None;
    }
    let file = File::open(&path).ok()?;
    let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    let says: Whereabouts = serde_json::from_slice(&text).ok()?;
    (says.runtime.is_absolute() && system::private(&says.runtime).is_ok()).then_some(says)
}
