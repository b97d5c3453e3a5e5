//! A scan of a workspace: every file that matters for the scan report, with the kernel's metadata. Blocking.
//!
//! A scan reads only directories, so it costs a system call or two per file. The time of change is the kernel's own
//! and no worker can set it back. The scan uses handles that follow no symbolic link, and never opens a file that
//! could block or act.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::sensitive_paths::{Said, Zone, is_repository, said};
use super::shared_file::Shared;
use provost_base::later;
use provost_base::limits::{
    SETTINGS_HELD_MAX, SURVEY_AFTER_TIMES, SURVEY_DEPTH_MAX, SURVEY_ENTRIES_MAX, SURVEY_KEPT_MAX,
    SURVEY_MS_MAX,
};
use provost_domain::FindingKind;
use provost_jail::{PLACEHOLDER_MTIME, ResolvedPath, is_repository_name};
use provost_system::is_empty_folder;
use provost_system::walk::{self, Bound, Bounds, Folder, Name, Step, Unopened, Unread, Visitor};

/// The kernel's metadata of a file. Two equal stamps mean the same file, unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The device and the number of the inode.
    pub inode: (u64, u64),
    mode: u32,
    size: i64,
    changed: (i64, i64),
}

impl Stamp {
    /// Makes a stamp from the result of `stat`.
    pub fn of(stat: &Stat) -> Self {
        Self {
            inode: (stat.st_dev, stat.st_ino),
            mode: stat.st_mode,
            size: stat.st_size,
            changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(i64::MAX)),
        }
    }
}

/// A file that matters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The file's state at the scan, with which a later scan compares.
    pub stamp: Stamp,
    /// The reason why the file's name or place matters.
    pub kind: Option<FindingKind>,
    /// Whether the file is a link that leads out of the workspace.
    pub leaves: bool,
    /// Whether the file has the setuid or the setgid bit.
    pub setuid: bool,
    /// Whether any user may run the file.
    pub executable: bool,
    /// Whether the file is a local socket.
    pub socket: bool,
    /// Whether the file is a directory that could not be looked into.
    pub closed: bool,
    /// Whether the file is a named pipe; `socket` is set, too.
    #[serde(default)]
    pub pipe: bool,
    /// Whether the file matters only if it is new: a module that an interpreter would load in place of another one.
    #[serde(default)]
    pub only_new: bool,
    /// Whether the file is an object of git's, named by its content: adding or removing one has no visible effect.
    pub by_content: bool,
}

impl Entry {
    fn of(stat: &Stat, kind: Option<FindingKind>, zone: Zone) -> Self {
        Self {
            stamp: Stamp::of(stat),
            kind,
            leaves: false,
            setuid: false,
            executable: false,
            socket: false,
            pipe: false,
            only_new: false,
            closed: false,
            by_content: zone == Zone::Loose,
        }
    }
}

/// The findings, by path from the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScanFindings {
    /// Files and folders that matter.
    pub entries: BTreeMap<Vec<u8>, Entry>,
    /// Settings that stay read-only, by path from the workspace.
    pub held: BTreeSet<Vec<u8>>,
    /// Links among the findings, in them, and in repositories. No mount can hold a link, so its target is held.
    pub links: BTreeSet<Vec<u8>>,
    /// Files with several names, by device and inode.
    pub shared: BTreeMap<(u64, u64), Shared>,
    /// Repositories, under any name, and files and links of git's that lead to repositories.
    pub repositories: BTreeSet<Vec<u8>>,
    /// The reason why the findings are incomplete.
    pub incomplete: Option<String>,
    /// The folder in which the scan stopped at its bound.
    pub stopped_at: Option<Vec<u8>>,
}

/// The part of a workspace that a scan covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ground {
    /// The workspace; links that lead out of it matter.
    pub root: ResolvedPath,
    /// The directory that the worker may change, in it.
    pub directory: ResolvedPath,
    /// Further paths that matter with all that lies below, from the workspace.
    pub protected: BTreeSet<Vec<u8>>,
    /// Whether all of a repository matters, and not only the files that name programs: if a worker can write to it.
    pub whole_repositories: bool,
    /// Ends of paths of files that matter, with a separator before them.
    pub ends: BTreeSet<Vec<u8>>,
    /// Folders, from the workspace, in which new modules of interpreters matter.
    pub beside: BTreeSet<Vec<u8>>,
    /// Folders, from the workspace, with patterns of the paths in them that matter.
    pub patterns: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

/// The reason why a scan was given up, or is incomplete.
pub enum Stop {
    /// More entries than a scan reads.
    TooMany,
    /// Folders in folders beyond the bound.
    TooDeep,
    /// More time than a scan may take.
    TooSlow,
    /// The system refused a step.
    Io(io::Error),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Stop::Io(errno.into())
    }
}

impl From<Unread> for Stop {
    fn from(why: Unread) -> Self {
        match why {
            Unread::Beyond(Bound::Entries) => Stop::TooMany,
            Unread::Beyond(Bound::Depth) => Stop::TooDeep,
            Unread::Beyond(Bound::Time) => Stop::TooSlow,
            Unread::Failed(error) => Stop::Io(error),
        }
    }
}

impl Stop {
    /// Returns the reason as a sentence for a report.
    pub fn why(self) -> String {
        match self {
            Stop::TooMany => {
                format!("the workspace has more than {SURVEY_ENTRIES_MAX} entries, or too many that matter")
            }
            Stop::TooDeep => format!("the workspace is nested deeper than {SURVEY_DEPTH_MAX}"),
            Stop::TooSlow => format!("looking at the workspace took longer than {SURVEY_MS_MAX} ms"),
            Stop::Io(error) => format!("the workspace could not be examined: {error}"),
        }
    }
}

impl Ground {
    /// Scans everything. Never fails: the result names the reason if something could not be read.
    pub fn look(&self) -> ScanFindings {
        self.walk(SURVEY_ENTRIES_MAX, None, false)
    }

    /// Scans again when no process of the worker is left: with room for the files that it may have added, and into folders that it
    /// has shut, which are opened for that.
    pub fn look_after(&self, before: &ScanFindings) -> ScanFindings {
        self.walk(SURVEY_ENTRIES_MAX * SURVEY_AFTER_TIMES, Some(before), false)
    }

    /// Scans for an apply: if there is too much, leaves out the folders that package managers fill. No setting is read
    /// there, and the configuration of repositories there stays unknown.
    pub fn look_for_an_apply(&self) -> ScanFindings {
        let found = self.look();
        if found.incomplete.is_none() { found } else { self.walk(SURVEY_ENTRIES_MAX, None, true) }
    }

    fn walk(&self, entries: u64, before: Option<&ScanFindings>, passes_over_fetched: bool) -> ScanFindings {
        let mut scan =
            Scan { passes_over_fetched, ground: self, before, found: ScanFindings::default(), root: None };
        let done = scan.everything(entries);
        let mut found = scan.found;
        found.incomplete = done.err().map(Stop::why).or(found.incomplete);
        found
    }
}

/// Returns the bounds of a scan of a workspace that begins now.
pub fn survey_bounds(entries: u64) -> Bounds {
    let until = Some(Instant::now() + Duration::from_millis(SURVEY_MS_MAX));
    Bounds { entries, depth: SURVEY_DEPTH_MAX, until }
}

struct Scan<'a> {
    ground: &'a Ground,
    /// The state before a worker that has ended; folders that it has shut are opened.
    before: Option<&'a ScanFindings>,
    found: ScanFindings,
    root: Option<OwnedFd>,
    passes_over_fetched: bool,
}

/// The state of the scan in a folder.
#[derive(Clone, Copy)]
struct Here {
    zone: Zone,
    /// Whether the folder is, or lies in, a folder of fetched packages.
    fetched: bool,
    /// Whether the folder is read-only with all its contents.
    held: bool,
}

impl Visitor for Scan<'_> {
    type Here = Here;
    type Stop = Stop;

    fn folder(&mut self, folder: Folder<'_>, names: &mut Vec<Name>, here: &mut Here) -> Result<(), Stop> {
        let is_repository = || is_repository(names.iter().map(|it| it.name.as_bytes()));
        if !matches!(here.zone, Zone::Whole | Zone::Objects | Zone::Loose) && is_repository() {
            if matches!(here.zone, Zone::Top | Zone::Plain | Zone::All(_)) {
                self.found.repositories.insert(folder.path().as_bytes().to_vec());
            }
            if !matches!(here.zone, Zone::All(_)) {
                here.zone = self.of_a_repository();
            }
        }
        Ok(())
    }

    fn entry(&mut self, at: walk::Entry<'_>, here: &mut Here) -> Result<Step<Here>, Stop> {
        match at.stat() {
            Ok(stat) => self.look_at(at, &stat, *here),
            // The entry was removed since it was listed.
            Err(Errno::NOENT) => Ok(Step::Over),
            Err(errno) => Err(errno.into()),
        }
    }

    fn unread(&mut self, folder: Folder<'_>, why: Unread) -> Result<(), Stop> {
        self.found.stopped_at.get_or_insert_with(|| folder.path().as_bytes().to_vec());
        match why {
            // The neighbours of such a folder are scanned all the same, or a worker could hide files behind one.
            Unread::Beyond(Bound::Depth) => {
                self.is_incomplete(Stop::TooDeep);
                Ok(())
            }
            why => Err(why.into()),
        }
    }
}

impl Scan<'_> {
    fn everything(&mut self, entries: u64) -> Result<(), Stop> {
        let Ground { root, directory, .. } = self.ground;
        self.root = Some(open_place(root).map_err(Stop::Io)?);
        let top = Dir::from_std_file(File::from(open_place(directory).map_err(Stop::Io)?));
        let below = directory.path().strip_prefix(root.path()).unwrap_or(Path::new(""));
        let here = Here { zone: Zone::Top, fetched: false, held: false };
        walk::walk(self, (top, below.as_os_str()), here, survey_bounds(entries))
    }

    /// Classifies an entry by its name and its place.
    fn said_at(&self, path: &[u8], name: &OsStr, zone: Zone, row: Option<&later::Row>) -> Said {
        let mut said = said(zone, name.as_bytes(), row);
        if said.zone == Some(Zone::Git) {
            said.zone = Some(self.of_a_repository());
        }
        if self.ground.protected.contains(path) && !matches!(zone, Zone::All(_)) {
            said.zone = Some(Zone::All(FindingKind::Protected));
            said.kind = Some(FindingKind::Protected);
        }
        said
    }

    /// Checks whether a line that runs outside names the end of its path.
    fn is_an_end(&self, path: &[u8]) -> bool {
        self.ground.ends.iter().any(|end| path.ends_with(end) || path == &end[1..])
    }

    /// Checks whether a line that runs outside runs the file by a pattern.
    fn is_in_a_pattern(&self, path: &[u8]) -> bool {
        self.ground.patterns.iter().any(|(folder, pattern)| {
            let below = match folder.is_empty() {
                true => Some(path),
                false => path.strip_prefix(folder.as_slice()).and_then(|it| it.strip_prefix(b"/")),
            };
            below.is_some_and(|it| later::fits_pattern(pattern, it))
        })
    }

    /// Checks whether a path is that of a module that an interpreter would load beside a script that runs outside.
    fn is_beside(&self, path: &[u8]) -> bool {
        let beside = &self.ground.beside;
        !beside.is_empty() && later::is_module_in(path, |folder| beside.contains(folder))
    }

    fn look_at(&mut self, at: walk::Entry<'_>, stat: &Stat, here: Here) -> Result<Step<Here>, Stop> {
        let (path, name, zone) = (at.path().as_bytes(), at.name(), here.zone);
        let row = later::row_at(path);
        let said = self.said_at(path, name, zone, row);
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if stat.st_mtime == PLACEHOLDER_MTIME && is_placeholder(at.dir, name, stat) {
            return Ok(Step::Over);
        }
        if is_repository_name(name.as_bytes()) && !matches!(zone, Zone::Git | Zone::GitInner) {
            self.found.repositories.insert(path.to_vec());
        }
        let is_setting = row.is_some_and(later::Row::is_read_only);
        let mut entry = Entry::of(stat, said.kind, zone);
        let is_end = file_type != FileType::Directory && self.is_an_end(path);
        let is_told =
            || file_type != FileType::Directory && entry.kind.is_none() && self.is_in_a_pattern(path);
        if is_end || is_told() {
            entry.kind = Some(FindingKind::Protected);
        } else if entry.kind.is_none() && self.is_beside(path) {
            (entry.kind, entry.only_new) = (Some(FindingKind::Protected), true);
        }
        let held = (is_setting || is_end) && self.hold(path, here, file_type);
        match file_type {
            FileType::Directory => {
                let Some(zone) = said.zone else { return Ok(Step::Over) };
                let inner = Here {
                    zone,
                    fetched: here.fetched || later::is_fetched(name.as_bytes()),
                    held: here.held || held,
                };
                match self.opened(at, stat) {
                    Ok(_) if self.passes_over(name) => return Ok(Step::Over),
                    Ok(dir) => return Ok(Step::Into(dir, inner)),
                    Err(Unopened::Gone(_)) => return Ok(Step::Over),
                    Err(Unopened::Shut(_)) => {
                        entry.closed = true;
                        self.hold_if_ours(stat, path);
                    }
                    Err(Unopened::Failed(error)) => return Err(Stop::Io(error)),
                }
            }
            FileType::Symlink => {
                entry.leaves = self.leaves(at);
                self.link(path, here, is_setting);
            }
            FileType::RegularFile => {
                self.regular(&mut entry, stat, path, held || here.held || is_fixed(zone));
            }
            FileType::Socket => entry.socket = true,
            // A program that opens it waits, and reads bytes that others write: it counts as a socket.
            FileType::Fifo => (entry.socket, entry.pipe) = (true, true),
            _ => {}
        }
        self.keep(path, entry);
        Ok(Step::Over)
    }

    /// Remembers an entry that matters.
    fn keep(&mut self, path: &[u8], entry: Entry) {
        let named = entry.kind.is_some() || entry.leaves || entry.closed;
        if named || entry.setuid || entry.executable || entry.socket {
            if self.found.entries.len() < SURVEY_KEPT_MAX {
                self.found.entries.insert(path.to_vec(), entry);
            } else {
                self.is_incomplete(Stop::TooMany);
            }
        }
    }

    fn passes_over(&self, name: &OsStr) -> bool {
        self.passes_over_fetched && later::is_fetched(name.as_bytes())
    }

    fn is_incomplete(&mut self, why: Stop) {
        self.found.incomplete.get_or_insert_with(|| why.why());
    }

    /// Opens a folder; a folder that the worker has shut is opened to its owner first. Git finds a repository in a folder whose
    /// names it cannot list.
    fn opened(&self, at: walk::Entry<'_>, stat: &Stat) -> Result<Dir, Unopened> {
        let Some(before) = self.before else { return at.open() };
        let is_of_before = || {
            let entry = before.entries.get(at.path().as_bytes()).filter(|it| it.closed);
            entry.is_some_and(|it| it.stamp == Stamp::of(stat))
        };
        match at.open() {
            Err(Unopened::Shut(_)) if !is_of_before() => {
                open_to_its_owner(at.dir, at.name()).map_err(io::Error::from)?;
                at.open()
            }
            found => found,
        }
    }

    /// Holds a folder that is shut: its owner could open it again, and its contents are unknown.
    fn hold_if_ours(&mut self, stat: &Stat, path: &[u8]) {
        if stat.st_uid == rustix::process::geteuid().as_raw() {
            self.found.held.insert(path.to_vec());
        }
    }

    /// Remembers settings that a worker must not change. Paths below them are held with them.
    fn hold(&mut self, path: &[u8], here: Here, file_type: FileType) -> bool {
        let within = matches!(here.zone, Zone::All(FindingKind::Setting | FindingKind::Protected));
        if within || here.fetched || self.found.held.len() >= SETTINGS_HELD_MAX {
            return false;
        }
        if file_type != FileType::Symlink {
            self.found.held.insert(path.to_vec());
        }
        true
    }

    /// Remembers a link whose target matters.
    fn link(&mut self, path: &[u8], here: Here, is_setting: bool) {
        let is_within = || match here.zone {
            Zone::Git | Zone::GitInner | Zone::All(FindingKind::Git | FindingKind::Protected) => true,
            Zone::All(FindingKind::Setting) => later::row_over(path).is_some_and(later::Row::is_read_only),
            _ => false,
        };
        if !here.fetched && (is_setting || is_within()) && self.found.links.len() < SETTINGS_HELD_MAX {
            self.found.links.insert(path.to_vec());
        }
    }

    fn regular(&mut self, entry: &mut Entry, stat: &Stat, path: &[u8], held: bool) {
        entry.setuid = stat.st_mode & 0o6000 != 0;
        entry.executable = stat.st_mode & 0o111 != 0;
        if stat.st_nlink > 1 {
            let kinds = [FindingKind::Git, FindingKind::Setting, FindingKind::Protected];
            self.share(stat, path, (held, entry.kind.is_some_and(|it| kinds.contains(&it))));
        }
    }

    /// Remembers a name of a file that has several.
    fn share(&mut self, stat: &Stat, path: &[u8], (held, runs_later): (bool, bool)) {
        let shared = self.found.shared.entry((stat.st_dev, stat.st_ino)).or_default();
        (shared.links, shared.size) =
            (number(stat.st_nlink), u64::try_from(stat.st_size).unwrap_or_default());
        shared.own = stat.st_uid == rustix::process::geteuid().as_raw();
        shared.runs_later |= runs_later;
        shared.paths.push((path.to_vec(), held));
    }

    fn of_a_repository(&self) -> Zone {
        if self.ground.whole_repositories { Zone::Whole } else { Zone::Git }
    }

    /// Checks whether a link leads out of the workspace: as the kernel follows it, or by its text if it leads
    /// nowhere at present.
    fn leaves(&self, at: walk::Entry<'_>) -> bool {
        let Ok(target) = rustix::fs::readlinkat(at.dir, at.name(), Vec::new()) else { return true };
        let target = PathBuf::from(OsStr::from_bytes(target.to_bytes()));
        let path = Path::new(at.path());
        let from_root = match target.is_absolute() {
            true => match target.strip_prefix(self.ground.root.path()) {
                Ok(below) => below.to_owned(),
                Err(_) => return true,
            },
            false => path.parent().unwrap_or(Path::new("")).join(target),
        };
        match self.root.as_ref().map(|root| stays_beneath(root.as_fd(), &from_root)) {
            Some(Some(stays)) => !stays,
            _ => climbs_out(&from_root),
        }
    }
}

/// Gives a folder's owner the right to list and change it, if the owner is this user. Follows no link.
pub fn open_to_its_owner(dir: impl AsFd, name: &OsStr) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&found)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::ACCESS);
    }
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777) | Mode::RWXU;
    // A handle that only names a file cannot change its mode; its entry in this folder is the same file.
    rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), mode)
}

/// Converts the kernel's number of names, which has another type on other systems.
fn number(it: impl Into<u64>) -> u64 {
    it.into()
}

/// Checks whether a jail keeps a zone read-only in addition to settings.
fn is_fixed(zone: Zone) -> bool {
    matches!(zone, Zone::Git | Zone::GitInner | Zone::All(FindingKind::Git | FindingKind::Protected))
}

/// Opens the directory of a place; fails if another one has its name.
pub fn open_place(place: &ResolvedPath) -> io::Result<OwnedFd> {
    let opened = rustix::fs::openat(CWD, place.path(), directory_flags(), Mode::empty())?;
    let stat = rustix::fs::fstat(&opened)?;
    if (stat.st_dev, stat.st_ino) != (place.dev(), place.ino()) {
        return Err(io::Error::other(format!("{} is another directory now", place.path().display())));
    }
    Ok(opened)
}

/// Returns the flags to open a directory, and no other kind of file.
pub fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Checks whether an entry is a jail's placeholder for the time of a run, or as harmless, even if a worker made it: an empty
/// directory, an empty file, or git's word for "here".
pub fn is_placeholder(dir: &Dir, name: &OsStr, stat: &Stat) -> bool {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => is_empty_folder(dir, name).unwrap_or(false),
        FileType::RegularFile if stat.st_mode & 0o7111 != 0 => false,
        FileType::RegularFile if stat.st_size == 0 => true,
        FileType::RegularFile if stat.st_size == 2 && name == "commondir" => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let mut text = Vec::new();
            rustix::fs::openat(dir, name, flags, Mode::empty())
                .is_ok_and(|file| File::from(file).take(3).read_to_end(&mut text).is_ok())
                && text == b".\n"
        }
        _ => false,
    }
}

/// Checks whether a path, followed by the kernel, stays beneath a directory; `None` if it leads nowhere.
#[cfg(target_os = "linux")]
fn stays_beneath(root: BorrowedFd<'_>, path: &Path) -> Option<bool> {
    use rustix::fs::ResolveFlags;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), beneath) {
        Ok(_) => Some(true),
        Err(Errno::XDEV) => Some(false),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn stays_beneath(_root: BorrowedFd<'_>, _path: &Path) -> Option<bool> {
    None
}

/// Checks whether a path climbs above its beginning, by its words.
fn climbs_out(path: &Path) -> bool {
    use std::path::Component;
    let mut depth = 0_i64;
    path.components().any(|part| {
        depth += match part {
            Component::ParentDir => -1,
            Component::Normal(_) => 1,
            _ => 0,
        };
        depth < 0
    })
}
