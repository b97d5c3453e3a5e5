//! Watches the work trees of agents, and publishes the files that change there, regardless of
//! the agents' own reports.
//!
//! ```text
//!   the system tells of a change --> [due] --a moment later--> [looked at] --> told in the agent's name, if it is news
//! ```
//! The daemon scans every work tree whose branch is a known agent's, and every one that
//! `/watch` names, when something has happened there. It scans at regular times only if the system
//! does not report changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{branch, tree_scan};
use crate::daemon::file_watcher::{Covered, FileListener};
use provost_auth::role;
use provost_base::AgentId;
use provost_base::limits::{BROKER_LOOKS_MAX, WIT_WORKTREES_MAX};
use provost_config::{Places, WorkTree};
use provost_domain::command::Publish;
use provost_domain::post::{Post, Source, slug, slug_of_branch};
use provost_domain::view::SeenFiles;
use provost_service::Provost;
use provost_system::folder_watch::FolderWatcher;
use tree_scan::{Looked, look};

/// How long after the first report of a change a work tree is scanned: files are written in bursts.
const MOMENT: Duration = Duration::from_millis(100);

/// The least pause between two scans of one work tree; also this many times the duration of a scan.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_TIMES: u32 = 5;

/// How often a work tree is scanned if the system does not report its changes, or if the last scan has failed.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// Work trees that `/watch` has named, each with the agent that works there.
#[derive(Clone, Default)]
pub(super) struct Named(Arc<(Mutex<BTreeMap<PathBuf, AgentId>>, Notify)>);

impl Named {
    pub(super) fn put(&self, agent: AgentId, path: &Path) {
        let (named, changed) = &*self.0;
        {
            let mut named = named.lock().unwrap_or_else(PoisonError::into_inner);
            if named.len() < WIT_WORKTREES_MAX || named.contains_key(path) {
                named.insert(path.to_owned(), agent);
            }
        }
        changed.notify_one();
    }

    fn all(&self) -> BTreeMap<PathBuf, AgentId> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Receives the changes in one work tree, except in paths that git ignores there.
pub(super) struct TreeListener {
    pub(super) listener: FileListener,
    ignored: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl TreeListener {
    fn new(watcher: &FolderWatcher, top: &Path, wakeup: Arc<Notify>) -> Self {
        let ignored: Arc<Mutex<BTreeSet<PathBuf>>> = Arc::default();
        let known = ignored.clone();
        let is_ignored =
            move |path: &Path| known.lock().unwrap_or_else(PoisonError::into_inner).contains(path);
        let wanted = move |path: &Path| !is_lock(path) && !is_ignored(path);
        Self { listener: FileListener::new(watcher, top, wakeup, wanted), ignored }
    }

    /// Stops reports about these paths.
    pub(super) fn ignore(&self, paths: BTreeSet<PathBuf>) {
        *self.ignored.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }
}

/// Checks for git's locks, which come and go with the files that they protect.
fn is_lock(path: &Path) -> bool {
    path.file_name().is_some_and(|it| it == "index.lock" || it == "HEAD.lock")
}

/// Checks for files with git's ignore rules, which decide which folders count.
fn are_rules(path: &Path) -> bool {
    path.file_name().is_some_and(|it| it == ".gitignore" || it == "exclude")
}

/// The state of one work tree.
struct Watched {
    tree: WorkTree,
    hears: Arc<TreeListener>,
    agent: AgentId,
    /// The changed files at the last scan; `None` before the first.
    files: Option<Vec<String>>,
    /// The time of the work tree's next scan; `None` while nothing happens.
    due: Option<Instant>,
    not_before: Instant,
    /// Whether the work tree's folders may have changed.
    folders_too: bool,
    looking: bool,
    /// Whether the system does not report changes here.
    deaf: bool,
}

impl Watched {
    fn call(&mut self, after: Duration, folders_too: bool) {
        let at = (Instant::now() + after).max(self.not_before);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        self.folders_too |= folders_too;
    }
}

/// One scan, with the time when it began and whether it included folders.
type TreeScan = (PathBuf, Instant, bool, Result<Looked, String>);

struct Watch {
    provost: Provost,
    places: Places,
    named: Named,
    watcher: FolderWatcher,
    /// Notified of changes in any work tree.
    heard: Arc<Notify>,
    /// Receives the changes where the repository keeps its list of work trees.
    roll_hears: Arc<FileListener>,
    trees: BTreeMap<PathBuf, Watched>,
    looks: JoinSet<TreeScan>,
    /// When the list of work trees has to be read again although no change was reported.
    roll: Option<Instant>,
}

/// Scans the work trees until the daemon stops.
pub(super) async fn watch(
    (provost, places, watcher): (Provost, Places, FolderWatcher),
    named: Named,
    stop: CancellationToken,
) {
    let heard: Arc<Notify> = Arc::default();
    let roll_hears = FileListener::new(&watcher, &places.identity, heard.clone(), |path| !is_lock(path));
    let (roll_hears, trees, looks) = (Arc::new(roll_hears), BTreeMap::new(), JoinSet::new());
    let mut watch = Watch { provost, places, named, watcher, heard, roll_hears, trees, looks, roll: None };
    watch.call_roll().await;
    loop {
        watch.begin_looks();
        let (heard, engine, named) =
            (watch.heard.clone(), watch.provost.engine().clone(), watch.named.clone());
        let next = watch.next();
        tokio::select! {
            () = stop.cancelled() => return,
            () = heard.notified() => watch.take_news().await,
            () = engine.inbox_index().changed() => watch.call_roll().await,
            () = named.0.1.notified() => watch.call_roll().await,
            Some(done) = watch.looks.join_next(), if !watch.looks.is_empty() => {
                if let Ok(look) = done {
                    watch.done(look).await;
                }
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                if watch.roll.is_some_and(|at| at <= Instant::now()) {
                    watch.call_roll().await;
                }
            }
        }
    }
}

impl Watch {
    /// Returns the time of the next scan that is due, if there is room for it.
    fn next(&self) -> Option<Instant> {
        let free = self.looks.len() < BROKER_LOOKS_MAX;
        let due = self.trees.values().filter(|it| free && !it.looking).filter_map(|it| it.due);
        due.chain(self.roll).min()
    }

    fn begin_looks(&mut self) {
        let now = Instant::now();
        let mut due: Vec<_> = self
            .trees
            .values_mut()
            .filter(|it| !it.looking && it.due.is_some_and(|due| due <= now))
            .collect();
        due.sort_by_key(|it| it.due);
        for it in due {
            if self.looks.len() >= BROKER_LOOKS_MAX {
                return;
            }
            (it.looking, it.due) = (true, None);
            let folders_too = std::mem::take(&mut it.folders_too);
            let (tree, hears) = (it.tree.clone(), it.hears.clone());
            self.looks.spawn_blocking(move || {
                let begun = Instant::now();
                let looked = look(&tree, &hears, folders_too);
                (tree.top, begun, folders_too, looked)
            });
        }
    }

    async fn take_news(&mut self) {
        for it in self.trees.values_mut() {
            let news = it.hears.listener.take();
            if news.lost || !news.paths.is_empty() {
                let folders_too =
                    news.lost || news.paths.iter().any(|(path, moved)| *moved || are_rules(path));
                it.call(MOMENT, folders_too);
            }
        }
        let news = self.roll_hears.take();
        if news.lost || !news.paths.is_empty() {
            self.call_roll().await;
        }
    }

    /// Finds the work trees and their agents. Those of known agents are scanned from now on.
    async fn call_roll(&mut self) {
        let (places, hears) = (self.places.clone(), self.roll_hears.clone());
        let listed = tokio::task::spawn_blocking(move || {
            let trees = places.work_trees(WIT_WORKTREES_MAX);
            // These folders show where other work trees are made, and which branch is checked out.
            let mut folders: BTreeSet<PathBuf> = trees.iter().map(|it| it.git_dir.clone()).collect();
            folders.extend(
                [places.identity.clone(), places.identity.join("worktrees")]
                    .into_iter()
                    .filter(|it| it.is_dir()),
            );
            let covered = hears.cover(&folders);
            let branches = trees.into_iter().map(|it| (branch(&it), it));
            (branches.collect::<Vec<_>>(), covered)
        });
        let Ok((listed, covered)) = listed.await else { return };
        self.roll = match covered {
            Covered::Before => None,
            Covered::Since => Some(Instant::now()),
            Covered::Not => Some(Instant::now() + NOW_AND_THEN),
        };
        let named = self.named.all();
        let mut gone: BTreeSet<PathBuf> = self.trees.keys().cloned().collect();
        for (branch, tree) in listed {
            let Some(agent) = named.get(&tree.top).cloned().or_else(|| self.by_branch(branch?.as_str()))
            else {
                continue;
            };
            gone.remove(&tree.top);
            if self.trees.get(&tree.top).is_some_and(|it| it.tree == tree && it.agent == agent) {
                continue;
            }
            let now = Instant::now();
            let hears = Arc::new(TreeListener::new(&self.watcher, &tree.top, self.heard.clone()));
            let new = Watched {
                tree,
                hears,
                agent,
                files: None,
                due: Some(now),
                not_before: now,
                folders_too: true,
                looking: false,
                deaf: false,
            };
            self.trees.insert(new.tree.top.clone(), new);
        }
        for top in gone {
            let gone = self.trees.remove(&top);
            // The task does not wait until the system has stopped reporting.
            tokio::task::spawn_blocking(move || drop(gone));
        }
    }

    fn by_branch(&self, branch: &str) -> Option<AgentId> {
        let name = slug_of_branch(branch)?;
        let known = self.provost.engine().inbox_index().has(&name);
        known.then(|| AgentId::from(&name))
    }

    /// Publishes the result of a scan, if it is news.
    async fn done(&mut self, (top, begun, folders_too, looked): TreeScan) {
        let Some(it) = self.trees.get_mut(&top) else { return };
        it.looking = false;
        it.not_before = Instant::now() + PAUSE.max(begun.elapsed() * PAUSE_TIMES);
        // Changes that were reported meanwhile wait for the pause, too.
        it.due = it.due.map(|due| due.max(it.not_before));
        let looked = match looked {
            Ok(looked) => looked,
            Err(why) => {
                tracing::debug!(tree = %top.display(), "not looked at: {why}");
                return it.call(NOW_AND_THEN, true);
            }
        };
        if folders_too {
            it.deaf = looked.covered == Covered::Not;
        }
        if it.deaf {
            it.call(NOW_AND_THEN, false);
        } else if looked.covered == Covered::Since {
            it.call(PAUSE, true);
        }
        let is_news = match &it.files {
            Some(before) => *before != looked.files,
            None if !looked.files.is_empty() => true,
            // A work tree that is clean at the first scan is no news, unless it was not clean when the daemon last scanned it.
            None => self.provost.view(SeenFiles(slug(it.agent.as_str()))).await.unwrap_or(false),
        };
        if is_news && tell(&self.provost, &it.agent, &looked.files).await.is_err() {
            // The next scan publishes it.
            return it.call(PAUSE, false);
        }
        it.files = Some(looked.files);
    }
}

async fn tell(provost: &Provost, agent: &AgentId, files: &[String]) -> Result<(), provost_domain::Refusal> {
    let post = Post::Status {
        agent: agent.clone(),
        status: "working".into(),
        files: files.iter().map(|it| it.as_str().into()).collect(),
        message: None,
        cli: None,
        phase: None,
        detail: None,
    };
    provost.submit(&role::system(), Publish { post, source: Source::Watcher }).await.map(drop)
}
