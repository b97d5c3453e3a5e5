//! The record of a daemon that waits for its database and has no open door yet, in the state folder.
//!
//! Other commands learn by it that such a daemon is there, and end it by removing the record. It counts as long as the daemon that
//! wrote it has the file locked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Places, locked_record};
use provost_system as system;

/// The file's name in the state folder.
const NAME: &str = "awaits-database";

/// The most bytes that are read.
const BYTES_MAX: u64 = 16 << 10;

/// The most characters of a reason.
const REASON_CHARS_MAX: usize = 1_000;

/// A daemon that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Awaiting {
    /// The daemon's process.
    pub pid: u32,
    /// The error of the database when the record was made.
    pub why: String,
}

/// A daemon's record that it waits; it is removed when this is dropped.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    /// The open file, whose lock tells that the daemon still waits.
    file: File,
}

impl Record {
    /// Writes the record.
    ///
    /// # Errors
    /// The system's error, for instance if another daemon waits here already.
    pub fn keep(places: &Places, why: &str) -> io::Result<Self> {
        let path = places.state.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = system::private_file(&mut options).open(&path)?;
        file.try_lock()?;
        let says = Awaiting { pid: std::process::id(), why: why.chars().take(REASON_CHARS_MAX).collect() };
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(&says)?)?;
        Ok(Self { path, file })
    }

    /// Returns whether another command has removed the record, so that the daemon is to end.
    pub fn is_removed(&self) -> bool {
        matches!(system::is_at(&self.file, &self.path), Ok(false))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // Another daemon may have a record of its own there by now.
        if !self.is_removed() {
            let _unheard = fs::remove_file(&self.path);
        }
    }
}

/// Returns the daemon that waits for its database; `None` if none does.
pub fn awaiting(places: &Places) -> Option<Awaiting> {
    locked_record::of_running(&places.state.join(NAME), BYTES_MAX)
}

/// Makes the daemon that waits end at its next try.
///
/// # Errors
/// The system's error.
pub fn end(places: &Places) -> io::Result<()> {
    match fs::remove_file(places.state.join(NAME)) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
