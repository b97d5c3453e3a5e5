//! Hints that something in some directories has changed: from the kernel where it gives them, else by the clock.
//!
//! A hint says nothing else. What is lost in a full queue, or changes in a directory that was made a moment ago,
//! is found by the look that follows.

use std::time::Duration;

/// Between two looks where there are no hints, or not for every directory.
const TICK: Duration = Duration::from_secs(2);

#[cfg(target_os = "linux")]
mod kernel {
    use std::collections::BTreeSet;
    use std::ffi::OsStr;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use tokio::net::unix::pipe::Receiver;

    use crate::base::limits::WATCH_DIRS_MAX;

    /// Which directories hints are wanted for. Blocking.
    pub(in crate::effects) struct Wanted {
        root: PathBuf,
        queue: OwnedFd,
        watches: BTreeSet<i32>,
    }

    /// Where hints come from: no pipe, but read and waited for like one.
    pub(super) type Queue = Receiver;

    pub(super) fn begin(root: &Path) -> Option<(Queue, Wanted)> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let same = queue.try_clone().ok()?;
        let wanted = Wanted { root: root.into(), queue: same, watches: BTreeSet::new() };
        Some((Receiver::from_owned_fd_unchecked(queue).ok()?, wanted))
    }

    impl Wanted {
        /// Asks for hints about these directories and no others. Answers whether some are new, so that something
        /// may have changed there unseen, and whether all are covered.
        pub(in crate::effects) fn only(&mut self, directories: &[Vec<u8>]) -> (bool, bool) {
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::MOVE
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW
                | WatchFlags::EXCL_UNLINK;
            let mut now = BTreeSet::new();
            let mut all = directories.len() <= WATCH_DIRS_MAX;
            for directory in directories.iter().take(WATCH_DIRS_MAX) {
                let path = self.root.join(Path::new(OsStr::from_bytes(directory)));
                match inotify::add_watch(&self.queue, &path, flags) {
                    Ok(watch) => drop(now.insert(watch)),
                    // Gone again: its parent has a hint about that.
                    Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                    Err(_) => all = false,
                }
            }
            for old in self.watches.difference(&now) {
                // The kernel has taken it away with its directory, or it is where the directory was moved to.
                let _gone = inotify::remove_watch(&self.queue, *old);
            }
            let new = now.difference(&self.watches).next().is_some();
            self.watches = now;
            (new, all)
        }
    }

    /// How often the queue is read for one hint. A worker may fill it as fast as it is read; what is left in it is
    /// the next hint.
    const READS_MAX: usize = 64;

    /// Waits until something has changed.
    pub(super) async fn hint(queue: &Queue) -> std::io::Result<()> {
        queue.readable().await?;
        let mut events = [0; 4096];
        for _ in 0..READS_MAX {
            match queue.try_read(&mut events) {
                Ok(_) => {}
                Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(err) => return Err(err),
            }
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::path::Path;

    /// Nothing is asked for here.
    pub(in crate::effects) struct Wanted;
    pub(super) type Queue = ();

    pub(super) fn begin(_root: &Path) -> Option<(Queue, Wanted)> {
        None
    }

    impl Wanted {
        pub(in crate::effects) fn only(&mut self, _directories: &[Vec<u8>]) -> (bool, bool) {
            (false, false)
        }
    }

    pub(super) async fn hint(_queue: &Queue) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) use kernel::Wanted;

/// The hints of one watch.
pub(super) struct Hints {
    queue: Option<kernel::Queue>,
    /// Whether there is a hint for every directory.
    pub(super) cover_all: bool,
}

impl Hints {
    /// None are given before directories are named. Called within a runtime.
    pub(super) fn begin(root: &std::path::Path) -> (Self, Option<Wanted>) {
        match kernel::begin(root) {
            Some((queue, wanted)) => (Self { queue: Some(queue), cover_all: false }, Some(wanted)),
            None => (Self { queue: None, cover_all: false }, None),
        }
    }

    /// Waits until something may have changed.
    pub(super) async fn next(&mut self) {
        let tick = tokio::time::sleep(TICK);
        let failed = match &self.queue {
            None => return tick.await,
            Some(queue) if self.cover_all => kernel::hint(queue).await.is_err(),
            Some(queue) => tokio::select! {
                hint = kernel::hint(queue) => hint.is_err(),
                () = tick => false,
            },
        };
        if failed {
            self.queue = None;
        }
    }
}
