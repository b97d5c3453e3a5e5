//! A look at a workspace: every file that matters for the hand-off, by what the kernel says of it. Blocking.
//!
//! Nothing is read but directories, so a look costs a system call or two per file. The time of change is the
//! kernel's own and no worker can set it back. Everything is reached through handles that follow no symbolic
//! link, and nothing is ever opened that could block or act.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::suspects::{Zone, is_repository, said};
use crate::base::limits::{SURVEY_DEPTH_MAX, SURVEY_ENTRIES_MAX, SURVEY_KEPT_MAX, SURVEY_MS_MAX};
use crate::domain::FindingKind;
use crate::jail::{PLACEHOLDER_MTIME, Place};

/// What the kernel says of a file. Two that are alike are the same file, unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    pub(super) inode: (u64, u64),
    mode: u32,
    size: i64,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            inode: (stat.st_dev, stat.st_ino),
            mode: stat.st_mode,
            size: stat.st_size,
            changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(i64::MAX)),
        }
    }
}

/// A file that matters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) stamp: Stamp,
    /// Why its name or place matters.
    pub(super) kind: Option<FindingKind>,
    /// A link that leads out of the workspace.
    pub(super) leaves: bool,
    pub(super) setuid: bool,
    pub(super) executable: bool,
    /// A directory that could not be looked into.
    pub(super) closed: bool,
}

impl Entry {
    /// A regular file.
    pub(super) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.stamp.mode).is_file()
    }
}

/// What was found, by path from the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Survey {
    pub(super) entries: BTreeMap<Vec<u8>, Entry>,
    /// Why it is incomplete.
    pub(super) incomplete: Option<String>,
}

/// What is to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The workspace; links that lead out of it matter.
    pub(super) root: Place,
    /// The directory that the worker may change, in it.
    pub(super) directory: Place,
    /// Further paths that matter with all that lies below, from the workspace.
    pub(super) protected: BTreeSet<Vec<u8>>,
}

/// Why a look was given up.
enum Stop {
    TooMany,
    TooDeep,
    TooSlow,
    Io(io::Error),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Stop::Io(errno.into())
    }
}

impl Stop {
    fn why(self) -> String {
        match self {
            Stop::TooMany => {
                format!("the workspace has more than {SURVEY_ENTRIES_MAX} entries, or too many that matter")
            }
            Stop::TooDeep => format!("the workspace is nested deeper than {SURVEY_DEPTH_MAX}"),
            Stop::TooSlow => format!("looking at the workspace took longer than {SURVEY_MS_MAX} ms"),
            Stop::Io(error) => format!("the workspace could not be looked at: {error}"),
        }
    }
}

impl Ground {
    /// Looks at everything. Never fails: what could not be looked at is said in the result.
    pub(super) fn look(&self) -> Survey {
        let mut walk = Walk {
            ground: self,
            left: SURVEY_ENTRIES_MAX,
            until: Instant::now() + Duration::from_millis(SURVEY_MS_MAX),
            found: Survey::default(),
            root: None,
        };
        let done = walk.everything();
        let mut found = walk.found;
        found.incomplete = done.err().map(Stop::why);
        found
    }
}

struct Walk<'a> {
    ground: &'a Ground,
    left: u64,
    until: Instant,
    found: Survey,
    root: Option<OwnedFd>,
}

impl Walk<'_> {
    fn everything(&mut self) -> Result<(), Stop> {
        let Ground { root, directory, .. } = self.ground;
        self.root = Some(open_place(root).map_err(Stop::Io)?);
        let top = open_place(directory).map_err(Stop::Io)?;
        let below = directory.path().strip_prefix(root.path()).unwrap_or(Path::new(""));
        let mut path = below.as_os_str().as_bytes().to_vec();
        self.directory(top.as_fd(), &mut path, Zone::Top, SURVEY_DEPTH_MAX)
    }

    fn directory(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        mut zone: Zone,
        depth: usize,
    ) -> Result<(), Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::TooDeep)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                self.left = self.left.checked_sub(1).ok_or(Stop::TooMany)?;
                names.push(entry.file_name().to_owned());
            }
        }
        if Instant::now() > self.until {
            return Err(Stop::TooSlow);
        }
        if !matches!(zone, Zone::All(_)) && is_repository(names.iter().map(|name| name.to_bytes())) {
            zone = Zone::Git;
        }
        for name in names {
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend(name.to_bytes());
            self.entry(dir, &name, path, zone, depth)?;
            path.truncate(length);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CString,
        path: &mut Vec<u8>,
        zone: Zone,
        depth: usize,
    ) -> Result<(), Stop> {
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Removed since it was listed.
            Err(Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        let mut said = said(zone, name.to_bytes());
        if self.ground.protected.contains(&path[..]) && !matches!(zone, Zone::All(_)) {
            said.zone = Some(Zone::All(FindingKind::Protected));
            said.kind = Some(FindingKind::Protected);
        }
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if stat.st_mtime == PLACEHOLDER_MTIME && is_placeholder(dir, name, &stat) {
            return Ok(());
        }
        let stamp = Stamp::of(&stat);
        let mut entry =
            Entry { stamp, kind: said.kind, leaves: false, setuid: false, executable: false, closed: false };
        match file_type {
            FileType::Directory => {
                let Some(zone) = said.zone else { return Ok(()) };
                match rustix::fs::openat(dir, name, directory_flags(), Mode::empty()) {
                    Ok(inner) => return self.directory(inner.as_fd(), path, zone, depth),
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
                    Err(Errno::ACCESS | Errno::PERM) => entry.closed = true,
                    Err(errno) => return Err(errno.into()),
                }
            }
            FileType::Symlink => entry.leaves = self.leaves(dir, name, path),
            FileType::RegularFile => {
                entry.setuid = stat.st_mode & 0o6000 != 0;
                entry.executable = stat.st_mode & 0o111 != 0;
            }
            _ => {}
        }
        let matters =
            entry.kind.is_some() || entry.leaves || entry.setuid || entry.executable || entry.closed;
        if matters {
            if self.found.entries.len() >= SURVEY_KEPT_MAX {
                return Err(Stop::TooMany);
            }
            self.found.entries.insert(path.clone(), entry);
        }
        Ok(())
    }

    /// Whether a link leads out of the workspace: as the kernel follows it, or by its words where it leads nowhere
    /// at present.
    fn leaves(&self, dir: BorrowedFd<'_>, name: &CString, path: &[u8]) -> bool {
        let Ok(target) = rustix::fs::readlinkat(dir, name, Vec::new()) else { return true };
        let target = PathBuf::from(std::ffi::OsStr::from_bytes(target.to_bytes()));
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
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

/// The directory that a place stood for, or an error when another one has its name.
pub(super) fn open_place(place: &Place) -> io::Result<OwnedFd> {
    let opened = rustix::fs::openat(CWD, place.path(), directory_flags(), Mode::empty())?;
    let stat = rustix::fs::fstat(&opened)?;
    if (stat.st_dev, stat.st_ino) != (place.dev(), place.ino()) {
        return Err(io::Error::other(format!("{} is another directory now", place.path().display())));
    }
    Ok(opened)
}

/// Flags to open a directory with, and nothing else.
pub(super) fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// What a jail has put somewhere for the time of a run, and which does no harm whoever made it: an empty
/// directory, an empty file, or git's word for "here".
pub(super) fn is_placeholder(dir: BorrowedFd<'_>, name: &CString, stat: &Stat) -> bool {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let opened = rustix::fs::openat(dir, name, directory_flags(), Mode::empty());
            let listed = opened.and_then(|opened| Dir::read_from(&opened));
            let is_dot = |name: &[u8]| matches!(name, b"." | b"..");
            listed.is_ok_and(|mut all| all.all(|it| it.is_ok_and(|it| is_dot(it.file_name().to_bytes()))))
        }
        FileType::RegularFile if stat.st_mode & 0o7111 != 0 => false,
        FileType::RegularFile if stat.st_size == 0 => true,
        FileType::RegularFile if stat.st_size == 2 && name.to_bytes() == b"commondir" => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let mut text = Vec::new();
            rustix::fs::openat(dir, name, flags, Mode::empty())
                .is_ok_and(|file| std::fs::File::from(file).take(3).read_to_end(&mut text).is_ok())
                && text == b".\n"
        }
        _ => false,
    }
}

/// Whether a path, followed by the kernel, stays beneath a directory; `None` when it leads nowhere.
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

/// Whether a path climbs above where it begins, by its words.
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
