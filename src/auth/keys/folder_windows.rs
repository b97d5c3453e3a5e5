//! The key ring's folder on Windows; its files inherit its access list, which excludes other users.
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::KeyError;
use provost_base::limits::KEY_FILE_BYTES_MAX;
use provost_system as system;

/// The prefix of files that are still being written.
const UNFINISHED: &str = ".new-";

/// The file whose lock permits its holder to change the folder.
const LOCK: &str = ".lock";

/// A folder of keys whose access list admits its owner alone.
pub struct Folder {
    path: PathBuf,
}

/// The lock that keeps other processes from changing the folder.
pub struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A failure cannot be repaired here, and the end of the process unlocks in any case.
        let _unlocked = self.0.unlock();
    }
}

impl Folder {
    /// Opens the folder, and creates it if it is missing.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let io = |source| KeyError::Io { path: path.to_owned(), source };
        system::make_private_folders(path).map_err(io)?;
        if !fs::symlink_metadata(path).map_err(io)?.is_dir() {
            return Err(not_followed(path));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Waits, for a limited time, until no other process changes the folder: any process of the user can hold the lock.
    pub fn lock(&self) -> Result<FolderLock, KeyError> {
        super::within_wait(&self.path, || self.lock_if_free())
    }

    /// Returns the lock, unless another process has it at the moment.
    pub fn lock_if_free(&self) -> Result<Option<FolderLock>, KeyError> {
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(self.path.join(LOCK));
        let file = opened.map_err(|e| self.io(LOCK, e))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FolderLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(self.io(LOCK, e)),
        }
    }

    /// Removes the unfinished files of a killed process. Needs the lock.
    pub fn sweep(&self) -> Result<(), KeyError> {
        for name in self.names()?.iter().filter(|name| name.starts_with(UNFINISHED)) {
            fs::remove_file(self.path.join(name)).map_err(|e| self.io(name, e))?;
        }
        Ok(())
    }

    /// Returns the names in the folder that are plain text; Provost's own are.
    pub fn names(&self) -> Result<Vec<String>, KeyError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|e| self.io("", e))? {
            let entry = entry.map_err(|e| self.io("", e))?;
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    /// Returns a file's bytes, or `None` if there is no such file.
    pub fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, KeyError> {
        let path = self.path.join(name);
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.io(name, e)),
        };
        if !meta.is_file() {
            return Err(not_followed(&path));
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.io(name, e)),
        };
        let mut bytes = Zeroizing::new(Vec::with_capacity(1024));
        let limit = KEY_FILE_BYTES_MAX as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).map_err(|e| self.io(name, e))?;
        if bytes.len() > KEY_FILE_BYTES_MAX {
            return Err(self.malformed(name, format!("is larger than {KEY_FILE_BYTES_MAX} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Puts a file in its place, whole and on disk, or leaves the old one. Needs the lock.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), KeyError> {
        let unfinished = self.path.join(format!("{UNFINISHED}{name}"));
        // Under the lock, a file of that name is a killed process's leftover.
        let _left_over = fs::remove_file(&unfinished);
        let placed =
            write_aside(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, self.path.join(name)));
        placed.map_err(|source| {
            // The first failure is the one to report; the next start sweeps.
            let _swept = fs::remove_file(&unfinished);
            self.io(name, source)
        })
    }

    /// Removes a file; returns whether it existed. Needs the lock.
    pub fn remove(&self, name: &str) -> Result<bool, KeyError> {
        match fs::remove_file(self.path.join(name)) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(self.io(name, e)),
        }
    }

    /// Returns the error for a file of this folder whose text is malformed.
    pub fn malformed(&self, name: &str, what: String) -> KeyError {
        KeyError::Malformed { path: self.path.join(name), what }
    }

    fn io(&self, name: &str, source: io::Error) -> KeyError {
        KeyError::Io { path: self.path.join(name), source }
    }
}

fn write_aside(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn not_followed(path: &Path) -> KeyError {
    let what = "is a link or of the wrong kind";
    KeyError::Unsafe { path: path.to_owned(), what, remedy: "put the real one in its place".into() }
}
