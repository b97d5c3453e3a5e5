//! Reads source files: only beneath the root, within bounds, and each content once.
//!
//! An answer about a file uses the file's present bytes. One of a few threads parses a new content; a request for a
//! known content never waits for them.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Semaphore;

use provost_base::limits::{CODE_READERS_MAX, CODE_STAMPS_MAX, SOURCE_BYTES_MAX};
use provost_base::{Digest, RepoPath};
use provost_jail::Root;
use provost_syntax::{Cache, Language, ParseDeadline, Reading, Trouble, language_of};
use provost_system::{changed_at, reading_without_waiting, version_of};

/// How long a caller that asks about a file waits until the file has been read. After that, the answer lacks the
/// parts that depend on the file, and says so.
pub(super) const READ_TIME_MAX: Duration = Duration::from_secs(2);

/// A file that was written within this time may be written again without a change of its timestamps.
const YOUNG: Duration = Duration::from_millis(100);

/// A checkout of the repository: its first one, or a worktree. Paths mean the same in all of them.
#[derive(Clone, Debug)]
pub struct Base(Arc<Root>);

impl Base {
    /// Makes the base for the checkout beneath `root`.
    pub fn new(root: Root) -> Self {
        Self(Arc::new(root))
    }

    /// Returns the top directory of the checkout.
    pub fn root(&self) -> &Root {
        &self.0
    }

    /// Returns whether both are the same checkout.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.number() == other.number()
    }

    fn number(&self) -> (u64, u64) {
        (self.0.place().dev(), self.0.place().ino())
    }
}

/// The file at a path, with the content that could be read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file's one spelling: without symbolic links, as far as it exists.
    pub path: RepoPath,
    /// The content that the file had when it was read.
    pub content: Content,
}

/// The content of a file, if it is code.
#[derive(Clone, Debug)]
pub enum Content {
    /// Code of a known language, as it was parsed.
    Code(Arc<Reading>),
    /// There is nothing to read: the file does not exist, or its language is not supported.
    None,
    /// A file that cannot be read as code, for this reason.
    Unreadable(Box<str>),
}

impl Source {
    /// Returns the parsed code, if the file has any.
    pub fn reading(&self) -> Option<&Arc<Reading>> {
        match &self.content {
            Content::Code(reading) => Some(reading),
            Content::None | Content::Unreadable(_) => None,
        }
    }
}

/// The version of a file: enough to tell that its content is the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    len: u64,
    version: (u64, i64, i64),
}

/// The digests of the contents that files had; the parsed code is in the cache as long as there is room.
type Stamps = HashMap<((u64, u64), RepoPath), (Stamp, Digest)>;

/// Reads files, and remembers what they contained.
pub struct Code {
    cache: Arc<Cache>,
    stamps: Mutex<Stamps>,
    readers: Semaphore,
}

/// A file that was opened and not yet parsed.
struct Opened {
    path: RepoPath,
    language: Language,
    bytes: Vec<u8>,
    stamp: Option<Stamp>,
}

/// The result of a look at a file.
enum CacheLookup {
    Known(Source),
    New(Opened),
}

impl Code {
    /// Makes a reader that shares its cache of parsed files with others.
    pub fn sharing(cache: Arc<Cache>) -> Self {
        Self { cache, stamps: Mutex::default(), readers: Semaphore::new(CODE_READERS_MAX) }
    }

    /// Reads the file at a path, as far as that is possible within two seconds.
    pub async fn read(self: &Arc<Self>, base: &Base, path: &RepoPath) -> Source {
        let until = Instant::now() + READ_TIME_MAX;
        self.read_until(base, path, until).await
    }

    /// Reads the file at a path until the given moment.
    pub(super) async fn read_until(self: &Arc<Self>, base: &Base, path: &RepoPath, until: Instant) -> Source {
        let (code, from, at) = (self.clone(), base.clone(), path.clone());
        // If a turn is free, the thread that looks parses as well: what it has read is in its processor's cache.
        let looked = blocking(move || match code.look(&from, &at) {
            CacheLookup::New(opened) => match code.readers.try_acquire() {
                Ok(_turn) => CacheLookup::Known(code.parse(&from, opened, until)),
                Err(_) => CacheLookup::New(opened),
            },
            known @ CacheLookup::Known(_) => known,
        });
        let opened = match looked.await {
            Some(CacheLookup::Known(source)) => return source,
            Some(CacheLookup::New(opened)) => opened,
            None => return unreadable(path.clone(), "the daemon is shutting down"),
        };
        let late = "it takes too long to read; ask again in a moment";
        let path = opened.path.clone();
        let turn = tokio::time::timeout_at(until.into(), self.readers.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return unreadable(path, late) };
        let (code, from) = (self.clone(), base.clone());
        let parsed = blocking(move || code.parse(&from, opened, until)).await;
        parsed.unwrap_or_else(|| unreadable(path, late))
    }

    /// Returns the one spelling of a path, without reading the file.
    pub(super) async fn spelling(&self, base: &Base, path: &RepoPath) -> RepoPath {
        let (base, asked) = (base.clone(), path.clone());
        let found = blocking(move || one_spelling(base.root(), &asked).ok()).await;
        found.flatten().unwrap_or_else(|| path.clone())
    }

    /// Returns the one spelling of a path; `None` if the path leaves the checkout.
    pub(super) async fn spelling_inside(&self, base: &Base, path: &RepoPath) -> Option<RepoPath> {
        let (base, asked) = (base.clone(), path.clone());
        blocking(move || one_spelling(base.root(), &asked).ok()).await.flatten()
    }

    /// Reads content that is not on disk, such as the content of a commit that is about to be made.
    pub(super) async fn read_content(
        self: &Arc<Self>,
        path: RepoPath,
        content: impl AsRef<[u8]> + Send + 'static,
        until: Instant,
    ) -> Source {
        let Some(language) = language_of(path.as_str()) else {
            return Source { path, content: Content::None };
        };
        let late = "it takes too long to read; ask again in a moment";
        let turn = tokio::time::timeout_at(until.into(), self.readers.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return unreadable(path, late) };
        let (code, at) = (self.clone(), path.clone());
        let parsed = blocking(move || {
            let patience = ParseDeadline { until: Some(until), cancelled: None };
            judged(path, code.cache.read(language, content.as_ref(), &patience))
        });
        parsed.await.unwrap_or_else(|| unreadable(at, late))
    }

    /// Returns the cache of parsed files, for modules that read whole repositories.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    fn stamps(&self) -> MutexGuard<'_, Stamps> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file and compares its version. Blocks for as long as the disk does.
    fn look(&self, base: &Base, path: &RepoPath) -> CacheLookup {
        let path = match one_spelling(base.root(), path) {
            Ok(path) => path,
            Err(why) => return CacheLookup::Known(unreadable(path.clone(), why)),
        };
        let Some(language) = language_of(path.as_str()) else {
            return CacheLookup::Known(Source { path, content: Content::None });
        };
        let mut file = match open(base.root(), &path) {
            Ok(Some(file)) => file,
            Ok(None) => return CacheLookup::Known(Source { path, content: Content::None }),
            Err(why) => return CacheLookup::Known(unreadable(path, &why)),
        };
        let stamp = stamp(&file);
        let key = (base.number(), path);
        if let Some(reading) = stamp.and_then(|stamp| self.known(&key, stamp, language)) {
            return CacheLookup::Known(judged(key.1, reading));
        }
        match content(&mut file) {
            Ok(bytes) => CacheLookup::New(Opened { path: key.1, language, bytes, stamp }),
            Err(why) => CacheLookup::Known(unreadable(key.1, &why)),
        }
    }

    /// Returns the parsed code of a file that has not changed since, if it is still in the cache.
    fn known(&self, key: &((u64, u64), RepoPath), now: Stamp, language: Language) -> Option<Arc<Reading>> {
        let (stamp, content) = *self.stamps().get(key)?;
        if stamp == now { self.cache.known(language, content) } else { None }
    }

    fn parse(&self, base: &Base, opened: Opened, until: Instant) -> Source {
        let patience = ParseDeadline { until: Some(until), cancelled: None };
        let content = Digest::of(&opened.bytes);
        let reading = self.cache.read_known_as(content, opened.language, &opened.bytes, &patience);
        if let Some(stamp) = opened.stamp
            && !reading.trouble.contains(&Trouble::TooSlow)
        {
            let mut stamps = self.stamps();
            // A caller that asks for more files than these at once reads some of them twice.
            if stamps.len() >= CODE_STAMPS_MAX {
                stamps.clear();
            }
            stamps.insert((base.number(), opened.path.clone()), (stamp, content));
        }
        judged(opened.path, reading)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn unreadable(path: RepoPath, why: &str) -> Source {
    Source { path, content: Content::Unreadable(why.into()) }
}

/// Turns a reading into a source; a file that was too large, generated, or too hard to read counts as unreadable.
fn judged(path: RepoPath, reading: Arc<Reading>) -> Source {
    let why = reading.trouble.iter().find_map(|trouble| match trouble {
        Trouble::TooLarge { .. } => Some("it is larger than files are read"),
        Trouble::Generated => Some("it says that a program has written it; change what it is written from"),
        Trouble::TooHard => Some("it takes more work than a file of its size may"),
        Trouble::TooSlow => Some("it takes too long to read; ask again in a moment"),
        _ => None,
    });
    match why {
        Some(why) => unreadable(path, why),
        None => Source { path, content: Content::Code(reading) },
    }
}

/// Returns a file's path with symbolic links resolved, for the part that exists.
fn one_spelling(root: &Root, path: &RepoPath) -> Result<RepoPath, &'static str> {
    let mut exists = Path::new(path.as_str());
    let mut rest = Vec::new();
    loop {
        if exists.as_os_str().is_empty() {
            return Ok(path.clone());
        }
        match root.handle().canonicalize(exists) {
            Ok(found) => {
                let found = rest.iter().rev().fold(found, |found, part| found.join(part));
                let text = found.to_str().ok_or("its path is not text")?;
                let text = text.replace(std::path::MAIN_SEPARATOR, "/");
                return RepoPath::as_is(&text).ok_or("its path cannot be written down");
            }
            Err(err) if leads_out(&err) => return Err("a symbolic link leads out of the repository"),
            Err(_) => {
                rest.extend(exists.file_name());
                exists = exists.parent().unwrap_or(Path::new(""));
            }
        }
    }
}

fn leads_out(err: &std::io::Error) -> bool {
    // cap-std's own refusal carries no system error number; the kernel's is EXDEV.
    let refused = err.kind() == std::io::ErrorKind::PermissionDenied && err.raw_os_error().is_none();
    refused || err.kind() == std::io::ErrorKind::CrossesDevices
}

/// Opens a regular file without waiting for another process; `None` if there is none.
fn open(root: &Root, path: &RepoPath) -> Result<Option<File>, Box<str>> {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    let options = reading_without_waiting();
    let file = match root.handle().open_with(path.as_str(), &options) {
        Ok(file) => file.into_std(),
        Err(err) if leads_out(&err) => return Err("a symbolic link leads out of the repository".into()),
        Err(err) if matches!(err.kind(), NotFound | NotADirectory | IsADirectory) => return Ok(None),
        Err(err) => return Err(format!("it cannot be opened: {err}").into()),
    };
    let meta = file.metadata().map_err(|err| format!("it cannot be read: {err}"))?;
    if meta.is_dir() {
        return Ok(None);
    }
    if !meta.is_file() {
        return Err("it is not a regular file".into());
    }
    if meta.len() > SOURCE_BYTES_MAX as u64 {
        return Err(format!("it has {} bytes, which is more than files are read", meta.len()).into());
    }
    Ok(Some(file))
}

/// Returns the stamp that identifies a file's content; `None` while the file is too young for its timestamps to tell.
fn stamp(file: &File) -> Option<Stamp> {
    let meta = file.metadata().ok()?;
    let age = SystemTime::now().duration_since(changed_at(&meta).ok()?).ok()?;
    (age > YOUNG).then(|| Stamp { len: meta.len(), version: version_of(&meta) })
}

fn content(file: &mut File) -> Result<Vec<u8>, Box<str>> {
    let mut bytes = Vec::new();
    let most = SOURCE_BYTES_MAX as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(|err| format!("it cannot be read: {err}"))?;
    Ok(bytes)
}
