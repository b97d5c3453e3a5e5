//! A private copy of a workspace for a run whose changes are kept, with a record of the original files. Blocking.
//!
//! The copy has the present content of the files that git tracks or does not ignore, except for a person's own settings of hosts, and
//! a copy of the repository itself if that is a folder; git is never run. A work tree's `.git` file, which points to the repository, stays
//! out. Links are copied as links and never followed; files whose names are not text are left out. The record keeps
//! each file's hash, and its content in a nameless file, which disappears however the daemon ends.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use serde::{Deserialize, Serialize};

use super::copy::{Copied, NoCopy, Room, copy_data, share};
use super::tracked::tracked;
use provost_base::limits::{
    BASE_BYTES_MAX, BASE_FILE_BYTES_MAX, COPY_DEPTH_MAX, HARVEST_FILES_MAX, IGNORE_BYTES_MAX,
    SNAPSHOT_ENTRIES_MAX,
};
use provost_base::{Digest, IgnoreRules, RepoPath};
use provost_system::walk::{Bounds, Entry, Folder, Name, Step, Unopened, Unread, Visitor, walk};
use provost_system::{self as system, open_folder};

/// Settings that a host keeps for one person, and for which the host makes git ignore them. Hooks in them ask the daemon at its
/// door, which no jail reaches, and Claude Code then refuses each write.
const PERSONAL: &[&str] = &[".claude/settings.local.json"];

/// The system's metadata of a file. Two equal stamps mean the same file, unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The file's type and permission bits; 0o644 on a system without them.
    pub mode: u32,
    /// The file's size in bytes.
    pub size: u64,
    mark: (u64, i64, i64),
}

impl Stamp {
    /// Makes a stamp from the system's metadata.
    #[cfg(unix)]
    pub fn of(meta: &Metadata) -> Self {
        use cap_std::fs::MetadataExt as _;
        Self { mode: meta.mode(), size: meta.len(), mark: (meta.ino(), meta.ctime(), meta.ctime_nsec()) }
    }

    /// Makes a stamp from the system's metadata.
    #[cfg(not(unix))]
    pub fn of(meta: &Metadata) -> Self {
        let since =
            |time: cap_std::time::SystemTime| time.into_std().duration_since(std::time::UNIX_EPOCH).ok();
        let modified = meta.modified().ok().and_then(since).unwrap_or_default();
        let seconds = i64::try_from(modified.as_secs()).unwrap_or(i64::MAX);
        Self { mode: 0o644, size: meta.len(), mark: (0, seconds, modified.subsec_nanos().into()) }
    }
}

/// The original at a path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Was {
    /// There was a regular file.
    File {
        /// Permissions of the original.
        mode: u32,
        /// The stamp of the copy, taken when the copy was complete.
        copy: Stamp,
        /// The hash of the content; `None` for a file that is too large.
        hash: Option<Digest>,
        /// The offset of the content; `None` if there was no room for it.
        at: Option<u64>,
    },
    /// There was a link to this path.
    Link(PathBuf),
}

/// The state of the workspace when it was copied.
#[derive(Debug)]
pub struct Base {
    /// The originals, by their paths from the workspace.
    pub was: BTreeMap<String, Was>,
    /// The rules of ignore files above the copied folder.
    pub above: IgnoreRules,
    /// The copied folder, from the workspace.
    pub below: RepoPath,
    contents: Contents,
}

/// A private copy, with a record of its originals.
#[derive(Debug)]
pub struct Snapshot {
    /// The copy in which a run works.
    pub copied: Copied,
    /// The record of the originals, with which changes are compared.
    pub base: Base,
}

/// The contents of the originals, one after the other, in a nameless file.
#[derive(Debug)]
struct Contents {
    file: File,
    end: u64,
}

/// Checks whether a path from the workspace means itself, and no other path, on every system.
pub(super) fn is_fit(path: &str) -> bool {
    RepoPath::as_is(path).is_some()
}

impl Base {
    /// Records that there was a file with this content.
    pub fn was_file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        if !is_fit(path) {
            return Ok(());
        }
        let at = self.contents.add(content)?;
        let copy = Stamp { mode, size: content.len() as u64, mark: (0, 0, 0) };
        let was = Was::File { mode, copy, hash: Some(Digest::of(content)), at };
        self.was.insert(path.to_owned(), was);
        Ok(())
    }

    /// Records that there was no file.
    pub fn was_not(&mut self, path: &str) {
        self.was.remove(path);
    }

    /// Returns the content of an original, by its offset in the record.
    pub fn content(&self, at: u64, size: u64) -> io::Result<Vec<u8>> {
        let mut file = self.contents.file.try_clone()?;
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        file.take(size).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Copies a folder of a workspace into a new one beneath `into`.
pub fn copy(workspace: &Dir, folder: &Dir, below: &RepoPath, into: &Path) -> Result<Snapshot, NoCopy> {
    let git = repository_of(workspace)?;
    let tracked = git.as_ref().map_or(Tracked::These(BTreeSet::new()), |git| Tracked::These(tracked(git)));
    copy_with((workspace, git), tracked, (folder, below), into)
}

/// Copies a folder that contains exactly the files of a commit of a workspace's repository: all of them count as tracked. The copy's
/// repository is at another commit still.
pub fn copy_of_commit(
    workspace: &Dir,
    (top, folder): (&Dir, &Dir),
    below: &RepoPath,
    into: &Path,
) -> Result<Snapshot, NoCopy> {
    copy_with((top, repository_of(workspace)?), Tracked::All, (folder, below), into)
}

fn repository_of(workspace: &Dir) -> io::Result<Option<Dir>> {
    is_folder(workspace, ".git").then(|| open_folder(workspace, ".git".as_ref())).transpose()
}

fn copy_with(
    (workspace, git): (&Dir, Option<Dir>),
    tracked: Tracked,
    (folder, below): (&Dir, &RepoPath),
    into: &Path,
) -> Result<Snapshot, NoCopy> {
    let copied = Copied::empty(into)?;
    let target = Dir::open_ambient_dir(copied.path(), ambient_authority())?;
    let contents = Contents { file: system::nameless_file(into)?, end: 0 };
    let above = rules_above(workspace, git.as_ref(), below);
    let base = Base { was: BTreeMap::new(), above: above.clone(), below: below.clone(), contents };
    let mut copier = Copier { base, room: Room::default(), tracked };
    let source = folder.open_dir(".")?;
    let here = Copying { to: Some(target.try_clone()?), rules: above, ignored: false };
    let bounds = Bounds { entries: SNAPSHOT_ENTRIES_MAX, depth: COPY_DEPTH_MAX, until: None };
    walk(&mut copier, (source, OsStr::new(below.as_str())), here, bounds)?;
    if let Some(git) = git.filter(|_| below.is_root()) {
        target.create_dir(".git")?;
        copier.room.all_of(git, target.open_dir(".git")?)?;
    }
    Ok(Snapshot { copied, base: copier.base })
}

/// The part of a [`Base`] that is written down: everything except the contents.
#[derive(Serialize, Deserialize)]
struct WrittenBase {
    was: BTreeMap<String, Was>,
    below: RepoPath,
}

/// Writes down the record of the originals, so that a later daemon can find the changes that a run has made in its copy.
///
/// # Errors
/// The system's error.
pub fn write_down(base: &Base, file: &Path) -> io::Result<()> {
    let written = WrittenBase { was: base.was.clone(), below: base.below.clone() };
    std::fs::write(file, serde_json::to_vec(&written)?)
}

/// Takes up a copy that an earlier run has left, with the written record of its originals. Their contents are gone, so
/// later changes of the user's cannot be merged with those of the run.
///
/// # Errors
/// The record is missing, or the system's error.
pub fn take_up(workspace: &Dir, copied: Copied, file: &Path, into: &Path) -> Result<Snapshot, NoCopy> {
    let written: WrittenBase = serde_json::from_slice(&std::fs::read(file)?).map_err(io::Error::from)?;
    let contents = Contents { file: system::nameless_file(into)?, end: 0 };
    let git = is_folder(workspace, ".git").then(|| open_folder(workspace, ".git".as_ref())).transpose()?;
    let above = rules_above(workspace, git.as_ref(), &written.below);
    let forgotten = |was: Was| match was {
        Was::File { mode, copy, hash, .. } => Was::File { mode, copy, hash, at: None },
        link @ Was::Link(_) => link,
    };
    let was = written.was.into_iter().map(|(path, was)| (path, forgotten(was))).collect();
    Ok(Snapshot { copied, base: Base { was, above, below: written.below, contents } })
}

/// Records the present state of a folder of a work tree in which a run will work itself. `git` are the repository's folder and
/// the work tree's folder in it.
pub fn record(
    (tree, folder, below): (&Dir, &Dir, &RepoPath),
    (common, entry): (&Dir, &Dir),
    into: &Path,
) -> Result<Base, NoCopy> {
    system::make_private_folders(into)?;
    let contents = Contents { file: system::nameless_file(into)?, end: 0 };
    let above = rules_above(tree, Some(common), below);
    let base = Base { was: BTreeMap::new(), above: above.clone(), below: below.clone(), contents };
    let mut copier = Copier { base, room: Room::default(), tracked: Tracked::These(tracked(entry)) };
    let here = Copying { to: None, rules: above, ignored: false };
    let bounds = Bounds { entries: SNAPSHOT_ENTRIES_MAX, depth: COPY_DEPTH_MAX, until: None };
    walk(&mut copier, (folder.open_dir(".")?, OsStr::new(below.as_str())), here, bounds)?;
    Ok(copier.base)
}

/// Returns the ignore rules that files above a folder of the workspace set for it.
fn rules_above(workspace: &Dir, git: Option<&Dir>, below: &RepoPath) -> IgnoreRules {
    let mut rules = IgnoreRules::default();
    if let Some(info) = git.and_then(|git| open_folder(git, "info".as_ref()).ok()) {
        add_rules(&mut rules, &info, "exclude", "");
    }
    let mut at = String::new();
    let mut dir = workspace.try_clone().ok();
    for part in below.as_str().split('/').filter(|part| !part.is_empty()) {
        let Some(here) = &dir else { break };
        add_rules(&mut rules, here, ".gitignore", &at);
        dir = open_folder(here, part.as_ref()).ok();
        at = joined(&at, part);
    }
    rules
}

/// Adds the rules of an ignore file, if there is one.
pub fn add_rules(rules: &mut IgnoreRules, dir: &Dir, name: &str, folder: &str) {
    let Ok(file) = open_file(dir, name.as_ref()) else { return };
    let mut text = Vec::new();
    let most = IGNORE_BYTES_MAX as u64;
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    if is_file && file.take(most).read_to_end(&mut text).is_ok() {
        rules.add(&String::from_utf8_lossy(&text), folder);
    }
}

/// Returns the path of an entry of a folder, from the top; the top itself is the empty path.
pub fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn is_folder(dir: &Dir, name: &str) -> bool {
    dir.symlink_metadata(name).is_ok_and(|meta| meta.is_dir())
}

/// Opens a file in a folder, but no link. Does not wait, since the file may have been replaced by a pipe.
pub fn open_file(dir: &Dir, name: &OsStr) -> io::Result<cap_std::fs::File> {
    let mut options = OpenOptions::new();
    options.read(true);
    no_links(&mut options);
    dir.open_with(name, &options)
}

#[cfg(unix)]
fn no_links(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;
    use rustix::fs::OFlags;
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
}

/// Opens a link as a link, which reads nothing.
#[cfg(windows)]
fn no_links(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;
    const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    options.custom_flags(OPEN_REPARSE_POINT);
}

/// Checks whether a path from the workspace is one of a person's own settings.
fn is_personal(path: &str) -> bool {
    PERSONAL
        .iter()
        .any(|it| path.strip_suffix(it).is_some_and(|above| above.is_empty() || above.ends_with('/')))
}

/// Returns `None` for a file that its owner cannot read, since a worker could shut one to prevent all later copies; and for a file
/// that is gone, or of another kind, since it was listed: agents and people write in the folder meanwhile.
fn readable<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened.map_err(Unopened::from) {
        Err(Unopened::Gone(_) | Unopened::Shut(_)) => Ok(None),
        Err(Unopened::Failed(error)) => Err(error),
        Ok(there) => Ok(Some(there)),
    }
}

struct Copier {
    base: Base,
    room: Room,
    tracked: Tracked,
}

/// The paths that git tracks, also if its ignore files name them.
enum Tracked {
    /// The paths in git's index.
    These(BTreeSet<String>),
    /// All existing files.
    All,
}

/// The state of the copying in one folder.
struct Copying {
    /// The target; `None` if the folder is only recorded.
    to: Option<Dir>,
    rules: IgnoreRules,
    /// Whether git ignores the folder; tracked files in it are copied.
    ignored: bool,
}

impl Visitor for Copier {
    type Here = Copying;
    type Stop = NoCopy;

    fn folder(
        &mut self,
        folder: Folder<'_>,
        _names: &mut Vec<Name>,
        here: &mut Copying,
    ) -> Result<(), NoCopy> {
        // A folder whose name is no text is not entered.
        let path = folder.path().to_str().unwrap_or_default();
        add_rules(&mut here.rules, folder.dir, ".gitignore", path);
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, here: &mut Copying) -> Result<Step<Copying>, NoCopy> {
        // No artifact can have a name that is no text.
        let Some(path) = at.text().filter(|_| at.name() != ".git") else { return Ok(Step::Over) };
        let meta = match at.metadata() {
            // The entry was removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Step::Over),
            meta => meta?,
        };
        let ignored = here.ignored || here.rules.ignores(path, meta.is_dir());
        if ignored && !self.is_tracked(path, meta.is_dir()) {
            return Ok(Step::Over);
        }
        let is_copied = here.to.is_some();
        if is_copied && !meta.is_dir() && is_personal(path) && !self.is_tracked(path, false) {
            return Ok(Step::Over);
        }
        self.room.entries = self.room.entries.checked_sub(1).ok_or(NoCopy::TooMany)?;
        if meta.is_dir() {
            let inner = readable(at.open().map_err(io::Error::from))?;
            here.to.as_ref().map_or(Ok(()), |to| to.create_dir(at.name()))?;
            let Some(inner) = inner else { return Ok(Step::Over) };
            let to = here.to.as_ref().map(|to| to.open_dir(at.name())).transpose()?;
            return Ok(Step::Into(inner, Copying { to, rules: here.rules.clone(), ignored }));
        } else if meta.is_symlink() {
            self.link(at.dir, here.to.as_ref(), at.name(), path.to_owned())?;
        } else if meta.is_file() {
            self.file(at.dir, here.to.as_ref(), at.name(), path.to_owned())?;
        }
        Ok(Step::Over)
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), NoCopy> {
        Err(why.into())
    }
}

impl Copier {
    fn is_tracked(&self, path: &str, is_folder: bool) -> bool {
        let Tracked::These(tracked) = &self.tracked else { return true };
        let below = format!("{path}/");
        match is_folder {
            true => tracked.range(below.clone()..).next().is_some_and(|it| it.starts_with(&below)),
            false => tracked.contains(path),
        }
    }

    fn link(&mut self, from: &Dir, to: Option<&Dir>, name: &OsStr, path: String) -> Result<(), NoCopy> {
        let target = match from.read_link_contents(name) {
            // The entry is no link any more.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(()),
            read => readable(read)?,
        };
        let Some(target) = target else { return Ok(()) };
        // On systems where making links needs a right that users rarely have, links stay out.
        if to.is_none_or(|to| make_link(to, &target, name).is_ok()) {
            self.remember(path, Was::Link(target))?;
        }
        Ok(())
    }

    fn file(&mut self, from: &Dir, to: Option<&Dir>, name: &OsStr, path: String) -> Result<(), NoCopy> {
        let Some(source) = readable(open_file(from, name))? else { return Ok(()) };
        let meta = source.metadata()?;
        if !meta.is_file() {
            return Ok(());
        }
        let Some(to) = to else { return self.as_it_is(source, &meta, path) };
        self.room.bytes = self.room.bytes.checked_sub(meta.len()).ok_or(NoCopy::TooLarge)?;
        let mode = Stamp::of(&meta).mode & 0o777;
        let mut target = to.open_with(name, OpenOptions::new().write(true).create_new(true))?;
        let (hash, at) = if meta.len() <= BASE_FILE_BYTES_MAX {
            let mut bytes = Vec::new();
            source.take(BASE_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
            target.write_all(&bytes)?;
            (Some(Digest::of(&bytes)), self.base.contents.add(&bytes)?)
        } else {
            if share(&source, &target).is_err() {
                // A file that grows while it is read cannot exceed the bound.
                let most = meta.len().saturating_add(self.room.bytes);
                let (mut from, mut to) = (source.try_clone()?.into_std(), target.try_clone()?.into_std());
                let copied = copy_data(&mut from, &mut to, most)?;
                self.room.bytes = self.room.bytes.saturating_sub(copied.saturating_sub(meta.len()));
            }
            (None, None)
        };
        permit(&target, mode)?;
        let copy = Stamp::of(&target.metadata()?);
        self.remember(path, Was::File { mode, copy, hash, at })
    }

    /// Records a file that is not copied.
    fn as_it_is(&mut self, file: cap_std::fs::File, meta: &Metadata, path: String) -> Result<(), NoCopy> {
        let copy = Stamp::of(meta);
        let (hash, at) = if meta.len() <= BASE_FILE_BYTES_MAX {
            let mut bytes = Vec::new();
            file.take(BASE_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
            (Some(Digest::of(&bytes)), self.base.contents.add(&bytes)?)
        } else {
            (None, None)
        };
        self.remember(path, Was::File { mode: copy.mode & 0o777, copy, hash, at })
    }

    fn remember(&mut self, path: String, was: Was) -> Result<(), NoCopy> {
        // A file that no change can name cannot have changed.
        if !is_fit(&path) {
            return Ok(());
        }
        if self.base.was.len() >= HARVEST_FILES_MAX {
            return Err(NoCopy::TooManyFiles);
        }
        self.base.was.insert(path, was);
        Ok(())
    }
}

impl Contents {
    /// Keeps a content if there is room, and returns its offset.
    fn add(&mut self, bytes: &[u8]) -> io::Result<Option<u64>> {
        let at = self.end;
        if at.saturating_add(bytes.len() as u64) > BASE_BYTES_MAX {
            return Ok(None);
        }
        self.file.write_all(bytes)?;
        self.end += bytes.len() as u64;
        Ok(Some(at))
    }
}

#[cfg(unix)]
fn make_link(to: &Dir, target: &Path, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::symlinkat(target, to, name)?)
}

#[cfg(not(unix))]
fn make_link(_to: &Dir, _target: &Path, _name: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives the copy the original's permissions, regardless of the daemon's umask; its owner can always read and write it.
#[cfg(unix)]
fn permit(file: &cap_std::fs::File, mode: u32) -> io::Result<()> {
    use cap_std::fs::PermissionsExt as _;
    file.set_permissions(cap_std::fs::Permissions::from_mode(mode | 0o600))
}

#[cfg(not(unix))]
fn permit(_file: &cap_std::fs::File, _mode: u32) -> io::Result<()> {
    Ok(())
}
