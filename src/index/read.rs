//! Reads files of the repository: only regular files beneath its root, without waiting, within bounds.

use std::io::{self, Read as _};

use cap_std::fs::{Dir, Metadata};

use provost_base::RepoPath;
use provost_base::limits::SOURCE_BYTES_MAX;
use provost_system::reading_without_waiting;

/// Metadata that distinguish one content of a file from the next, without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    len: u64,
    /// When the file was written, in nanoseconds.
    pub(super) written: i128,
    /// Inode, and second and nanosecond of the last change, on systems that have them; no program
    /// can set the latter.
    id: (u64, i64, i64),
}

/// How long a file is young, in nanoseconds.
const YOUNG_NS: i128 = 100_000_000;

impl Stamp {
    /// Returns the stamp; `None` while the file is so young that it may be written again without a change of its times.
    pub(super) fn grown(self) -> Option<Self> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
        let changed = match self.id {
            (_, 0, 0) => self.written,
            (_, seconds, nanos) => i128::from(seconds) * 1_000_000_000 + i128::from(nanos),
        };
        (i128::try_from(now.as_nanos()).ok()? - changed > YOUNG_NS).then_some(self)
    }

    /// Returns the inode; zero on systems without inodes.
    pub(super) fn inode(&self) -> u64 {
        self.id.0
    }

    /// Checks whether this is the same file under another name: a rename keeps the inode, the length and the time of writing.
    /// False on systems without inodes.
    pub(super) fn is_renamed(&self, before: &Self) -> bool {
        let identity = |it: &Self| (it.id.0, it.len, it.written);
        self.id.0 != 0 && identity(self) == identity(before)
    }

    pub(super) fn of(meta: &Metadata) -> Self {
        let written = meta.modified().ok().and_then(|at| {
            let since = at.into_std().duration_since(std::time::UNIX_EPOCH).ok()?;
            i128::try_from(since.as_nanos()).ok()
        });
        Self { len: meta.len(), written: written.unwrap_or(0), id: identity(meta) }
    }
}

#[cfg(unix)]
fn identity(meta: &Metadata) -> (u64, i64, i64) {
    use cap_std::fs::MetadataExt as _;
    (meta.ino(), meta.ctime(), meta.ctime_nsec())
}

#[cfg(not(unix))]
fn identity(_meta: &Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}

/// Returns the stamp of a regular file; `None` for any other kind, symbolic links included.
pub(super) fn stamp(root: &Dir, path: &RepoPath) -> io::Result<Option<Stamp>> {
    let meta = root.symlink_metadata(path.as_str())?;
    Ok(meta.is_file().then(|| Stamp::of(&meta)))
}

/// The content of a file, or the reason why it was not read.
pub(super) enum Content {
    /// The whole content, with the stamp that the file had.
    Bytes(Vec<u8>, Stamp),
    /// The file is longer than the bound.
    TooLarge(Stamp),
    /// There is no file, or none that can be read.
    Nothing,
}

/// Reads a file of at most `most` bytes. Does not wait for a pipe's other end.
pub(super) fn content(root: &Dir, path: &RepoPath, most: usize) -> io::Result<Content> {
    // A link that another program has put there instead is followed only beneath the root.
    let file = match root.open_with(path.as_str(), &reading_without_waiting()) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Content::Nothing),
        Err(err) => return Err(err),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(Content::Nothing);
    }
    let stamp = Stamp::of(&meta);
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    if meta.len() > most {
        return Ok(Content::TooLarge(stamp));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.into_std().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > most { Content::TooLarge(stamp) } else { Content::Bytes(bytes, stamp) })
}

/// Returns the text of a small file, if there is one.
pub(super) fn text(root: &Dir, path: &str, most: usize) -> Option<String> {
    let path = RepoPath::parse(path).ok()?;
    match content(root, &path, most.min(SOURCE_BYTES_MAX)) {
        Ok(Content::Bytes(bytes, _)) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}
