//! Reads a record that counts only while the process that wrote it has the file locked: the system releases the lock when that process
//! ends for any reason.

use std::fs::{self, File, TryLockError};
use std::io::Read as _;
use std::path::Path;

use serde::de::DeserializeOwned;

use provost_system as system;

/// Returns the content of a record of a running process, of so many bytes at most; `None` where there is none.
pub(super) fn of_running<T: DeserializeOwned>(path: &Path, most: u64) -> Option<T> {
    let meta = fs::symlink_metadata(path).ok()?;
    if !meta.is_file() || meta.len() > most || system::owned(path).is_err() {
        return None;
    }
    let file = File::open(path).ok()?;
    let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
    let mut text = Vec::new();
    file.take(most).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
