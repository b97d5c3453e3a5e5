//! Directories and programs, found once and recognised again.
//!
//! A path is looked up through a directory handle, never by joining strings, and the result is remembered
//! by device and inode. The supervisor opens it again without following any symbolic link and refuses to start
//! the worker if it finds another file: swapping files in between has no effect.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::file;
use provost_base::{Digest, RepoPath};

/// The reason why a directory or a program was refused. Safe to show to the caller that named it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RootRefused {
    /// The path does not exist, or this user may not open it.
    #[error("{path}: {cause}")]
    Unreachable {
        /// The path that the caller named.
        path: String,
        /// The system's error, in words.
        cause: String,
    },
    /// A symbolic link or `..` leads out of the root.
    #[error("{0}: leads out of the repository")]
    LeadsOut(String),
    /// A file, pipe, socket or device is in the place of a directory.
    #[error("{0}: is not a directory")]
    NotADirectory(String),
    /// The path is no program: a worker's program is a regular file that may be executed, and that not every user may write.
    #[error("{path}: {why}")]
    NotAProgram {
        /// The path that the caller named.
        path: String,
        /// The fault, as a part of a sentence.
        why: &'static str,
    },
}

fn unreachable(path: &Path, error: &io::Error) -> RootRefused {
    RootRefused::Unreachable { path: path.display().to_string(), cause: error.to_string() }
}

/// A directory or file that was found: its path without any symbolic link, its device and its inode.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ResolvedPath {
    path: PathBuf,
    dev: u64,
    ino: u64,
}

impl ResolvedPath {
    /// Returns the absolute path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of the device.
    pub fn dev(&self) -> u64 {
        self.dev
    }

    /// Returns the number of the inode on that device.
    pub fn ino(&self) -> u64 {
        self.ino
    }

    fn of(file: &File, asked: &Path) -> Result<Self, RootRefused> {
        let found = || -> io::Result<Self> {
            let (dev, ino) = file::identity(file)?;
            Ok(Self { path: file::path_of(file, asked)?, dev, ino })
        };
        found().map_err(|e| unreachable(asked, &e))
    }

    fn of_dir(dir: &Dir, asked: &Path) -> Result<Self, RootRefused> {
        let dir = dir.try_clone().map_err(|e| unreachable(asked, &e))?;
        Self::of(&dir.into_std_file(), asked)
    }
}

/// The repository (or another directory that the user opened), held by handle.
#[derive(Debug)]
pub struct Root {
    dir: Dir,
    place: ResolvedPath,
}

/// A directory beneath a [`Root`], held open so that no other directory gets its inode number.
#[derive(Debug)]
pub struct Resolved {
    place: ResolvedPath,
    handle: Dir,
}

impl Resolved {
    /// Returns the path, device and inode of the directory.
    pub fn place(&self) -> &ResolvedPath {
        &self.place
    }

    /// Returns the handle, for reading beneath it.
    pub fn handle(&self) -> &Dir {
        &self.handle
    }
}

impl Root {
    /// Opens the directory beneath which all others are found. Follows symbolic links on the way to it,
    /// since the user named it.
    ///
    /// # Errors
    /// [`RootRefused`] if it is not a directory that can be opened.
    pub fn open(path: &Path) -> Result<Self, RootRefused> {
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(|e| match e.kind() {
            io::ErrorKind::NotADirectory => RootRefused::NotADirectory(path.display().to_string()),
            _ => unreachable(path, &e),
        })?;
        let place = ResolvedPath::of_dir(&dir, path)?;
        Ok(Self { dir, place })
    }

    /// Returns the place of the root directory.
    pub fn place(&self) -> &ResolvedPath {
        &self.place
    }

    /// Returns the handle, for reading beneath it.
    pub fn handle(&self) -> &Dir {
        &self.dir
    }

    /// Finds a directory beneath the root. Follows symbolic links that stay inside.
    ///
    /// # Errors
    /// [`RootRefused::LeadsOut`] for a link that leaves the root, [`RootRefused::NotADirectory`] for any other kind of file
    /// (without waiting for a pipe), [`RootRefused::Unreachable`] otherwise.
    pub fn resolve_dir(&self, path: &RepoPath) -> Result<Resolved, RootRefused> {
        let asked = if path.is_root() { Path::new(".") } else { Path::new(path.as_str()) };
        let handle = self.dir.open_dir(asked).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied if e.raw_os_error().is_none() => {
                RootRefused::LeadsOut(path.to_string())
            }
            io::ErrorKind::CrossesDevices => RootRefused::LeadsOut(path.to_string()),
            io::ErrorKind::NotADirectory => RootRefused::NotADirectory(path.to_string()),
            _ => unreachable(asked, &e),
        })?;
        let place = ResolvedPath::of_dir(&handle, &self.place.path.join(asked))?;
        // This fails only if the directory was moved out while it was being opened.
        if !place.path.starts_with(&self.place.path) {
            return Err(RootRefused::LeadsOut(path.to_string()));
        }
        Ok(Resolved { place, handle })
    }
}

/// Finds a directory or file that the user's configuration names (a toolchain), following symbolic links.
///
/// # Errors
/// [`RootRefused::Unreachable`] with the system's error.
pub fn find_place(path: &Path) -> Result<ResolvedPath, RootRefused> {
    let opened = file::open(path).map_err(|e| unreachable(path, &e))?;
    ResolvedPath::of(&opened, path)
}

/// A worker's program, opened once and fingerprinted. While this is held, no other file gets its inode number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    asked: PathBuf,
    place: ResolvedPath,
    digest: Digest,
    len: u64,
    changed: (i64, i64),
    #[serde(skip)]
    handle: Option<Arc<File>>,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        (&self.asked, &self.place, self.digest, self.len, self.changed)
            == (&other.asked, &other.place, other.digest, other.len, other.changed)
    }
}

impl Program {
    /// Returns the path as configured, which the program sees as its own name.
    pub fn asked(&self) -> &Path {
        &self.asked
    }

    /// Returns the place of the program, with all links resolved.
    pub fn place(&self) -> &ResolvedPath {
        &self.place
    }

    /// Returns the digest of the program's content. An approval is for this content and no other.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Checks whether the fingerprinted file still has the same content. False for a program that
    /// was sent to another process and so has no handle.
    pub fn is_current(&self) -> bool {
        self.handle.as_deref().is_some_and(|file| self.is_unchanged(file).unwrap_or(false))
    }

    /// Checks whether an open file is this program, unchanged: same device, inode, length and time of change. The kernel
    /// itself sets the time of change, so that no program can set it back.
    pub(super) fn is_unchanged(&self, file: &File) -> io::Result<bool> {
        let now = file.metadata()?;
        let same = file::identity(file)? == (self.place.dev, self.place.ino);
        Ok(same && now.len() == self.len && file::stamp(&now) == self.changed)
    }
}

/// Opens, checks and fingerprints a worker's program.
///
/// # Errors
/// [`RootRefused`] for a relative path, for a file that is no executable regular file, and for a program that
/// every user may write.
pub fn resolve_program(path: &Path) -> Result<Program, RootRefused> {
    let refuse = |why| RootRefused::NotAProgram { path: path.display().to_string(), why };
    if !path.is_absolute() {
        return Err(refuse("a worker's program is named by its absolute path"));
    }
    let mut file = file::open(path).map_err(|e| unreachable(path, &e))?;
    let meta = file.metadata().map_err(|e| unreachable(path, &e))?;
    if !meta.is_file() {
        return Err(refuse("is not a regular file"));
    }
    if !file::may_be_executed(&meta) {
        return Err(refuse("may not be executed"));
    }
    if file::may_be_written_by_all(&meta) {
        return Err(refuse("is writable by every user"));
    }
    let place = ResolvedPath::of(&file, path)?;
    let digest = digest_of(&mut file).map_err(|e| unreachable(path, &e))?;
    let program = Program {
        asked: path.into(),
        place,
        digest,
        len: meta.len(),
        changed: file::stamp(&meta),
        handle: None,
    };
    // The file was read to its end and has not changed: the digest is of this content.
    match program.is_unchanged(&file) {
        Ok(true) => Ok(Program { handle: Some(Arc::new(file)), ..program }),
        Ok(false) => Err(refuse("changed while it was being read")),
        Err(e) => Err(unreachable(path, &e)),
    }
}

fn digest_of(file: &mut File) -> io::Result<Digest> {
    let mut hash = Sha256::new();
    let mut block = vec![0; 128 << 10];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(Digest::from_bytes(hash.finalize().into())),
            read => hash.update(&block[..read]),
        }
    }
}
