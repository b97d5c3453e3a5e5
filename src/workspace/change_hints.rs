//! Hints that something in some directories has changed: from the kernel where it gives them, else by the clock.
//!
//! A hint carries no other data. The scan that follows finds changes that a full queue has lost, or that happen in a
//! new directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Between two looks where there are no hints, or not for every directory.
const TICK: Duration = Duration::from_secs(2);

#[cfg(target_os = "linux")]
mod kernel {
    use std::collections::{BTreeSet, HashMap};
    use std::ffi::OsStr;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::Ordering;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use tokio::net::unix::pipe::Receiver;

    use provost_base::limits::WATCH_DIRS_MAX;

    use super::Bell;

    /// The one queue of all watches of a daemon, once it is needed: the kernel gives few of them to a user, and one watch of
    /// a directory to all who share a queue.
    #[derive(Default)]
    pub struct Queue(Mutex<Option<Arc<Shared>>>);

    struct Shared {
        queue: OwnedFd,
        listeners: Mutex<Listeners>,
    }

    #[derive(Default)]
    struct Listeners {
        next: u64,
        /// Nothing comes any more.
        silent: bool,
        bells: HashMap<u64, Arc<Bell>>,
        /// The listeners that want hints of each watch.
        watches: HashMap<i32, BTreeSet<u64>>,
    }

    /// Which directories hints are wanted for. Blocking.
    pub struct Wanted {
        root: PathBuf,
        shared: Arc<Shared>,
        listener: u64,
        watches: BTreeSet<i32>,
    }

    /// Between two times that the queue is read.
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

    /// Bytes of an event before its name: the watch, what has happened, a number, and how long the name is.
    const HEAD: usize = 16;

    pub(super) fn begin(queue: &Queue, root: &Path) -> Option<(Arc<Bell>, Wanted)> {
        let shared = queue.shared()?;
        let bell = Arc::new(Bell::default());
        let listener = {
            let mut listeners = shared.listeners();
            if listeners.silent {
                return None;
            }
            listeners.next += 1;
            let listener = listeners.next;
            listeners.bells.insert(listener, bell.clone());
            listener
        };
        Some((bell, Wanted { root: root.into(), shared, listener, watches: BTreeSet::new() }))
    }

    impl Queue {
        /// The queue that there is, or a new one.
        fn shared(&self) -> Option<Arc<Shared>> {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(shared) = known.as_ref() {
                return Some(shared.clone());
            }
            let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            let events = Receiver::from_owned_fd_unchecked(queue.try_clone().ok()?).ok()?;
            let shared = Arc::new(Shared { queue, listeners: Mutex::default() });
            *known = Some(shared.clone());
            tokio::spawn(pass_on(events, shared.clone()));
            Some(shared)
        }
    }

    impl Shared {
        fn listeners(&self) -> MutexGuard<'_, Listeners> {
            // The maps are whole between any two of their operations.
            self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Listeners {
        /// Rings for every listener that wants hints of one of these watches; for all listeners, when
        /// some hints were lost.
        fn ring(&self, events: &[u8]) {
            let mut rest = events;
            while let Some((head, more)) = rest.split_at_checked(HEAD) {
                let number = |at: usize| i32::from_ne_bytes(head[at..at + 4].try_into().unwrap_or_default());
                let name = usize::try_from(number(12)).unwrap_or(usize::MAX);
                rest = more.get(name..).unwrap_or_default();
                match number(0) {
                    watch @ 0.. => {
                        self.watches.get(&watch).into_iter().flatten().for_each(|it| self.ring_for(*it))
                    }
                    _ => self.bells.values().for_each(|bell| bell.ring.notify_one()),
                }
            }
        }

        fn ring_for(&self, listener: u64) {
            if let Some(bell) = self.bells.get(&listener) {
                bell.ring.notify_one();
            }
        }
    }

    /// Reads what the kernel tells, until the runtime ends.
    async fn pass_on(events: Receiver, shared: Arc<Shared>) {
        let mut buffer = vec![0; 16 << 10];
        while events.readable().await.is_ok() {
            match events.try_read(&mut buffer) {
                Ok(read) => {
                    shared.listeners().ring(&buffer[..read]);
                    // A worker may fill the queue as fast as it is read; what comes meanwhile is read at once.
                    tokio::time::sleep(PAUSE).await;
                }
                Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        // There will be no hints any more: each listener looks once, and then by the clock.
        let mut listeners = shared.listeners();
        listeners.silent = true;
        for bell in listeners.bells.values() {
            bell.is_broken.store(true, Ordering::Relaxed);
            bell.ring.notify_one();
        }
    }

    impl Wanted {
        /// Asks for hints about these directories and no others. Answers whether some are new, so that something
        /// may have changed there unseen, and whether all are covered.
        pub fn only(&mut self, directories: &[Vec<u8>]) -> (bool, bool) {
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
            // The lock is held until all watches are counted, so that no other listener's last look can
            // remove one of them meanwhile.
            let mut listeners = self.shared.listeners();
            for directory in directories.iter().take(WATCH_DIRS_MAX) {
                let path = self.root.join(Path::new(OsStr::from_bytes(directory)));
                match inotify::add_watch(&self.shared.queue, &path, flags) {
                    Ok(watch) => {
                        now.insert(watch);
                        listeners.watches.entry(watch).or_default().insert(self.listener);
                    }
                    // Gone again: its parent has a hint about that.
                    Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                    Err(_) => all = false,
                }
            }
            let gone: Vec<i32> = self.watches.difference(&now).copied().collect();
            listeners.leave(&self.shared.queue, self.listener, &gone);
            let new = now.difference(&self.watches).next().is_some();
            drop(listeners);
            self.watches = now;
            (new, all)
        }
    }

    impl Listeners {
        /// Stops the hints of these watches for one listener.
        fn leave(&mut self, queue: &OwnedFd, listener: u64, watches: &[i32]) {
            for watch in watches {
                let Some(wanted) = self.watches.get_mut(watch) else { continue };
                wanted.remove(&listener);
                if wanted.is_empty() {
                    self.watches.remove(watch);
                    // The kernel has taken it away with its directory, or it is where the directory was moved to.
                    let _gone = inotify::remove_watch(queue, *watch);
                }
            }
        }
    }

    impl Drop for Wanted {
        fn drop(&mut self) {
            let watches: Vec<i32> = self.watches.iter().copied().collect();
            let mut listeners = self.shared.listeners();
            listeners.leave(&self.shared.queue, self.listener, &watches);
            listeners.bells.remove(&self.listener);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::path::Path;
    use std::sync::Arc;

    /// There is none here.
    #[derive(Default)]
    pub struct Queue;
    /// Nothing is asked for here.
    pub struct Wanted;

    pub(super) fn begin(_queue: &Queue, _root: &Path) -> Option<(Arc<super::Bell>, Wanted)> {
        None
    }

    impl Wanted {
        /// Watches nothing.
        pub fn only(&mut self, _directories: &[Vec<u8>]) -> (bool, bool) {
            (false, false)
        }
    }
}

pub use kernel::{Queue, Wanted};

/// Rings when something may have changed.
#[derive(Default)]
struct Bell {
    ring: Notify,
    /// It will not ring any more.
    is_broken: AtomicBool,
}

/// The hints of one watch.
pub struct Hints {
    bell: Option<Arc<Bell>>,
    /// Whether there is a hint for every directory.
    pub cover_all: bool,
}

impl Hints {
    /// None are given before directories are named. Called within a runtime.
    pub fn begin(queue: &Queue, root: &std::path::Path) -> (Self, Option<Wanted>) {
        match kernel::begin(queue, root) {
            Some((bell, wanted)) => (Self { bell: Some(bell), cover_all: false }, Some(wanted)),
            None => (Self { bell: None, cover_all: false }, None),
        }
    }

    /// Waits until something may have changed.
    pub async fn next(&mut self) {
        let tick = tokio::time::sleep(TICK);
        match &self.bell {
            None => tick.await,
            Some(bell) if self.cover_all && !bell.is_broken.load(Ordering::Relaxed) => {
                bell.ring.notified().await
            }
            Some(bell) => tokio::select! {
                () = bell.ring.notified() => {}
                () = tick => {}
            },
        }
    }
}
