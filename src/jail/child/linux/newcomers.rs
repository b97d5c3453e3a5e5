//! Folders in which the kernel reports new entries at once, so that a new repository is found before the next walk
//! reaches it. This helps the walks and does not replace them: a user has a limited number of such watches; this takes
//! a small part of them, and folders without a watch are walked.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

use crate::repositories::is_repository_name;
use provost_base::later::names::is_opened_by_itself;
use provost_base::limits::{FOLDERS_HEARD_MAX, FOLDERS_HEARD_PART, NEWS_PER_TICK_MAX};

/// The file with the number of watches that the user may have.
const USERS_WATCHES: &str = "/proc/sys/fs/inotify/max_user_watches";

/// How many bytes of the kernel's reports are read at once.
const BUFFER: usize = 16 << 10;

/// Checks whether the user can watch one more folder now.
pub(super) fn has_room() -> bool {
    let made = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
    made.is_ok_and(|it| add_watch(&it, "/", WatchFlags::CREATE | WatchFlags::ONLYDIR).is_ok())
}

/// The folders that are watched.
pub(super) struct Newcomers {
    inotify: OwnedFd,
    /// The watched folders, by the kernel's number for the watch: the index of the walked directory, and the path in it.
    folders: BTreeMap<i32, (usize, PathBuf)>,
    most: usize,
    /// Whether a folder found no room.
    is_full: bool,
}

impl Newcomers {
    /// Begins without any watch. `None` if the user has no inotify instance left; then there are only walks.
    pub(super) fn new() -> Option<Self> {
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let all: usize = std::fs::read_to_string(USERS_WATCHES).ok()?.trim().parse().ok()?;
        let most = (all / FOLDERS_HEARD_PART).min(FOLDERS_HEARD_MAX);
        Some(Self { inotify, folders: BTreeMap::new(), most, is_full: false })
    }

    /// Watches a folder for new entries from now on, if there is room for one more.
    pub(super) fn listen(&mut self, folder: BorrowedFd<'_>, root: usize, path: &Path) {
        if self.folders.len() >= self.most {
            self.is_full = true;
            return;
        }
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::EXCL_UNLINK;
        // This path names the open folder, even if another one has its name by now.
        let it = format!("/proc/self/fd/{}", folder.as_raw_fd());
        match add_watch(&self.inotify, it, flags) {
            Ok(number) => drop(self.folders.insert(number, (root, path.to_owned()))),
            // The folder has vanished since it was opened.
            Err(Errno::NOENT) => {}
            // The user's watches are used up: they are for other programs.
            Err(_) => (self.most, self.is_full) = (0, true),
        }
    }

    /// Checks whether there are folders without a watch.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the entries that have appeared since: names that may be a repository's, or that programs open by themselves, and
    /// new folders. At most as many as one tick has time for.
    pub(super) fn heard(&mut self) -> Vec<(usize, PathBuf)> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.inotify.as_fd(), &mut buffer);
        let mut heard = Vec::new();
        for _ in 0..NEWS_PER_TICK_MAX {
            let Ok(event) = reader.next() else { break };
            if event.events().contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
                continue;
            }
            let Some((root, folder)) = self.folders.get(&event.wd()) else { continue };
            let Some(name) = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())) else {
                continue;
            };
            let (path, is_folder) = (folder.join(name), event.events().contains(ReadFlags::ISDIR));
            let is_in_a_repository = folder.file_name().is_some_and(|it| is_repository_name(it.as_bytes()));
            if is_in_a_repository {
                heard.push((*root, folder.clone()));
            }
            // Such an entry may be a pipe.
            let is_opened = || is_opened_by_itself(below(&path).as_os_str().as_bytes());
            let is_open = !is_in_a_repository && (is_folder || is_repository_name(name.as_bytes()));
            if is_open || !is_folder && is_opened() {
                heard.push((*root, path));
            }
        }
        heard
    }
}

/// Returns a path without the leading `.`, as it counts from the walked directory.
pub(super) fn below(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}
