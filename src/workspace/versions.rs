//! Versions of claimed files, in the daemon's own folder: the content of a file at its claim, and after each observed
//! change, so that a conflict loses no side's content.
//!
//! Each version is a file, named after the claimed file and the digest of its content, and checked against its name
//! when it is read. Their number is bounded; the least recently used one is dropped. A lost file costs a version and
//! nothing else.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use lru::LruCache;

use provost_base::limits::{VERSION_BYTES_MAX, VERSIONS_BYTES_MAX, VERSIONS_MAX};
use provost_base::{Digest, RepoPath};
use provost_domain::Content;
use provost_system::{file_inside, make_private_folders, new_file_inside};

/// The folder in the daemon's state.
const FOLDER: &str = "versions";

/// The prefix of files that are not complete yet.
const HALF: &str = "half-";

/// The key of a version: parts of two digests, of the file's path and of its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Name([u8; 8], [u8; 8]);

impl Name {
    fn of(file: &RepoPath, content: Content) -> Option<Self> {
        let Content::Sha(content) = content else { return None };
        Some(Self(first(&Digest::of(file.as_str().as_bytes())), content))
    }

    fn text(self, mode: Option<u32>) -> String {
        let (file, content) = (u64::from_be_bytes(self.0), u64::from_be_bytes(self.1));
        let mode = mode.map_or_else(|| "any".to_owned(), |mode| format!("{mode:o}"));
        format!("{file:016x}-{content:016x}-{mode}")
    }

    fn read(text: &str) -> Option<(Self, Option<u32>)> {
        let mut parts = text.split('-');
        let mut number = || {
            let digits = parts.next().filter(|it| it.len() == 16)?;
            u64::from_str_radix(digits, 16).ok().map(u64::to_be_bytes)
        };
        let name = Self(number()?, number()?);
        let mode = match parts.next()? {
            "any" => None,
            digits => Some(u32::from_str_radix(digits, 8).ok()?),
        };
        (name.text(mode) == text).then_some((name, mode))
    }
}

/// Returns the first bytes of a digest, as in the digest of a content.
pub fn first(digest: &Digest) -> [u8; 8] {
    let (first, _) = digest.as_bytes().split_first_chunk::<8>().expect("a digest has more bytes");
    *first
}

/// A stored version.
#[derive(Clone, Copy, Debug)]
struct StoredVersion {
    mode: Option<u32>,
    bytes: u64,
}

/// The stored versions, the most recently used first.
#[derive(Debug)]
struct Shelf {
    all: LruCache<Name, StoredVersion>,
    bytes: u64,
}

impl Shelf {
    fn new() -> Self {
        Self { all: LruCache::unbounded(), bytes: 0 }
    }

    /// Returns a version, if it is stored, and makes it the most recently used.
    fn touch(&mut self, name: Name) -> Option<StoredVersion> {
        self.all.get(&name).copied()
    }

    /// Adds a version; returns the names of those that have to be removed for it.
    fn put(&mut self, name: Name, mode: Option<u32>, bytes: u64) -> Vec<String> {
        let mut gone = Vec::new();
        self.bytes += bytes;
        if let Some(before) = self.all.put(name, StoredVersion { mode, bytes }) {
            self.bytes -= before.bytes;
            if before.mode != mode {
                gone.push(name.text(before.mode));
            }
        }
        while self.all.len() > VERSIONS_MAX || self.bytes > VERSIONS_BYTES_MAX {
            let Some((oldest, kept)) = self.all.pop_lru() else { break };
            self.bytes -= kept.bytes;
            gone.push(oldest.text(kept.mode));
        }
        gone
    }

    fn remove(&mut self, name: Name) {
        if let Some(kept) = self.all.pop(&name) {
            self.bytes -= kept.bytes;
        }
    }
}

/// The folder of all versions, to which only the daemon can write.
#[derive(Debug)]
pub struct Versions {
    dir: Dir,
    shelf: Mutex<Shelf>,
    made: AtomicU64,
}

/// A version that was read back.
pub struct Found {
    /// The content of the version.
    pub bytes: Vec<u8>,
    /// The file's permission bits; `None` on a system without them.
    pub mode: Option<u32>,
}

impl Versions {
    /// Opens the folder in the daemon's state, and makes it if it is missing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(state: &Path) -> io::Result<Self> {
        let path = state.join(FOLDER);
        make_private_folders(&path)?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        let (mut found, mut shelf) = (Vec::new(), Shelf::new());
        for entry in dir.entries()? {
            let entry = entry?;
            let text = entry.file_name().to_string_lossy().into_owned();
            match (Name::read(&text), entry.metadata()) {
                (Some((name, mode)), Ok(meta)) if meta.is_file() => {
                    let written = meta.modified().map_or(SystemTime::UNIX_EPOCH, |it| it.into_std());
                    found.push((written, name, mode, meta.len()));
                }
                // An earlier daemon has begun this file and not finished it.
                _ if text.starts_with(HALF) => dir.remove_file(&text)?,
                _ => {}
            }
        }
        found.sort_unstable_by_key(|(written, ..)| *written);
        let mut gone = Vec::new();
        found.into_iter().for_each(|(_, name, mode, bytes)| gone.extend(shelf.put(name, mode, bytes)));
        let versions = Self { dir, shelf: Mutex::new(shelf), made: AtomicU64::new(0) };
        versions.remove(&gone);
        Ok(versions)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, names: &[String]) {
        for name in names {
            if let Err(err) = self.dir.remove_file(name) {
                tracing::warn!(%err, name, "an old version of a claimed file was not removed");
            }
        }
    }

    /// Checks whether a version of a file with this content is stored.
    pub fn has(&self, file: &RepoPath, content: Content) -> bool {
        Name::of(file, content).is_some_and(|name| self.shelf().touch(name).is_some())
    }

    /// Stores the content of a file. May block.
    pub fn keep(&self, file: &RepoPath, content: Content, bytes: &[u8], mode: Option<u32>) {
        let Some(name) = Name::of(file, content) else { return };
        if self.shelf().touch(name).is_some_and(|it| it.mode == mode) {
            return;
        }
        match self.write(&name.text(mode), bytes) {
            Ok(()) => {
                let gone = self.shelf().put(name, mode, bytes.len() as u64);
                self.remove(&gone);
            }
            Err(err) => tracing::warn!(%err, "a version of a claimed file was not kept"),
        }
    }

    /// Writes a version, which appears under its name only when it is complete.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let half = format!("{HALF}{}", self.made.fetch_add(1, Ordering::Relaxed));
        let mut file = new_file_inside(&self.dir, &half)?;
        let written = file.write_all(bytes).and_then(|()| self.dir.rename(&half, &self.dir, name));
        if written.is_err() {
            let _kept_for_the_next_start = self.dir.remove_file(&half);
        }
        written
    }

    /// Reads a version back. May block.
    pub fn read(&self, file: &RepoPath, content: Content) -> Option<Found> {
        let name = Name::of(file, content)?;
        let kept = self.shelf().touch(name)?;
        let found = file_inside(&self.dir, &name.text(kept.mode)).and_then(bounded);
        let good = |bytes: &Vec<u8>| first(&Digest::of(bytes)) == name.1;
        let bytes = found.ok().flatten().filter(good);
        if bytes.is_none() {
            // The file is damaged, for instance by a loss of power: the version can be stored again.
            self.shelf().remove(name);
            tracing::warn!("a version of a claimed file cannot be read back");
        }
        Some(Found { bytes: bytes?, mode: kept.mode })
    }
}

/// Returns the whole content of a file, if it is no longer than a version may be.
pub fn bounded(file: std::fs::File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(VERSION_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= VERSION_BYTES_MAX).then_some(bytes))
}
