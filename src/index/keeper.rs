//! The thread that reads the repository, and then the changes in it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::indexed_files::IndexedFiles;
use super::walk::{Depth, Listing, Walk};
use super::watch::{IndexChanges, Watch};
use super::{Index, scip};
use provost_base::RepoPath;
use provost_base::limits::{
    INDEX_ALONE_MAX, INDEX_LOOK_EVERY_MS, INDEX_SETTLE_STEP, WATCH_QUIET_MS, WATCH_WAIT_MS_MAX,
};
use provost_graph::is_settings;
use provost_system as system;
use provost_system::folder_watch::FolderWatcher;

/// The findings of a scan.
#[derive(Default)]
struct Found {
    /// Files that are new or have changed.
    changed: Vec<RepoPath>,
    /// Files that are gone, or of no interest any more.
    gone: Vec<RepoPath>,
}

/// Maintains one index.
pub(super) struct Keeper {
    index: Index,
    root: PathBuf,
    watcher: FolderWatcher,
    files_max: usize,
    watch: Option<Watch>,
    /// The `.scip` indexes that were taken in last.
    scip: scip::Seen,
}

impl Keeper {
    pub(super) fn new(index: Index, root: PathBuf, watcher: FolderWatcher, files_max: usize) -> Self {
        Self { index, root, watcher, files_max, watch: None, scip: scip::Seen::new() }
    }

    /// Reads until the index is stopped.
    pub(super) fn run(mut self, woken: &Receiver<()>) {
        system::lower_priority();
        match Watch::begin(&self.watcher, &self.root, &self.index.0.bell) {
            Ok(watch) => self.watch = Some(watch),
            Err(why) => no_watching(&why),
        }
        let begin = Instant::now();
        self.look_at_everything();
        if self.is_over() {
            return;
        }
        let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.index.progress(|it| it.took_ms = Some(took_ms));
        let state = self.index.state();
        let (size, complete) = (state.size, state.complete);
        tracing::info!(files = size.files, edges = size.edges, took_ms, complete, "repository read");
        while self.wait(woken) {
            let mut news = self.index.0.bell.take();
            self.watch.iter().for_each(|it| it.take(&mut news));
            self.catch_up(&news);
            self.index.progress(|it| it.busy = false);
        }
    }

    fn is_over(&self) -> bool {
        self.index.0.bell.stop.load(Ordering::Relaxed)
    }

    /// Waits for changes, and then for a moment of quiet; false when the index is stopped.
    fn wait(&self, woken: &Receiver<()>) -> bool {
        match self.watch {
            Some(_) if woken.recv().is_err() => return false,
            Some(_) => {}
            None => match woken.recv_timeout(Duration::from_millis(INDEX_LOOK_EVERY_MS)) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => self.index.0.bell.ring(|news| news.everything = true),
                Err(RecvTimeoutError::Disconnected) => return false,
            },
        }
        let until = Instant::now() + Duration::from_millis(WATCH_WAIT_MS_MAX);
        while Instant::now() < until && !self.is_over() {
            if woken.recv_timeout(Duration::from_millis(WATCH_QUIET_MS)).is_err() {
                break;
            }
        }
        !self.is_over()
    }

    fn catch_up(&mut self, news: &IndexChanges) {
        if news.everything {
            return self.look_at_everything();
        }
        let mut all = Found::default();
        let mut add = |found: Found| {
            all.changed.extend(found.changed);
            all.gone.extend(found.gone);
        };
        for folder in &news.rules {
            add(self.look(folder, Depth::All));
        }
        for folder in news.folders.difference(&news.rules) {
            let is_known = self.index.known(|known| known.folders.contains(folder));
            if is_known {
                add(self.look(folder, Depth::One));
            }
        }
        self.take_in(all, news.folders.iter().chain(&news.rules).any(RepoPath::is_root));
        self.index.tell_moves();
    }

    fn look_at_everything(&mut self) {
        let root = RepoPath::default();
        let found = self.look(&root, Depth::All);
        self.take_in(found, true);
        self.index.tell_moves();
        let watching = self.watch.is_some();
        self.index.progress(|it| {
            it.looks += 1;
            it.busy = false;
            it.watching = watching;
        });
    }

    /// Scans a folder and compares it with the known state; returns the differences.
    fn look(&mut self, folder: &RepoPath, depth: Depth) -> Found {
        let (known, room) = self.index.known(|known| {
            known.folders.insert(folder.clone());
            let inner = if depth == Depth::One { known.folders_in(folder, false) } else { BTreeSet::new() };
            (inner, self.files_max.saturating_sub(known.len()))
        });
        let all = depth == Depth::All;
        let here = self.index.known(|known| known.files_in(folder, all)).len();
        let watch = &mut self.watch;
        let mut enter = |folder: &RepoPath| {
            if let Some(watch) = watch {
                watch.add(folder);
            }
        };
        let bell = self.index.0.bell.clone();
        let (root, stop) = (&self.index.0.root, &bell.stop);
        let mut walk = Walk { root, files_max: room + here, enter: &mut enter, stop };
        let found = walk.look(folder, depth, &known);
        if let Some(why) = self.watch.as_ref().and_then(|watch| watch.broken.clone()) {
            no_watching(&why);
            self.watch = None;
            self.index.progress(|it| it.watching = false);
        }
        if self.is_over() {
            return Found::default();
        }
        self.compare(folder, all, found)
    }

    fn compare(&mut self, folder: &RepoPath, all: bool, mut found: Listing) -> Found {
        let gone: Vec<RepoPath> = self.index.known(|known| {
            let before = known.folders_in(folder, all);
            before.into_iter().filter(|it| !found.folders.contains(it)).collect()
        });
        let whole = found.missing.is_none();
        self.index.see(folder, all, &gone, std::mem::take(&mut found.all), whole);
        for gone in &gone {
            self.forget_folder(gone);
        }
        let missing = found.missing;
        self.index.progress(|it| {
            if all && folder.is_root() {
                it.missing.retain(|why| why.starts_with(scip::COMPLAINS));
            }
            let missing = missing.map(str::to_owned).filter(|why| !it.missing.contains(why));
            it.missing.extend(missing);
        });
        self.index.known(|known| {
            let mut lost: Vec<RepoPath> =
                gone.iter().flat_map(|folder| known.files_in(folder, true)).collect();
            let before = known.files_in(folder, all);
            lost.extend(before.into_iter().filter(|it| !found.files.contains_key(it)));
            let differs = found.files.into_iter().filter(|(path, stamp)| !known.is_current(path, *stamp));
            let changed = differs.map(|(path, _)| path).collect();
            known.folders.extend(found.folders);
            Found { changed, gone: lost }
        })
    }

    fn forget_folder(&mut self, folder: &RepoPath) {
        let gone = self.index.known(|known| {
            let mut gone = known.folders_in(folder, true);
            gone.insert(folder.clone());
            for it in &gone {
                known.folders.remove(it);
            }
            gone
        });
        if let Some(watch) = &mut self.watch {
            gone.iter().for_each(|it| watch.remove(it));
        }
    }

    /// Reads files, and the indexes of compilers if the root folder has changed, follows calls, and reports the files.
    fn take_in(&mut self, Found { changed, mut gone }: Found, root_changed: bool) {
        gone.sort();
        gone.dedup();
        gone.iter().for_each(|path| self.index.forget(path));
        // Settings come first: they decide where everything else leads.
        let (settings, files): (Vec<RepoPath>, Vec<RepoPath>) =
            changed.into_iter().partition(|path| is_settings(path.as_str()));
        if files.len() > INDEX_ALONE_MAX {
            self.index.progress(|it| it.busy = true);
        }
        let next = AtomicUsize::new(0);
        let read_all = || {
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.is_over() {
                    return;
                }
                self.index.read(path);
            }
        };
        for path in &settings {
            self.index.read(path);
        }
        std::thread::scope(|scope| {
            for _ in 1..helpers(files.len()) {
                // A helper that cannot be started is not needed.
                let _ = std::thread::Builder::new().name("index".into()).spawn_scoped(scope, || {
                    system::lower_priority();
                    read_all();
                });
            }
            read_all();
        });
        if root_changed {
            self.index.look_at_scip(&mut self.scip);
        }
        while !self.is_over() && !self.index.graph(|graph| graph.settle(INDEX_SETTLE_STEP)) {
            std::thread::yield_now();
        }
        self.say_what_is_full();
        let all: Vec<RepoPath> = gone.into_iter().chain(settings).chain(files).collect();
        if !all.is_empty() {
            self.index.tell(all);
        }
    }

    fn say_what_is_full(&self) {
        if let Some(full) = self.index.known(|known: &mut IndexedFiles| known.full.take()) {
            let why = format!("there are {full}");
            self.index.progress(|it| {
                if !it.missing.contains(&why) {
                    it.missing.push(why);
                }
            });
        }
    }
}

/// Returns how many threads read this many files: never more than half of the processors.
fn helpers(files: usize) -> usize {
    let most = std::thread::available_parallelism().map_or(1, |all| all.get() / 2).max(1);
    most.min(files / INDEX_ALONE_MAX + 1)
}

fn no_watching(why: &str) {
    tracing::warn!(
        "the system does not report changed files ({why}); the daemon checks them every {} s instead",
        INDEX_LOOK_EVERY_MS / 1000
    );
}
