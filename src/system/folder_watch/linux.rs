//! inotify, with one instance for all folders.
//!
//! The kernel knows a folder by a number that stays with it when it is renamed, and so does this module: a
//! folder that two subscribers know by two names, since one of them has scanned after the rename, is watched
//! under both, and releasing the old name does not end the watch. The queue is read with pauses, since
//! a worker in a watched folder can fill it as fast as it is read; the kernel reports when it has dropped
//! events.
//!
//! The library `notify`, which other systems use, knows a folder by its path. After a rename,
//! releasing the old name ends the watch under the new one; and a new folder under the old name loses its
//! watch when the report of the rename comes. The library reads the queue to its end before it adds a watch,
//! follows links, and reports each file that is opened.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::{Table, TableLink, Unwatched, lock};

/// The pause between two reads of the queue.
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes that are read from the queue at once: some thousand events.
const BUFFER: usize = 64 << 10;

/// The watches of one instance. Its thread ends when it is dropped.
pub(super) struct System {
    queue: Arc<Queue>,
    watches: HashMap<PathBuf, i32>,
    /// The paths of each watch: more than one while a renamed folder is known by its old name, too.
    paths: HashMap<i32, BTreeSet<PathBuf>>,
}

struct Queue {
    inotify: OwnedFd,
    /// Becomes readable when nothing has to be read any more.
    end: OwnedFd,
}

impl System {
    pub(super) fn begin(table: TableLink) -> Result<Self, String> {
        let no_room = |errno: Errno| match errno {
            Errno::MFILE => "this user has no instance of inotify left: fs.inotify.max_user_instances".into(),
            other => other.to_string(),
        };
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(no_room)?;
        let end = eventfd(0, EventfdFlags::CLOEXEC).map_err(|it| it.to_string())?;
        let queue = Arc::new(Queue { inotify, end });
        let reads = queue.clone();
        let thread = std::thread::Builder::new().name("folder-watch".into());
        thread.spawn(move || hear(&reads, &table)).map_err(|it| it.to_string())?;
        Ok(Self { queue, watches: HashMap::new(), paths: HashMap::new() })
    }

    /// Watches a folder. Returns whether it is another one than was watched at this path before.
    pub(super) fn watch(&mut self, folder: &Path) -> Result<bool, Unwatched> {
        let flags = WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MODIFY
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF
            | WatchFlags::DONT_FOLLOW
            | WatchFlags::EXCL_UNLINK
            | WatchFlags::ONLYDIR;
        let watch = match inotify::add_watch(&self.queue.inotify, folder, flags) {
            Ok(watch) => watch,
            Err(why) => {
                self.unwatch(folder);
                return Err(match why {
                    Errno::NOENT | Errno::NOTDIR => Unwatched::Gone,
                    Errno::NOSPC => Unwatched::Full(
                        "this user has no watch of inotify left: fs.inotify.max_user_watches".into(),
                    ),
                    other => Unwatched::Failed(other.to_string()),
                });
            }
        };
        if self.watches.get(folder) == Some(&watch) {
            return Ok(false);
        }
        self.unwatch(folder);
        self.watches.insert(folder.to_owned(), watch);
        self.paths.entry(watch).or_default().insert(folder.to_owned());
        Ok(true)
    }

    #[expect(clippy::unused_self, reason = "other systems have trees")]
    pub(super) fn tree(&mut self, _top: &Path) -> Result<(), Unwatched> {
        Ok(())
    }

    pub(super) fn unwatch(&mut self, folder: &Path) {
        let Some(watch) = self.watches.remove(folder) else { return };
        let Some(paths) = self.paths.get_mut(&watch) else { return };
        paths.remove(folder);
        if paths.is_empty() {
            self.paths.remove(&watch);
            // The kernel has removed the watch with its folder.
            let _gone = inotify::remove_watch(&self.queue.inotify, watch);
        }
    }

    /// Returns the paths at which an event has happened.
    fn at(&self, watch: i32, name: Option<&OsStr>) -> Vec<PathBuf> {
        let folders = self.paths.get(&watch).into_iter().flatten();
        folders.map(|it| name.map_or_else(|| it.clone(), |name| it.join(name))).collect()
    }

    /// Forgets a watch that the kernel has ended.
    fn ended(&mut self, watch: i32) {
        for path in self.paths.remove(&watch).into_iter().flatten() {
            self.watches.remove(&path);
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // The counter has room for far more writes than there are.
        let _told = rustix::io::write(&self.queue.end, &1_u64.to_ne_bytes());
    }
}

/// Passes on the kernel's reports until no folder is watched any more.
fn hear(queue: &Queue, table: &TableLink) {
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
    loop {
        let mut fds = [PollFd::new(&queue.inotify, PollFlags::IN), PollFd::new(&queue.end, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return broke(table),
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        let Some(shared) = table.upgrade() else { return };
        let mut woken = BTreeSet::new();
        let (is_whole, subscribers) = {
            let mut table = lock(&shared.0);
            match table.read(queue, &mut buffer, &mut woken) {
                Ok(true) => (true, table.tell_all_lost()),
                Ok(false) => (true, table.named(&woken)),
                Err(_) => (false, Vec::new()),
            }
        };
        subscribers.iter().for_each(|it| (it.wake)());
        drop(shared);
        if !is_whole {
            return broke(table);
        }
        std::thread::sleep(PAUSE);
    }
}

fn broke(table: &TableLink) {
    if let Some(shared) = table.upgrade() {
        shared.broke();
    }
}

impl Table {
    /// Reads the queue once. Returns whether the kernel has dropped events.
    fn read(
        &mut self,
        queue: &Queue,
        buffer: &mut [MaybeUninit<u8>],
        woken: &mut BTreeSet<u64>,
    ) -> Result<bool, Errno> {
        let mut reader = Reader::new(queue.inotify.as_fd(), buffer);
        let mut lost = false;
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(lost),
                Err(why) => return Err(why),
            };
            let (flags, watch) = (event.events(), event.wd());
            let name = event.file_name().map(|it| OsStr::from_bytes(it.to_bytes()));
            lost |= flags.contains(ReadFlags::QUEUE_OVERFLOW);
            self.heard(flags, watch, name, woken);
            if reader.is_buffer_empty() {
                return Ok(lost);
            }
        }
    }

    fn heard(&mut self, flags: ReadFlags, watch: i32, name: Option<&OsStr>, woken: &mut BTreeSet<u64>) {
        let Some(system) = &mut self.system else { return };
        let at = system.at(watch, name);
        let ends = flags.contains(ReadFlags::IGNORED);
        if ends {
            system.ended(watch);
        }
        let comes_or_goes =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        let goes_itself = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
        let moves_folders = ends
            || flags.intersects(goes_itself)
            || flags.contains(ReadFlags::ISDIR) && flags.intersects(comes_or_goes);
        for path in at {
            self.tell(&path, moves_folders, woken);
        }
    }
}
