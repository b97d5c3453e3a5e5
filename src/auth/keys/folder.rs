//! The key ring's folder: every file is reached through one descriptor of it, and checked once it is open.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use zeroize::Zeroizing;

use super::KeyError;
use provost_base::limits::KEY_FILE_BYTES_MAX;

/// The prefix of files that are still being written.
const UNFINISHED: &str = ".new-";

/// A folder of keys that only its owner can open. It stays open, so that no process can exchange it.
pub struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

/// The lock that keeps other processes from changing the folder.
pub struct FolderLock<'a>(&'a Folder);

impl Drop for FolderLock<'_> {
    fn drop(&mut self) {
        // A failure cannot be repaired here, and the end of the process unlocks in any case.
        let _unlocked = fs::flock(&self.0.fd, FlockOperation::Unlock);
    }
}

impl Folder {
    /// Opens the folder, and creates it (0700) if it is missing.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let io = |source| KeyError::Io { path: path.to_owned(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(|e| match e {
            rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => not_followed(path),
            e => io(e.into()),
        })?;
        let stat = fs::fstat(&fd).map_err(|e| io(e.into()))?;
        check_private(path, &stat, "chmod 700")?;
        Ok(Self { path: path.to_owned(), fd })
    }

    /// Waits, for a limited time, until no other process changes the folder: any process of the user can hold the lock.
    pub fn lock(&self) -> Result<FolderLock<'_>, KeyError> {
        super::within_wait(&self.path, || self.lock_if_free())
    }

    /// Returns the lock, unless another process has it at the moment.
    pub fn lock_if_free(&self) -> Result<Option<FolderLock<'_>>, KeyError> {
        match fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(FolderLock(self))),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(None),
            Err(e) => Err(self.io("", e)),
        }
    }

    /// Removes the unfinished files of a killed process. Needs the lock.
    pub fn sweep(&self) -> Result<(), KeyError> {
        for name in self.names()?.iter().filter(|name| name.starts_with(UNFINISHED)) {
            fs::unlinkat(&self.fd, name, AtFlags::empty()).map_err(|e| self.io(name, e))?;
        }
        Ok(())
    }

    /// Returns the names in the folder that are UTF-8; Provost's own are.
    pub fn names(&self) -> Result<Vec<String>, KeyError> {
        let entries = fs::Dir::read_from(&self.fd).map_err(|e| self.io("", e))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| self.io("", e))?;
            names.extend(entry.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Returns a file's bytes, or `None` if there is no such file.
    pub fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, KeyError> {
        // Opened without waiting: a pipe placed here must not block the daemon before its type is checked.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err(not_followed(&self.path.join(name))),
            Err(e) => return Err(self.io(name, e)),
        };
        let stat = fs::fstat(&fd).map_err(|e| self.io(name, e))?;
        let path = self.path.join(name);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
            let what = "is not a file of its own";
            return Err(KeyError::Unsafe { path, what, remedy: "remove it".into() });
        }
        check_private(&path, &stat, "chmod 600")?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(1024));
        let limit = KEY_FILE_BYTES_MAX as u64 + 1;
        File::from(fd).take(limit).read_to_end(&mut bytes).map_err(|source| KeyError::Io { path, source })?;
        if bytes.len() > KEY_FILE_BYTES_MAX {
            return Err(self.malformed(name, format!("is larger than {KEY_FILE_BYTES_MAX} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Puts a file (0600) in its place, whole and on disk, or leaves the old one. Needs the lock.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), KeyError> {
        let unfinished = format!("{UNFINISHED}{name}");
        // Under the lock, a file of that name is a killed process's leftover.
        let _left_over = fs::unlinkat(&self.fd, &unfinished, AtFlags::empty());
        let placed = self.write_aside(&unfinished, bytes).and_then(|()| {
            fs::renameat(&self.fd, &unfinished, &self.fd, name)?;
            Ok(fs::fsync(&self.fd)?)
        });
        placed.map_err(|source: io::Error| {
            // The first failure is the one to report; the next start sweeps.
            let _swept = fs::unlinkat(&self.fd, &unfinished, AtFlags::empty());
            KeyError::Io { path: self.path.join(name), source }
        })
    }

    /// Removes a file; returns whether it existed. Needs the lock.
    pub fn remove(&self, name: &str) -> Result<bool, KeyError> {
        match fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => fs::fsync(&self.fd).map(|()| true).map_err(|e| self.io(name, e)),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(e) => Err(self.io(name, e)),
        }
    }

    fn write_aside(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = fs::openat(&self.fd, name, flags, mode)?;
        // The process' umask may have removed more bits than wanted.
        fs::fchmod(&fd, mode)?;
        let mut file = File::from(fd);
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Returns the error for a file of this folder whose text is malformed.
    pub fn malformed(&self, name: &str, what: String) -> KeyError {
        KeyError::Malformed { path: self.path.join(name), what }
    }

    fn io(&self, name: &str, e: rustix::io::Errno) -> KeyError {
        let path = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        KeyError::Io { path, source: e.into() }
    }
}

fn not_followed(path: &Path) -> KeyError {
    let what = "is a symbolic link or of the wrong kind";
    KeyError::Unsafe { path: path.to_owned(), what, remedy: "put the real one in its place".into() }
}

fn check_private(path: &Path, stat: &Stat, command: &str) -> Result<(), KeyError> {
    let refuse = |what, remedy| Err(KeyError::Unsafe { path: path.to_owned(), what, remedy });
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return refuse("belongs to another user", "run as its owner, or remove it".into());
    }
    if stat.st_mode & 0o077 != 0 {
        let remedy =
            format!("`{command} {}` if no other user has seen it, otherwise remove it", path.display());
        return refuse("is open to other users", remedy);
    }
    Ok(())
}
