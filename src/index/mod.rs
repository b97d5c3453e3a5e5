//! The call graph of the repository, kept as files change.
//!
//! A thread reads the repository once, at low priority, and then the changes that the system reports. No request
//! waits for it: an answer uses the known files, and [`State`] says how complete they are. Promises: it reads only
//! regular files beneath the root, and none that git ignores; it checks the file of a request before the answer
//! ([`Index::touch`]); it reads no content twice ([`Cache`]). `graph` interprets calls, and its users decide about
//! them.
#![forbid(unsafe_code)]

mod file_changes;
mod indexed_files;
mod keeper;
mod read;
mod scip;
mod walk;
mod watch;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tokio::sync::{Notify, broadcast};

use file_changes::Files;
pub use file_changes::{ChangeKind, Moved, SeenFileChange};
use indexed_files::{Found, IndexedFiles, Put};
use keeper::Keeper;
use provost_base::limits::{GRAPH_SETTLE_MAX, INDEX_NEWS_MAX};
use provost_base::{RepoPath, SymbolPath};
use provost_graph::{FoundBy, Graph, LookupResult, NotWhole, Size};
use provost_syntax::{Cache, Reading};
use provost_system::folder_watch::FolderWatcher;
use watch::Bell;

/// Files that have changed, for listeners that keep data about them.
pub type Changed = Arc<[RepoPath]>;

/// The index of one repository. Cheap to clone.
#[derive(Clone)]
pub struct Index(Arc<IndexInner>);

struct IndexInner {
    root: Dir,
    cache: Arc<Cache>,
    graph: RwLock<Graph>,
    known: Mutex<IndexedFiles>,
    progress: Mutex<Progress>,
    /// Wakes the tasks that wait for the end of a reading.
    progressed: Notify,
    changed: broadcast::Sender<Changed>,
    /// Files of any kind.
    files: Mutex<Files>,
    seen: broadcast::Sender<Arc<[SeenFileChange]>>,
    moved: broadcast::Sender<Arc<[Moved]>>,
    bell: Arc<Bell>,
    /// Whether the repository is read at all.
    on: bool,
}

/// The progress of the thread.
#[derive(Clone, Default, Debug)]
struct Progress {
    /// How many times everything was scanned.
    looks: u64,
    busy: bool,
    /// Duration of the first scan, in milliseconds.
    took_ms: Option<u64>,
    watching: bool,
    missing: Vec<String>,
    scip: Option<Scip>,
}

/// The `.scip` indexes that are in use.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scip {
    /// The programs that made them, and their versions.
    pub tool: String,
    /// The number of files for which the index is used.
    pub files: usize,
    /// The number of files for which the index is not used: they have changed since.
    pub outdated: usize,
    /// The number of calls that the index contains.
    pub edges: usize,
}

/// The size of the graph, and how complete it is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// The size of the graph.
    pub size: Size,
    /// Whether all files have been read.
    pub complete: bool,
    /// The reasons why not, and the parts that are missing for good.
    pub missing: Vec<String>,
    /// Whether the system reports changes. Otherwise files are scanned now and then.
    pub watching: bool,
    /// Duration of the first reading of all files, in milliseconds; `None` while it goes on.
    pub took_ms: Option<u64>,
    /// The index of another program that is used, if there is one.
    pub scip: Option<Scip>,
}

/// The options of reading the repository.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether the repository is read at all. If not, only files that requests ask about are known.
    pub on: bool,
    /// The most source files that are read.
    pub files_max: usize,
}

impl Index {
    /// Begins to read a repository on a thread of its own.
    ///
    /// # Errors
    /// The root cannot be opened, or no more threads can be started.
    pub fn start(
        root: &Path,
        cache: Arc<Cache>,
        watcher: &FolderWatcher,
        options: Options,
    ) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(root, ambient_authority())?;
        let (wake, woken) = std::sync::mpsc::sync_channel(1);
        let index = Self(Arc::new(IndexInner {
            root: dir,
            cache,
            graph: RwLock::default(),
            known: Mutex::default(),
            progress: Mutex::default(),
            progressed: Notify::new(),
            changed: broadcast::channel(INDEX_NEWS_MAX).0,
            files: Mutex::default(),
            seen: broadcast::channel(INDEX_NEWS_MAX).0,
            moved: broadcast::channel(INDEX_NEWS_MAX).0,
            bell: Arc::new(Bell::new(wake)),
            on: options.on,
        }));
        if options.on {
            index.progress(|it| it.busy = true);
            let (root, watcher) = (root.to_owned(), watcher.clone());
            let keeper = Keeper::new(index.clone(), root, watcher, options.files_max);
            std::thread::Builder::new().name("index".into()).spawn(move || keeper.run(&woken))?;
        }
        Ok(index)
    }

    /// Returns the readings of files, which all readers share.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.0.cache
    }

    /// Returns a receiver of changed files, after the graph has them. A listener that falls behind has to check everything.
    pub fn changes(&self) -> broadcast::Receiver<Changed> {
        self.0.changed.subscribe()
    }

    /// Returns a receiver of new, changed and removed files of any kind. A listener that falls behind misses some.
    pub fn sights(&self) -> broadcast::Receiver<Arc<[SeenFileChange]>> {
        self.0.seen.subscribe()
    }

    /// Returns a receiver of files that were renamed within the tree. A listener that falls behind misses some.
    pub fn moves(&self) -> broadcast::Receiver<Arc<[Moved]>> {
        self.0.moved.subscribe()
    }

    /// Ends the thread as soon as possible.
    pub fn stop(&self) {
        self.0.bell.end();
    }

    /// Returns the callers of a symbol, one step away, in any file; also the callers of symbols inside of it.
    pub fn callers(&self, of: &SymbolPath) -> Vec<SymbolPath> {
        self.ask(|graph| graph.callers(of))
    }

    /// Returns the symbols that a symbol calls, one step away; `?:name` stands for one that was not found.
    pub fn callees(&self, of: &SymbolPath) -> Vec<SymbolPath> {
        self.ask(|graph| graph.callees(of))
    }

    /// Returns the answer of [`Graph::callers_found`].
    pub fn callers_found(&self, of: &SymbolPath) -> Vec<(SymbolPath, FoundBy)> {
        self.ask(|graph| graph.callers_found(of))
    }

    /// Returns the answer of [`Graph::callees_found`].
    pub fn callees_found(&self, of: &SymbolPath) -> Vec<(SymbolPath, FoundBy)> {
        self.ask(|graph| graph.callees_found(of))
    }

    /// Returns the answer of [`Graph::callees_of`].
    pub fn callees_of(&self, path: &RepoPath, symbols: &[(u32, &str)]) -> Vec<(u32, SymbolPath, FoundBy)> {
        self.ask(|graph| graph.callees_of(path, symbols))
    }

    /// Returns the symbols of a file that a request means.
    pub fn asked(&self, of: &SymbolPath) -> LookupResult {
        self.ask(|graph| graph.asked(of))
    }

    /// Returns the symbols with this name, in any file.
    pub fn named(&self, name: &str) -> Vec<SymbolPath> {
        self.ask(|graph| graph.named(name))
    }

    /// Returns the answer of [`Graph::gaps`].
    pub fn gaps(&self, of: &BTreeSet<RepoPath>, names: &BTreeSet<&str>) -> (usize, Option<RepoPath>) {
        self.ask(|graph| graph.gaps(of, names))
    }

    /// Returns the answer of [`Graph::not_whole`].
    pub fn not_whole(&self) -> Vec<NotWhole> {
        self.ask(Graph::not_whole)
    }

    /// Checks whether files are still being read.
    pub fn is_reading(&self) -> bool {
        self.0.on && self.lock_progress().busy
    }

    /// Waits until no files are being read.
    pub async fn until_read(&self) {
        loop {
            let progressed = self.0.progressed.notified();
            if !self.is_reading() {
                return;
            }
            progressed.await;
        }
    }

    /// Returns why the index is not complete; nothing if it is. Quick, also where there are many files.
    pub fn missing(&self) -> Vec<String> {
        let progress = self.lock_progress();
        let mut missing = progress.missing.clone();
        if !self.0.on {
            missing.push("coordination.index is off: only files that were asked about are known".into());
        } else if progress.busy {
            missing.push("the repository is still being read".into());
        }
        missing
    }

    /// Returns the size and completeness at this moment. Goes through all files.
    pub fn state(&self) -> State {
        let missing = self.missing();
        let Progress { took_ms, watching, scip, .. } = self.lock_progress().clone();
        let (size, told) = {
            let graph = self.0.graph.read().unwrap_or_else(PoisonError::into_inner);
            (graph.size(), graph.files_told())
        };
        // Files that were written since do not count any more.
        let scip =
            scip.map(|it| Scip { files: told, outdated: it.outdated + it.files.saturating_sub(told), ..it });
        let complete = missing.is_empty();
        State { size, complete, missing, watching, took_ms, scip }
    }

    /// Checks whether a file has changed, and reads it if so. Blocks; asynchronous callers hand it to a thread.
    pub fn touch(&self, path: &RepoPath) {
        if self.catch_up(path) {
            self.tell(vec![path.clone()]);
        }
        if !self.lock_progress().watching {
            self.0.bell.ring(|news| news.everything = true);
        }
    }

    /// Takes in a reading that a request has just made of a file. Returns whether the index has the file.
    /// Quick. If the file is not known yet, the thread checks whether it should be.
    pub fn fresh(&self, path: &RepoPath, reading: &Arc<Reading>) -> bool {
        let (ticket, listed, same) =
            self.known(|known| (known.ticket(), known.is_listed(path), known.is_of(path, reading)));
        if same {
            return true;
        }
        if self.0.on && !listed {
            let folder = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
            if let Ok(folder) = RepoPath::parse(folder) {
                self.0.bell.ring(|news| news.folders.extend([folder]));
            }
            return false;
        }
        if self.put(path, ticket, None, Some(Found::of(reading))) == Put::Changed {
            self.tell(vec![path.clone()]);
        }
        true
    }

    /// Checks whether the index can answer at once: it has this very reading of a file, nothing has to be followed first,
    /// and no thread is working on it.
    pub fn is_ready(&self, path: &RepoPath, reading: &Arc<Reading>) -> bool {
        self.0.known.try_lock().is_ok_and(|known| known.is_of(path, reading))
            && self.0.graph.try_read().is_ok_and(|graph| graph.is_settled())
    }

    /// Asks the graph after most or all new facts are followed.
    fn ask<T>(&self, question: impl Fn(&Graph) -> T) -> T {
        {
            let graph = self.0.graph.read().unwrap_or_else(PoisonError::into_inner);
            if graph.is_settled() {
                return question(&graph);
            }
        }
        let mut graph = self.0.graph.write().unwrap_or_else(PoisonError::into_inner);
        graph.settle(GRAPH_SETTLE_MAX);
        question(&graph)
    }

    fn graph<T>(&self, change: impl FnOnce(&mut Graph) -> T) -> T {
        change(&mut self.0.graph.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn known<T>(&self, work: impl FnOnce(&mut IndexedFiles) -> T) -> T {
        work(&mut self.0.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn lock_progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock_progress());
        self.0.progressed.notify_waiters();
    }

    fn tell(&self, paths: Vec<RepoPath>) {
        // There may be no listener.
        let _ = self.0.changed.send(paths.into());
    }
}
